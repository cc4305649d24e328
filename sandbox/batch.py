"""The batch that a run is busy with: calls that came together, and how far they are.

Knows: what is left of it, who answers several calls together, in whose task it is served.
Does not know: what answers calls, how a reader is replaced.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    import trio

    from sandbox import wire
    from sandbox.run import Run
    from sandbox.vocabulary import Cancellable, HostCall, Step


class Batch:
    """What is left of a batch.

    For its calls it stands for the scope of the task that serves them, which is another one whenever a call
    waits and takes its task with it.

    Args:
        calls: Its calls, in order.
    """

    __slots__ = ("_calls", "_scope", "_steps")

    def __init__(self, calls: Iterable[wire.Call]) -> None:
        self._calls = deque(calls)
        """Those that have not begun."""
        self._steps: Generator[Step, None, None] | None = None
        """Where several of them are answered together."""
        self._scope: Cancellable

    async def serve(self, run: Run, rest: Iterator[wire.FromWorker], scope: trio.CancelScope) -> bool:
        """Serve what is left; returns whether its reader is done with reading.

        Args:
            run: The run.
            rest: What follows it, for another reader that takes over.
            scope: The reader's.
        """
        self._scope = scope
        while self._steps is not None or self._calls:
            if run.is_over():
                return True  # Asked to stop meanwhile: what is left is not begun.
            if self._steps is None:
                name = self._calls[0].namespace
                space = run.namespaces.get(name)
                if space is None or space.many is None:
                    if not await run.may_go_on() or await run.serve(self._calls.popleft(), rest, scope):
                        return True
                    continue
                self._steps = space.many(self._requests(run, name), run.is_over)
            step = next(self._steps, None)
            if step is None:
                self._steps = None
                continue
            run.answer_together(step.answers)
            if step.waiting is not None:
                request, answer = step.waiting
                request.scope = scope
                if await run.await_answer(request, answer, rest):
                    return True
            elif scope.cancel_called:
                # A call cut itself off: nothing can be waited for in this task any more.
                run.hand_over(rest)
                return True
            elif step.is_turn and not await run.may_go_on():
                return True
        run.batch = None
        return run.is_over()

    def _requests(self, run: Run, namespace: str) -> Iterator[HostCall]:
        """Take the next calls, as long as they are of one namespace and may be made."""
        calls = self._calls
        taken = 0
        # All of those that are taken may have to wait.
        room = run.limits.max_pending_calls - run.calls_pending
        while calls and calls[0].namespace == namespace and not run.is_over():
            if taken and (taken >= room or run.calls_seen >= run.limits.max_calls):
                return  # What was taken is served before the next is refused, or the run ends for it.
            request = run.request(calls.popleft(), self)
            if request is not None:
                taken += 1
                run.calls_started += 1
                yield request

    def cancel(self) -> None:
        """Cancel the scope of the task that serves it."""
        self._scope.cancel()

    def close(self) -> None:
        """Begin no more calls, and end those that have begun and wait for nothing."""
        self._calls.clear()
        if self._steps is not None:
            self._steps.close()
