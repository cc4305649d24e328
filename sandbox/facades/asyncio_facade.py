"""`asyncio`: an allow-list over the standard library's, on whatever loop the worker runs.

Knows: which names are offered. Does not know: the loop, tool calls (an adapter is installed for them).
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from sandbox.guards.exposure import stand_in

Adapter = Callable[[Any], Any]
"""Turns what a program awaits (a tool call that has not started) into what asyncio can schedule."""

Run = Callable[[Any], Any]
"""Drives a coroutine to its end from inside the running program: what `asyncio.run` means there."""

Together = Callable[[tuple[Any, ...]], list[Any] | None]
"""Turns awaitables that are all tool calls into futures, without a task for each; None for any others."""

_PLAIN = (
    "ALL_COMPLETED Barrier BoundedSemaphore BrokenBarrierError CancelledError Condition Event "
    "FIRST_COMPLETED FIRST_EXCEPTION "
    "InvalidStateError LifoQueue Lock PriorityQueue Queue QueueEmpty QueueFull QueueShutDown Semaphore "
    "TimeoutError "
    "current_task iscoroutine iscoroutinefunction isfuture sleep timeout timeout_at"
)

MISSING = {
    "to_thread": "there are no threads; call the function, or await tools together with asyncio.gather",
    "create_subprocess_exec": "there are no subprocesses; use a tool",
    "create_subprocess_shell": "there are no subprocesses; use a tool",
    "subprocess": "there are no subprocesses; use a tool",
    "open_connection": "there is no network; use a tool",
    "start_server": "there is no network; use a tool",
    "all_tasks": "keep the tasks you create in a list",
    "Runner": "await the coroutine directly",
    "get_event_loop": "await directly, or use asyncio.create_task and asyncio.gather",
    "get_running_loop": "use asyncio.create_task and asyncio.gather; time.monotonic() tells the time",
    "new_event_loop": "a loop is already running: await directly",
    "set_event_loop": "a loop is already running: await directly",
}
"""What to write instead of the names left out."""


def _no_adapter(awaitable: Any) -> Any:
    return awaitable


def _no_run(main: Any) -> NoReturn:
    if asyncio.iscoroutine(main):
        main.close()
    raise RuntimeError("asyncio.run() cannot be called from a running event loop; write 'await main()'")


def _not_together(_awaitables: tuple[Any, ...]) -> None:
    return None


class _Installed:
    """What the worker has put in for this program."""

    adapt: Adapter = staticmethod(_no_adapter)
    run: Run = staticmethod(_no_run)
    start_together: Together = staticmethod(_not_together)


def install(*, run: Run, awaitable_adapter: Adapter, start_together: Together = _not_together) -> None:
    """Connect the facade to the worker's loop; called once, before a program starts."""
    _Installed.run = staticmethod(run)
    _Installed.start_together = staticmethod(start_together)
    _Installed.adapt = staticmethod(awaitable_adapter)


def _adapt(awaitable: Any) -> Any:
    if type(awaitable) is types.CoroutineType:
        return awaitable
    if asyncio.iscoroutine(awaitable):
        # What a generator or a class yields goes straight to the event loop.
        raise TypeError(
            f"a {type(awaitable).__name__!r} object is no coroutine: write `async def` and call it"
        )
    return _Installed.adapt(awaitable)


def run(main: Any, *, debug: Any = None) -> Any:
    """Run a coroutine to its end and return its result."""
    del debug
    return _Installed.run(_adapt(main))


def gather(*coros_or_futures: Any, return_exceptions: bool = False) -> Any:
    """Await several awaitables concurrently and return their results in order."""
    together = _Installed.start_together(coros_or_futures)
    if together is None:
        together = [_adapt(item) for item in coros_or_futures]
    return asyncio.gather(*together, return_exceptions=return_exceptions)


def create_task(coro: Any, *, name: str | None = None) -> Any:
    """Start a coroutine or tool call and return its task."""
    return asyncio.create_task(_adapt(coro), name=name)


def ensure_future(coro_or_future: Any) -> Any:
    """Start an awaitable, unless it is a task already."""
    return asyncio.ensure_future(_adapt(coro_or_future))


def wait(fs: Iterable[Any], *, timeout: float | None = None, return_when: str = asyncio.ALL_COMPLETED) -> Any:
    """Wait for tasks; return the sets of done and pending ones."""
    return asyncio.wait([_adapt(item) for item in fs], timeout=timeout, return_when=return_when)


def wait_for(fut: Any, timeout: float | None) -> Any:
    """Await with a time limit, which raises TimeoutError."""
    return asyncio.wait_for(_adapt(fut), timeout)


def shield(arg: Any) -> Any:
    """Await without passing a cancellation on."""
    return asyncio.shield(_adapt(arg))


def as_completed(fs: Iterable[Any], *, timeout: float | None = None) -> Any:
    """Iterate over awaitables in the order they finish."""
    return asyncio.as_completed([_adapt(item) for item in fs], timeout=timeout)


class TaskGroup:
    """A group of tasks that are all awaited when the `async with` block ends."""

    __slots__ = ("_group",)

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> TaskGroup:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> Any:  # noqa: PYI036  # passed on as they come
        return await self._group.__aexit__(*details)

    def create_task(self, coro: Any, *, name: str | None = None) -> Any:
        """Start a coroutine or tool call in this group."""
        return self._group.create_task(_adapt(coro), name=name)

    def __repr__(self) -> str:
        return repr(self._group)


def asyncio_members() -> dict[str, object]:
    """Return what `import asyncio` offers."""
    members: dict[str, object] = {
        name: getattr(asyncio, name) for name in _PLAIN.split() if hasattr(asyncio, name)
    }
    own = (run, gather, create_task, ensure_future, wait, wait_for, shield, as_completed, TaskGroup)
    return {
        **members,
        **{item.__name__: item for item in own},
        "Future": stand_in(asyncio.Future),
        "Task": stand_in(asyncio.Task),
    }
