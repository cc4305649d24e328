"""Plain functions as tool bodies: each call runs in a thread.

Python cannot stop a thread. When the caller wants a call to stop, the thread gets a grace period to
end by itself and is then abandoned: it runs on, listed, until it returns.

Knows: running one function in a thread with a grace period, and who was left behind.
Does not know: what the function is for.
"""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AbandonedBody", "AbandonedError", "ThreadRunner"]

_THREADS: Final = 40
"""Threads that run bodies at the same time, abandoned ones not counted (trio's own default)."""


class AbandonedError(Exception):
    """The thread did not end within its grace period; what it did and will do is unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class AbandonedBody:
    """A body that still runs although nobody waits for it."""

    name: str
    call_id: str
    since_seconds: float
    """When it was abandoned, by trio's clock."""


class _Job:
    """One function in one thread: how it ended, and an event for whoever waits."""

    __slots__ = ("done", "error", "value")

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: BaseException | None = None
        self.value: Any = None


class ThreadRunner:
    """Runs bodies in threads and remembers the abandoned ones."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._abandoned: dict[AbandonedBody, None] = {}

    def abandoned(self) -> tuple[AbandonedBody, ...]:
        """Return the bodies that were abandoned and have not returned yet, oldest first."""
        return tuple(self._abandoned)

    async def run(self, function: Callable[[], Any], *, name: str, call_id: str, grace_seconds: float) -> Any:
        """Call `function` in a thread and return what it returns.

        When this task is cancelled, waits up to `grace_seconds` more. A function that ends in that
        time with an exception raises it; one that ends well is a cancelled call all the same.

        Raises:
            AbandonedError: It was still running after the grace period.
        """
        job = _Job()

        async def supervise() -> None:
            # A system task, so that an abandoned thread outlives the call without holding it up.
            try:
                job.value = await trio.to_thread.run_sync(
                    function, abandon_on_cancel=True, limiter=self._limiter
                )
            except BaseException as error:  # noqa: BLE001  # carried to the waiting task, not swallowed
                job.error = error
            job.done.set()

        trio.lowlevel.spawn_system_task(
            supervise, context=contextvars.copy_context(), name=f"tool body {name}"
        )
        try:
            await job.done.wait()
        except trio.Cancelled:
            with trio.move_on_after(grace_seconds, shield=True):
                await job.done.wait()
            if not job.done.is_set():
                self._abandon(job, AbandonedBody(name, call_id, trio.current_time()))
                raise AbandonedError from None
            if isinstance(job.error, Exception):
                raise job.error from None
            raise
        if job.error is not None:
            raise job.error
        return job.value

    def _abandon(self, job: _Job, record: AbandonedBody) -> None:
        self._abandoned[record] = None
        # The thread keeps its place in the limiter; others must not starve for it.
        self._limiter.total_tokens += 1

        async def forget() -> None:
            try:
                await job.done.wait()
            finally:
                # Also when the whole trio run ends first: nobody can hear of the thread after that.
                del self._abandoned[record]
                self._limiter.total_tokens -= 1

        trio.lowlevel.spawn_system_task(forget, name=f"abandoned tool body {record.name}")
