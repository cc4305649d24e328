"""Runs the body of one call until it ends or is cut off.

Knows: cancel scopes, and bodies in threads. Does not know: what a body's value means.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import trio

from sandbox.values import GIVE_UP

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from tool_bindings.abort import AbortSignal, Cancellable
    from tool_bindings.binding import BoundTool
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.thread_body import ThreadRunner

__all__ = ["run_body"]


async def run_body(
    bound: BoundTool,
    arguments: Mapping[str, Any],
    context: ToolRunContext,
    signal: AbortSignal,
    threads: ThreadRunner,
    grace_seconds: float,
    scope: Cancellable | None = None,
) -> Any:
    """Return what the body returns, or GIVE_UP when the signal ended it.

    Args:
        bound: The tool.
        arguments: What the body is given.
        context: What the body is given beside its arguments.
        signal: Cuts the body off.
        threads: Where plain bodies run.
        grace_seconds: Seconds a body in a thread gets to end by itself.
        scope: The caller's own scope to cancel instead of a new one; see `ToolRegistry.begin`.

    Raises:
        AbandonedError: A body in a thread went on after its grace.
        BaseException: Whatever the body raises.
    """
    body: Awaitable[Any]
    if bound.runs_in_thread:
        body = _run_in_thread(bound, arguments, context, threads, grace_seconds)
    else:
        body = bound.definition.execute(arguments, context)
    if scope is None:
        with trio.CancelScope() as own:
            signal.attach(own)
            try:
                return await body
            finally:
                signal.detach(own)
        return GIVE_UP
    # Around the caller's scope is a shield, so that nothing but the signal can have cancelled the body.
    signal.attach(scope)
    try:
        value = await body
    except trio.Cancelled:
        return GIVE_UP
    except BaseExceptionGroup as group:
        cancelled, rest = group.split(trio.Cancelled)
        if cancelled is None:
            raise
        if rest is None:
            return GIVE_UP
        raise rest from None
    finally:
        signal.detach(scope)
    # Nothing that waits may follow in a scope that is cancelled, and an aborted call has no value anyway.
    return GIVE_UP if signal.aborted else value


async def _run_in_thread(
    bound: BoundTool,
    arguments: Mapping[str, Any],
    context: ToolRunContext,
    threads: ThreadRunner,
    grace_seconds: float,
) -> Any:
    report = context.report
    if report is not None:
        context.report = lambda *progress: trio.from_thread.run_sync(report, *progress)
    execute = bound.definition.execute
    # Boxed, because trio refuses a thread that returns a coroutine, which such a body may do.
    (value,) = await threads.run(
        lambda: (execute(arguments, context),),
        name=bound.definition.name,
        call_id=context.call_id,
        grace_seconds=grace_seconds,
    )
    return await value if inspect.isawaitable(value) else value
