"""The set of tools and policies: the global layer, and the way to call any tool.

Knows: looking tools up, starting dispatches, and who hears of changes.
Does not know: what happens inside a dispatch (`pipeline`), or who runs programs.
"""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING, Any, Final, Literal

from sandbox.values import thaw
from tool_bindings.abort import AbortSignal
from tool_bindings.caller import Caller
from tool_bindings.errors import DefinitionError, UnknownToolError
from tool_bindings.pipeline import Dispatch
from tool_bindings.scope import RUN_CODE, Disposer, Listener, Policies, PresentationMode, Scope, check_mode
from tool_bindings.thread_body import ThreadRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.values import JsonValue
    from tool_bindings.abort import Cancellable
    from tool_bindings.approval import ApprovalProvider
    from tool_bindings.binding import BoundTool
    from tool_bindings.caller import DispatchToken, Provenance
    from tool_bindings.definition import ReportProgress, ToolDefinition
    from tool_bindings.policy import Guard
    from tool_bindings.results import ToolResult
    from tool_bindings.thread_body import AbandonedBody

__all__ = ["RUN_CODE", "Disposer", "Policies", "PresentationMode", "Scope", "ToolRegistry"]

GRACE_SECONDS: Final = 5.0
"""Seconds an aborted body in a thread gets to end by itself (decision 0105; arbitrary)."""

_SHOWN_TOOLS: Final = 30
"""Tool names listed in an unknown-tool error (arbitrary: about a line of text)."""


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
        check_mode(presentation)
        super().__init__(self, None, "the global layer")
        self.approval_provider = approval_provider
        self.grace_seconds = grace_seconds
        self.threads = ThreadRunner()
        self._presentation = presentation
        self.generation = 0
        """Grows with every change of tools and policies. For scopes and dispatches."""
        self._change_listeners: list[Listener] = []
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
        cancel_scope: Cancellable | None = None,
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
            cancel_scope: The innermost scope around the caller, shielded from everything outside and used
                for nothing else. An abort cancels it instead of a new one, and the caller then shields what
                it does after `execute`. Saves a caller of many short calls a scope for each.
        """
        caller = Caller(
            self.grace_seconds if grace_seconds is None else grace_seconds,
            root_call_id,
            parent_call_id,
            parent,
            session,
            scope,
            provenance,
            run_id,
            progress,
            approval_pending,
        )
        return self.begin_for(caller, name, arguments, call_id, abort, cancel_scope, transport=transport)

    def begin_for(
        self,
        caller: Caller,
        name: str,
        arguments: object,
        call_id: str | None = None,
        abort: AbortSignal | None = None,
        cancel_scope: Cancellable | None = None,
        *,
        transport: BoundTool | None = None,
    ) -> Dispatch:
        """Start one of many dispatches that have their caller in common; otherwise as `begin`.

        Args:
            caller: Who makes the call.
            name: As for `begin`.
            arguments: As for `begin`.
            call_id: As for `begin`.
            abort: As for `begin`.
            cancel_scope: As for `begin`.
            transport: As for `begin`.
        """
        policies = self.policies(caller.scope)
        bound = policies.view.get(name) if transport is None else transport
        return Dispatch(
            self,
            caller,
            policies,
            bound,
            name,
            arguments,
            f"call-{next(self._call_numbers)}" if call_id is None else call_id,
            AbortSignal() if abort is None else abort,
            cancel_scope,
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
        entry = Listener(listener)
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
        self.generation += 1

    def announce(self) -> None:
        """Tell the change listeners. For scopes."""
        for listener in list(self._change_listeners):
            listener.function()

    # --- for the pipeline -----------------------------------------------------------------------

    def policies(self, scope: Scope | None) -> Policies:
        """Return what a dispatch through this scope meets."""
        layer = self if scope is None else scope
        cached = layer.policies_cache
        if cached is not None and cached.generation == self.generation:
            return cached
        layers = layer.layers()
        if layers[0] is not self:
            raise DefinitionError(f"{layer.name} belongs to another registry")
        mode = next((each.mode for each in reversed(layers) if each.mode is not None), self._presentation)
        layer.policies_cache = Policies(self.generation, layers, mode)
        return layer.policies_cache

    def live_guards(self, scope: Scope | None) -> Iterator[Guard]:
        """Yield each guard once, from the global layer to the scope's own, seeing those added meanwhile."""
        for layer in (self if scope is None else scope).layers():
            guards = layer.listeners["guards"]
            asked: list[Listener] = []
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
