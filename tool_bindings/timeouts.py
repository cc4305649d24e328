"""The timeout policy: enforces `timeout_seconds` of definitions.

Knows: deadlines.
Does not know: how a body is stopped; it only fires the signal the body gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sandbox.values import number_text
from tool_bindings.abort import AbortSignal
from tool_bindings.definition import check_timeout
from tool_bindings.errors import ToolTimeoutError
from tool_bindings.results import ToolFailure, failure_from_exception

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tool_bindings.pipeline import Dispatch
    from tool_bindings.registry import Disposer, Scope
    from tool_bindings.results import ToolResult

__all__ = ["enforce_timeouts"]


def enforce_timeouts(scope: Scope, *, default_seconds: float | None = None) -> Disposer:
    """Stop bodies at their deadline, for every call through a registry or scope.

    A body whose deadline passed is stopped and awaited; the call fails with `TOOL_TIMEOUT`, even when
    the body ended well after all.

    Args:
        scope: The registry, for all calls, or a scope of it.
        default_seconds: Deadline of tools that declare none; None leaves them without one.

    Returns:
        A function that lifts the policy.
    """
    check_timeout(default_seconds, "enforce_timeouts()")

    async def around(call: Dispatch, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        own = None if call.definition is None else call.definition.timeout_seconds
        seconds = default_seconds if own is None else own
        if seconds is None:
            return await proceed()
        return await _with_deadline(call, proceed, seconds)

    return scope.around(around)


async def _with_deadline(
    call: Dispatch, proceed: Callable[[], Awaitable[ToolResult]], seconds: float
) -> ToolResult:
    deadline = AbortSignal()

    async def fire() -> None:
        await trio.sleep(seconds)
        deadline.abort(f"timed out after {seconds:g} s")

    outer = call.signal
    call.signal = AbortSignal.any(outer, deadline)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fire)
        try:
            result = await proceed()
        finally:
            call.signal = outer
            nursery.cancel_scope.cancel()
    if not deadline.aborted:
        return result
    timed_out = failure_from_exception(
        ToolTimeoutError(f"tool call timed out after {number_text(seconds * 1000)}ms")
    )
    return ToolFailure(timed_out.error, timed_out.content, None, result.additional_contexts)
