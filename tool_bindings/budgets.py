"""Call budgets: how often each tool may be called.

Knows: counting and refusing.
Does not know: routes; as a guard it sees nested, direct, batch and MCP calls alike.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tool_bindings.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_bindings.pipeline import Dispatch
    from tool_bindings.registry import Disposer, Scope
    from tool_bindings.results import ToolResult

__all__ = ["CallBudget"]


class CallBudget:
    """Denies calls of a tool beyond a number of them.

    Counts calls that got as far as being allowed; a call that another policy denied costs nothing.

    Args:
        calls: Allowed calls by tool name (>= 0); tools that are not named are not limited.
        per_root_call: Count each direct call and everything nested in it on its own, so that every
            run starts with a full budget. Otherwise one count covers everything.
    """

    def __init__(self, calls: Mapping[str, int], *, per_root_call: bool = False) -> None:
        for name, limit in calls.items():
            if type(limit) is not int or limit < 0:
                raise DefinitionError(
                    f"the call budget of {name!r} must be a whole number >= 0, not {limit!r}"
                )
        self._calls = dict(calls)
        self._per_root_call = per_root_call
        self._used: dict[str | None, Counter[str]] = {}

    def install(self, scope: Scope) -> Disposer:
        """Watch every call through a registry or scope; returns a function that lifts the budget."""
        lift_guard = scope.add_guard(self._guard)
        lift_observer = scope.on_result(self._forget)

        def dispose() -> None:
            lift_guard()
            lift_observer()

        return dispose

    def used(self, name: str) -> int:
        """Return how many calls of a tool are counted now, in all root calls that still run."""
        return sum(counter[name] for counter in self._used.values())

    def _key(self, call: Dispatch) -> str | None:
        return call.root_call_id if self._per_root_call else None

    def _guard(self, call: Dispatch) -> str | None:
        limit = self._calls.get(call.name)
        if limit is None:
            return None
        used = self._used.setdefault(self._key(call), Counter())
        if used[call.name] >= limit:
            where = " in one run" if self._per_root_call else ""
            return f'the call budget of tool "{call.name}" is used up: {limit} calls are allowed{where}'
        used[call.name] += 1
        return None

    def _forget(self, call: Dispatch, _result: ToolResult) -> None:
        # The root call ends after everything nested in it, so nobody counts on its key any more.
        if self._per_root_call and call.parent is None:
            self._used.pop(call.root_call_id, None)
