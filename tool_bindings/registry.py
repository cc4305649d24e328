"""The set of tools and policies, in layers.

Knows: registration, scopes and shadowing, restrictions, presentation modes, and who hears of changes.
Does not know: what happens inside a dispatch (`pipeline`), or who runs programs.
"""

from __future__ import annotations

import difflib
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from sandbox.values import thaw
from tool_bindings.abort import AbortSignal
from tool_bindings.annotations import bind_function
from tool_bindings.binding import BoundTool
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.errors import DefinitionError, DuplicateToolError, UnknownToolError
from tool_bindings.pipeline import Dispatch
from tool_bindings.thread_body import ThreadRunner

if TYPE_CHECKING:
    import types
    from collections.abc import Iterable, Iterator

    from sandbox.values import JsonValue
    from tool_bindings.approval import ApprovalProvider
    from tool_bindings.definition import ConcurrencySafe, PresentationMeta, Render, ReportProgress
    from tool_bindings.pipeline import DispatchToken, Provenance
    from tool_bindings.policy import AroundListener, Guard, Observer, PostListener, PreListener
    from tool_bindings.results import ToolResult
    from tool_bindings.thread_body import AbandonedBody

__all__ = ["RUN_CODE", "PresentationMode", "Scope", "ToolRegistry"]

RUN_CODE: Final = "run_code"
"""Name of the tool that runs programs; reserved for the transport in every mode."""

PresentationMode: TypeAlias = Literal["native", "code", "both"]
"""native: tools are offered one by one. code: only `run_code` is. both: tools and `run_code`."""

MODES: Final = ("native", "code", "both")

GRACE_SECONDS: Final = 5.0
"""Seconds an aborted body in a thread gets to end by itself (DESIGN section 5)."""

_SHOWN_TOOLS: Final = 30
"""Tool names listed in an unknown-tool error (arbitrary: about a line of text)."""

Disposer: TypeAlias = Callable[[], None]
"""Takes back exactly what it was returned for; calling it again does nothing."""

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class _Restriction:
    __slots__ = ("allow", "deny")

    def __init__(self, allow: frozenset[str] | None, deny: frozenset[str]) -> None:
        self.allow = allow
        self.deny = deny

    def admits(self, name: str) -> bool:
        return name not in self.deny and (self.allow is None or name in self.allow)


class Policies:
    """Everything a dispatch through one scope needs, looked up once per change of the registry."""

    __slots__ = ("around", "before", "collapses", "generation", "mode", "observers", "post", "pre", "view")

    def __init__(self, generation: int, layers: Sequence[Scope], mode: PresentationMode) -> None:
        self.generation = generation
        self.mode = mode
        self.collapses = mode == "code"
        self.pre: tuple[PreListener, ...] = _gather(layers, "pre")
        self.around: tuple[AroundListener, ...] = _gather(layers, "around")
        self.post: tuple[PostListener, ...] = _gather(layers, "post")
        self.observers: tuple[Observer, ...] = _gather(layers, "observers")
        self.before = bool(self.pre) or any(layer.listeners["guards"] for layer in layers)
        self.view = _view(layers)


def _gather(layers: Sequence[Scope], kind: str) -> tuple[Any, ...]:
    return tuple(entry.function for layer in layers for entry in layer.listeners[kind])


def _view(layers: Sequence[Scope]) -> dict[str, BoundTool]:
    """Return the visible tools, sorted by name; `layers` go from the global one to the scope's own."""
    view: dict[str, BoundTool] = {}
    for layer in layers:
        # A restriction filters what its scope inherits, never what the scope itself registers.
        for restriction in layer.restrictions:
            view = {name: bound for name, bound in view.items() if restriction.admits(name)}
        view.update(layer.tools)
    return dict(sorted(view.items()))


class _Decorator(Protocol):
    """Registers a function and returns it unchanged."""

    def __call__(self, function: F, /) -> F: ...


class Scope:
    """One layer: its own tools, policies and restrictions on top of those of its parents.

    Made by `ToolRegistry.scope` or `Scope.scope`; leave it with `close`, which unregisters everything
    that was registered through it, or use it as a context manager.
    """

    def __init__(self, registry: ToolRegistry, parent: Scope | None, name: str) -> None:
        self.name = name
        self.parent = parent
        self.tools: dict[str, BoundTool] = {}
        self.restrictions: list[_Restriction] = []
        self.mode: PresentationMode | None = None
        self.listeners: dict[str, list[_Listener]] = {
            kind: [] for kind in ("pre", "guards", "around", "post", "observers")
        }
        self.policies_cache: Policies | None = None
        self._registry = registry
        self.children: list[Scope] = []
        self._closed = False

    def layers(self) -> list[Scope]:
        """Return the chain from the global layer to this one."""
        chain: list[Scope] = []
        layer: Scope | None = self
        while layer is not None:
            chain.append(layer)
            layer = layer.parent
        return chain[::-1]

    # --- tools ----------------------------------------------------------------------------------

    def register(self, definition: ToolDefinition, *, defer_schemas: bool = False) -> Disposer:
        """Add a tool to this layer.

        Args:
            definition: The tool.
            defer_schemas: Have full JSON Schemas judged by the first call instead of now, which takes
                tens of milliseconds each; for thousands of tools from elsewhere. A bad one fails that
                call with `UNSUPPORTED_SCHEMA`. Schemas of the vocabulary are always judged now.

        Raises:
            DefinitionError: The definition cannot be registered; nothing changed.
        """
        if not isinstance(definition, ToolDefinition):
            raise DefinitionError(
                f"register() takes a ToolDefinition, not {type(definition).__name__}; "
                "use @registry.tool for functions"
            )
        name = definition.name
        if name == RUN_CODE:
            raise DefinitionError(f"{RUN_CODE!r} is reserved for the tool that runs programs")
        if name in self.tools:
            where = (
                "globally; register a variant through a scope" if self.parent is None else f"in {self.name}"
            )
            raise DuplicateToolError(f"a tool {name!r} is already registered {where}")
        self._check_open()
        bound = BoundTool(definition, defer_schemas=defer_schemas)

        def insert() -> None:
            self.tools[name] = bound

        def remove() -> None:
            if self.tools.get(name) is bound:
                del self.tools[name]

        return self._registry.change(insert, remove)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        render: Render | None = None,
        presentation_meta: PresentationMeta | None = None,
        concurrency_safe: ConcurrencySafe = False,
        timeout_seconds: float | None = None,
        finalize_content: Callable[[Dispatch, ToolResult], Sequence[dict[str, Any]] | None] | None = None,
    ) -> _Decorator: ...

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        render: Render | None = None,
        presentation_meta: PresentationMeta | None = None,
        concurrency_safe: ConcurrencySafe = False,
        timeout_seconds: float | None = None,
        finalize_content: Callable[[Dispatch, ToolResult], Sequence[dict[str, Any]] | None] | None = None,
    ) -> Any:
        """Register an annotated function as a tool and return it unchanged.

        Use it bare, or with options. Schemas come from the annotations, the description from the
        docstring. A plain function runs in a thread.

        Args:
            function: The function, when used bare.
            name: Name of the tool; the function's own by default.
            description: Text for the model; the docstring by default.
            render: Makes the content blocks from (arguments, value).
            presentation_meta: Makes metadata for a direct call from (arguments, value).
            concurrency_safe: True, or a function of the arguments, lets calls overlap.
            timeout_seconds: Deadline that the timeout policy enforces.
            finalize_content: Last change to the content of any outcome.

        Raises:
            DefinitionError: The function cannot be a tool; nothing was registered.
        """
        namespace = _caller_names()

        def decorate(target: F) -> F:
            tool_name = name if name is not None else _function_name(target)
            bound = bind_function(target, namespace)
            self.register(
                ToolDefinition(
                    name=tool_name,
                    description=description if description is not None else bound.description,
                    parameters=bound.parameters,
                    output=Output(bound.output, render, presentation_meta),
                    execute=bound.execute,
                    concurrency_safe=concurrency_safe,
                    timeout_seconds=timeout_seconds,
                    finalize_content=finalize_content,
                )
            )
            return target

        return decorate if function is None else decorate(function)

    # --- policies -------------------------------------------------------------------------------

    def on_pre_execute(self, listener: PreListener, *, first: bool = False) -> Disposer:
        """Ask `listener(call, proceed)` whether a call may go on."""
        return self._listen("pre", listener, first=first)

    def add_guard(self, guard: Guard) -> Disposer:
        """Let `guard(call)` deny calls for good by returning a reason."""
        return self._listen("guards", guard)

    def around(self, listener: AroundListener, *, first: bool = False) -> Disposer:
        """Wrap every body in `listener(call, proceed)`."""
        return self._listen("around", listener, first=first)

    def on_post_execute(self, listener: PostListener, *, first: bool = False) -> Disposer:
        """Let `listener(call, result, proceed)` accept, change or block results."""
        return self._listen("post", listener, first=first)

    def on_result(self, observer: Observer) -> Disposer:
        """Show every final result to `observer(call, result)`."""
        return self._listen("observers", observer)

    def _listen(self, kind: str, listener: Callable[..., Any], *, first: bool = False) -> Disposer:
        if not callable(listener):
            raise DefinitionError(f"a listener must be a function, not {type(listener).__name__}")
        self._check_open()
        listeners = self.listeners[kind]
        # Each registration gets an object of its own, so that a disposer takes back exactly its own.
        entry = _Listener(listener)
        listeners.insert(0 if first else len(listeners), entry)
        self._registry.touch()

        def dispose() -> None:
            if entry in listeners:
                listeners.remove(entry)
                self._registry.touch()

        return dispose

    # --- visibility -----------------------------------------------------------------------------

    def restrict(self, *, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> Disposer:
        """Hide inherited tools: all but `allow`, and those in `deny`. Several restrictions intersect.

        A convenience for presentation, not a security boundary. The scope's own tools stay visible.

        Raises:
            DefinitionError: Nothing was given, a name is reserved or not inherited, or this is the
                global layer.
        """
        if self.parent is None:
            raise DefinitionError(
                "restrict() works on a scope: scope = registry.scope(); scope.restrict(...)"
            )
        if allow is None and deny is None:
            raise DefinitionError("restrict() needs allow=[...] or deny=[...]")
        self._check_open()
        allowed = None if allow is None else frozenset(_names(allow, "allow"))
        denied = frozenset(() if deny is None else _names(deny, "deny"))
        named = denied | (allowed or frozenset())
        if RUN_CODE in named:
            raise DefinitionError(f"{RUN_CODE!r} cannot be restricted; choose a presentation mode instead")
        inherited = self._registry.policies(self.parent).view
        unknown = sorted(named - inherited.keys())
        if unknown:
            raise DefinitionError(
                f"restrict() names tools that are not inherited: {', '.join(unknown)}; "
                f"known: {', '.join(inherited) or 'none'}"
            )
        restriction = _Restriction(allowed, denied)

        def remove() -> None:
            if restriction in self.restrictions:
                self.restrictions.remove(restriction)

        return self._registry.change(lambda: self.restrictions.append(restriction), remove)

    def present_as(self, mode: PresentationMode) -> Disposer:
        """Declare how this scope and those below it present tools to a model; once per scope.

        Raises:
            DefinitionError: Unknown mode, a second declaration, or this is the global layer.
        """
        if self.parent is None:
            raise DefinitionError(
                "present_as() works on a scope; for everybody use ToolRegistry(presentation=...)"
            )
        _check_mode(mode)
        if self.mode is not None:
            raise DefinitionError(
                f"{self.name} already presents tools as {self.mode!r}; dispose that declaration first"
            )
        self._check_open()

        def insert() -> None:
            self.mode = mode

        def remove() -> None:
            self.mode = None

        return self._registry.change(insert, remove)

    def scope(self, name: str | None = None) -> Scope:
        """Open a layer on top of this one."""
        self._check_open()
        child = Scope(self._registry, self, name if name is not None else f"scope {next(_scope_numbers)}")
        self.children.append(child)
        return child

    def close(self) -> None:
        """Unregister everything in this layer and in those on top of it; safe to call twice."""
        if self._closed or self.parent is None:
            return
        for child in list(self.children):
            child.close()
        self._closed = True
        self.tools.clear()
        self.restrictions.clear()
        self.mode = None
        for listeners in self.listeners.values():
            listeners.clear()
        self.parent.children.remove(self)
        self._registry.touch()
        self._registry.announce()

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DefinitionError(f"{self.name} is closed")


class _Listener:
    """One registration of a listener; a listener registered twice has two."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_scope_numbers: Final = itertools.count(1)


class ToolRegistry(Scope):
    """The global layer, and the way to call any tool.

    Args:
        presentation: How tools are presented to a model where no scope says otherwise.
        approval_provider: Who answers when a policy asks.
        grace_seconds: Seconds an aborted body in a thread gets to end by itself.
    """

    def __init__(
        self,
        *,
        presentation: PresentationMode = "native",
        approval_provider: ApprovalProvider | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        _check_mode(presentation)
        super().__init__(self, None, "the global layer")
        self.approval_provider = approval_provider
        self.grace_seconds = grace_seconds
        self.threads = ThreadRunner()
        self._presentation = presentation
        self._generation = 0
        self._change_listeners: list[_Listener] = []
        self._call_numbers = itertools.count(1)

    # --- looking up -----------------------------------------------------------------------------

    def schemas(self, scope: Scope | None = None) -> list[dict[str, Any]]:
        """Return name, description and parameters of the visible tools, sorted by name, as copies."""
        return [
            {
                "name": bound.definition.name,
                "description": bound.definition.description,
                "parameters": thaw(bound.parameters.schema),  # type: ignore[arg-type]  # frozen JSON, by compilation
            }
            for bound in self.policies(scope).view.values()
        ]

    def get(self, name: str, scope: Scope | None = None) -> ToolDefinition | None:
        """Return the visible tool of that name, whatever the presentation mode, or None."""
        bound = self.policies(scope).view.get(name)
        return None if bound is None else bound.definition

    def names(self, scope: Scope | None = None) -> list[str]:
        """Return the names of the visible tools, sorted."""
        return list(self.policies(scope).view)

    def definitions(self, scope: Scope | None = None) -> list[ToolDefinition]:
        """Return the visible tools, sorted by name."""
        return [bound.definition for bound in self.policies(scope).view.values()]

    def presentation(self, scope: Scope | None = None) -> PresentationMode:
        """Return the mode in force: the nearest scope's, else the registry's default."""
        return self.policies(scope).mode

    def present_call(self, name: str, arguments: object, scope: Scope | None = None) -> JsonValue:
        """Return the UI card that a tool makes of a call, or None for the generic one; never raises."""
        bound = self.policies(scope).view.get(name)
        return None if bound is None else bound.present_call(arguments)

    def present_result(
        self, name: str, arguments: object, result: ToolResult, scope: Scope | None = None
    ) -> JsonValue:
        """Return the UI card that a tool makes of a result, or None for the generic one; never raises."""
        bound = self.policies(scope).view.get(name)
        return None if bound is None else bound.present_result(arguments, result)

    def execution_mode(
        self, name: str, arguments: object, scope: Scope | None = None, *, nested: bool = False
    ) -> Literal["parallel", "exclusive"]:
        """Say whether a call may overlap with other parallel ones.

        Args:
            name: Name of the tool.
            arguments: What it would be called with.
            scope: The scope it would be called through.
            nested: Whether a program makes the call; a direct call of a collapsed tool is exclusive.
        """
        policies = self.policies(scope)
        bound = policies.view.get(name)
        if bound is None or (policies.collapses and not nested):
            return "exclusive"
        return bound.execution_mode(arguments)

    # --- calling --------------------------------------------------------------------------------

    def begin(
        self,
        name: str,
        arguments: object,
        *,
        call_id: str | None = None,
        root_call_id: str | None = None,
        parent_call_id: str | None = None,
        parent: DispatchToken | None = None,
        session: object = None,
        abort: AbortSignal | None = None,
        scope: Scope | None = None,
        provenance: Provenance = "direct",
        run_id: str | None = None,
        progress: ReportProgress | None = None,
        approval_pending: Callable[[bool], object] | None = None,
        grace_seconds: float | None = None,
        transport: BoundTool | None = None,
    ) -> Dispatch:
        """Start a dispatch; never raises because of the call.

        Args:
            name: Name of the tool.
            arguments: The arguments, an object of lossless JSON.
            call_id: Identity of the call; numbered by the registry when None.
            root_call_id: Identity of the direct call this one is part of; its own when None.
            parent_call_id: Identity of the enclosing call.
            parent: Token of the enclosing dispatch. A call without one is a direct call.
            session: The caller's session; together with the scope it is who approval asks about.
            abort: Fires when the caller wants the call to stop.
            scope: The scope to see tools and policies through.
            provenance: Which route the call came by.
            run_id: The run whose program makes the call.
            progress: Receives the body's progress reports.
            approval_pending: Called with True when approval is asked for, with False when answered.
            grace_seconds: Overrides the registry's own for this call.
            transport: The bound `run_code`, which no layer holds, when that is what is called.
        """
        policies = self.policies(scope)
        return Dispatch(
            self,
            policies,
            policies.view.get(name) if transport is None else transport,
            name,
            arguments,
            f"call-{next(self._call_numbers)}" if call_id is None else call_id,
            root_call_id,
            parent_call_id,
            parent,
            session,
            AbortSignal() if abort is None else abort,
            scope,
            provenance,
            run_id,
            progress,
            approval_pending,
            self.grace_seconds if grace_seconds is None else grace_seconds,
        )

    async def dispatch(self, name: str, arguments: object, **options: Any) -> ToolResult:
        """Take one call through all stages; the options are those of `begin`."""
        call = self.begin(name, arguments, **options)
        await call.prepare()
        await call.execute()
        return await call.finish()

    def abandoned_bodies(self) -> tuple[AbandonedBody, ...]:
        """Return the bodies in threads that were given up and still run."""
        return self.threads.abandoned()

    # --- changes --------------------------------------------------------------------------------

    def on_change(self, listener: Callable[[], object]) -> Disposer:
        """Call `listener()` after tools, restrictions or modes changed.

        A listener that raises while something is added undoes the addition.
        """
        entry = _Listener(listener)
        self._change_listeners.append(entry)

        def dispose() -> None:
            if entry in self._change_listeners:
                self._change_listeners.remove(entry)

        return dispose

    def change(self, insert: Callable[[], None], remove: Callable[[], None]) -> Disposer:
        """Apply a change, tell everybody, and return what takes it back. For scopes."""
        insert()
        self.touch()
        try:
            self.announce()
        except BaseException:
            remove()
            self.touch()
            raise
        disposed = False

        def dispose() -> None:
            nonlocal disposed
            if disposed:
                return
            disposed = True
            remove()
            self.touch()
            self.announce()

        return dispose

    def touch(self) -> None:
        """Forget what was looked up. For scopes."""
        self._generation += 1

    def announce(self) -> None:
        """Tell the change listeners. For scopes."""
        for listener in list(self._change_listeners):
            listener.function()

    # --- for the pipeline -----------------------------------------------------------------------

    def policies(self, scope: Scope | None) -> Policies:
        """Return what a dispatch through this scope meets."""
        layer = self if scope is None else scope
        cached = layer.policies_cache
        if cached is not None and cached.generation == self._generation:
            return cached
        layers = layer.layers()
        if layers[0] is not self:
            raise DefinitionError(f"{layer.name} belongs to another registry")
        mode = next((each.mode for each in reversed(layers) if each.mode is not None), self._presentation)
        layer.policies_cache = Policies(self._generation, layers, mode)
        return layer.policies_cache

    def live_guards(self, scope: Scope | None) -> Iterator[Guard]:
        """Yield each guard once, from the global layer to the scope's own, seeing those added meanwhile."""
        for layer in (self if scope is None else scope).layers():
            guards = layer.listeners["guards"]
            asked: list[_Listener] = []
            while True:
                entry = next((each for each in guards if each not in asked), None)
                if entry is None:
                    break
                asked.append(entry)
                yield entry.function

    def unknown_tool_error(self, name: str, scope: Scope | None) -> UnknownToolError:
        """Say that a name is unknown, what it may have meant, and what there is."""
        known = self.names(scope)
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(map(_quoted, close))}?" if close else "."
        shown = ", ".join(known[:_SHOWN_TOOLS]) or "none"
        more = f" and {len(known) - _SHOWN_TOOLS} more" if len(known) > _SHOWN_TOOLS else ""
        return UnknownToolError(f"unknown tool {_quoted(name)}{hint} Tools: {shown}{more}")

    def collapsed_error(self, name: str) -> UnknownToolError:
        """Say that a tool is to be called from a program."""
        return UnknownToolError(
            f"unknown tool {_quoted(name)}; it is available inside programs only: "
            f"call it from {RUN_CODE} as await tools[{_quoted(name)}](...)"
        )


def _quoted(name: str) -> str:
    return f'"{name}"'


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise DefinitionError("the callable has no name of its own; write @registry.tool(name=...)")
    return name


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise DefinitionError(f"a presentation mode is one of {', '.join(MODES)}, not {mode!r}")


def _names(names: Iterable[str], label: str) -> list[str]:
    if isinstance(names, str):
        raise DefinitionError(f"{label} takes a list of names; write {label}=[{names!r}]")
    return list(names)


def _caller_names() -> Mapping[str, Any]:
    """Return the local names where `tool` is applied, for annotations that name local classes."""
    names: dict[str, Any] = {}
    frame: types.FrameType | None = sys._getframe(2)  # noqa: SLF001  # the one way to reach the caller
    while frame is not None and frame.f_code.co_name != "<module>":
        names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names
