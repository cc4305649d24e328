"""One layer of tools and policies on top of others.

Knows: registration, shadowing, restrictions, presentation modes, and what a layer and its parents add
up to.
Does not know: how a call is made (`registry`, `pipeline`).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, overload

from tool_bindings.binding import BoundTool
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.errors import DefinitionError, DuplicateToolError

if TYPE_CHECKING:
    import types
    from collections.abc import Iterable

    from tool_bindings.definition import ConcurrencySafe, PresentationMeta, Render
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.policy import AroundListener, Guard, Observer, PostListener, PreListener
    from tool_bindings.registry import ToolRegistry
    from tool_bindings.results import ToolResult

__all__ = ["RUN_CODE", "Disposer", "Listener", "Policies", "PresentationMode", "Scope", "check_mode"]

RUN_CODE: Final = "run_code"
"""Name of the tool that runs programs; reserved for the transport in every mode."""

PresentationMode: TypeAlias = Literal["native", "code", "both"]
"""native: tools are offered one by one. code: only `run_code` is. both: tools and `run_code`."""

MODES: Final = ("native", "code", "both")

Disposer: TypeAlias = Callable[[], None]
"""Takes back exactly what it was returned for; calling it again does nothing."""

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
        self.listeners: dict[str, list[Listener]] = {
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
            # Only functions need what reads annotations; a registry of ready definitions does without.
            from tool_bindings.functions import bind_function  # noqa: PLC0415

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
        entry = Listener(listener)
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
        check_mode(mode)
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


class Listener:
    """One registration of a listener; a listener registered twice has two."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_scope_numbers: Final = itertools.count(1)


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise DefinitionError("the callable has no name of its own; write @registry.tool(name=...)")
    return name


def check_mode(mode: str) -> None:
    """Refuse a presentation mode that does not exist."""
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
