"""Keeps workers parked, hands one to each run in order, and heals a fork server that died.

Knows: how many workers are wanted, who waits for one, whether a core can be spared.
Does not know: programs, frames.
"""

from __future__ import annotations

import math
import os
from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from sandbox.errors import ClosedSandboxError, IsolationUnavailableError, WorkerStartError
from sandbox.fork_server import END_SECONDS, START_SECONDS, ForkServer
from sandbox.idle_cores import is_core_idle
from sandbox.limits import WorkerBudget
from sandbox.restarts import Restarts
from sandbox.workers import Worker

if TYPE_CHECKING:
    from sandbox.isolation.report import StepReport
    from sandbox.launch import Walls
    from sandbox.limits import Limits
    from sandbox.run_message import Offer

_MAX_STARTING: Final = 2 * (os.cpu_count() or 1)
"""Workers being set up at the same time; more would only make each of them later. Arbitrary."""
_PAUSE_SECONDS: Final = 0.005
"""How long a new worker's setting up is put off while another one is parked: it takes a core for some
milliseconds, which the run that has just begun needs more. Arbitrary: a short run is over by then.
Also how long the host's own work for a worker that is gone waits."""
_SCARCE_SECONDS: Final = 0.1
"""How long after a run had to wait for a worker new ones are still made in a hurry. Arbitrary: what it takes
to make a few."""
_MAX_ENDING: Final = 16
"""Workers that may still be ending after their runs have returned. Arbitrary: each takes about 1 ms."""


class _Waiting:
    """A run's place in the queue for a worker."""

    __slots__ = ("answered", "error", "offer", "worker")

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.answered = trio.Event()
        self.worker: Worker | None = None
        self.error: WorkerStartError | ClosedSandboxError | None = None


class WorkerPool:
    """Parked workers, and those that are on their way.

    Args:
        limits: The service's bounds; parked workers are born with them.
        parked: How many workers wait for a run.
        walls: See `Walls`.
    """

    def __init__(self, limits: Limits, parked: int, walls: Walls) -> None:
        self._budget = WorkerBudget.of(limits)
        self._parked_wanted = parked
        self._walls = walls
        self._server: ForkServer | None = None
        self._server_began = 0.0
        self._restarts = Restarts()
        self._parked: deque[Worker] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._starting = 0
        self._are_chores_due = False
        self._scarce_until = -math.inf
        """Until when workers count as scarce although nobody waits. Meanwhile nothing is done ahead in them:
        it would cost the next run more than it saves the one after."""
        self._is_warming_due = False
        self._was_core_idle = False
        """Whether a core had nothing to do when chores were last due, a moment after a program was sent or
        ended. Not asked when a run begins: that would take a third of what it is good for."""
        self._leaving: list[Worker] = []
        """Workers that were killed and have yet to be seen to their end."""
        self._last_offer: Offer | None = None
        self._steady_offer: Offer | None = None
        """What the last two runs offered their programs, and the next will probably, too."""
        self._ending = 0
        self._server_lock = trio.Lock()
        self._nursery: trio.Nursery | None = None
        self._closed = False
        self.steps: tuple[StepReport, ...] = ()
        """What became of each isolation step, as a worker of this pool reported it."""

    @property
    def parked(self) -> int:
        """How many workers wait for a run."""
        return len(self._parked)

    async def open(self, nursery: trio.Nursery, *, require: bool) -> None:
        """Start the fork server and one worker, whose report says what is active.

        Raises:
            IsolationUnavailableError: A mandatory step failed and `require` is set.
            WorkerStartError: There is no working fork server.
        """
        self._nursery = nursery
        worker = await self._start_worker(self._budget, warm=True)
        self.steps = worker.steps
        missing = _missing_mandatory(worker.steps) if self._walls.kernel and require else ()
        if missing:
            await self.retire(worker)
            what = "; ".join(f"{report.name}: {report.detail}" for report in missing)
            raise IsolationUnavailableError(
                tuple(report.name for report in missing), f"mandatory isolation is not available: {what}"
            )
        self._parked.append(worker)
        self._refill()

    def rouse(self) -> None:
        """Have the worker that is probably taken next get going, if a core had nothing else to do lately.

        It stays parked.
        """
        if self._parked and self._was_core_idle and not self._are_scarce():
            self._parked[0].rouse()

    def take_parked(self, budget: WorkerBudget, offer: Offer) -> Worker | None:
        """Return a parked worker that nobody else has, or None; `replace_soon` is then due.

        Args:
            budget: What it must have been born with.
            offer: What its program will find. One that has been told of something else is not given away:
                a program must not be near the names of tools that it was not offered.
        """
        # A bound given at birth; the CPU bound is metered by the host as well and need not differ.
        if self._closed or budget.memory_bytes != self._budget.memory_bytes:
            return None
        for worker in tuple(self._parked):
            if not _fits(worker, offer):
                continue
            self._parked.remove(worker)
            if worker.alive():
                return worker
            self.drop(worker)
        return None

    def note_offer(self, offer: Offer) -> None:
        """Take note of what a program finds, once for each that is sent: the next probably finds it, too."""
        self._steady_offer = offer if offer is self._last_offer else None
        self._last_offer = offer

    def replace_soon(self) -> None:
        """Have a worker prepared in place of one that was taken. To be called when that has its program."""
        if self._parked and not self._are_scarce():
            self._do_chores_soon()
        else:
            # The next run would have to wait for one, or the one after it, as some just had to.
            self._refill()

    async def take(self, budget: WorkerBudget, offer: Offer) -> Worker:
        """Return a worker that nobody else has, parked or not; `replace_soon` is then due.

        Args:
            budget: What it is born with.
            offer: See `take_parked`.

        Raises:
            WorkerStartError: No worker came up.
            ClosedSandboxError: The pool was closed first.
        """
        if self._closed:
            raise ClosedSandboxError("the sandbox is closed")
        if budget.memory_bytes != self._budget.memory_bytes:
            return await self._start_worker(budget, warm=False)
        if (worker := self.take_parked(budget, offer)) is not None:
            return worker
        if self._parked:
            # All of them were told of something else; make room for one that will suit anybody.
            self.drop(self._parked.popleft())
        waiting = _Waiting(offer)
        self._waiting.append(waiting)
        self._scarce_until = trio.current_time() + _SCARCE_SECONDS
        self._refill()
        try:
            await waiting.answered.wait()
        except BaseException:
            if waiting.worker is not None:
                self._park(waiting.worker)
            elif not waiting.answered.is_set():
                self._waiting.remove(waiting)
            raise
        if waiting.worker is None:
            assert waiting.error is not None
            raise type(waiting.error)(str(waiting.error)) from waiting.error
        return waiting.worker

    def drop(self, worker: Worker) -> None:
        """Kill a worker and see to its end in the background, whether or not it had a program."""
        assert self._nursery is not None
        worker.kill()
        self._nursery.start_soon(self.retire, worker)

    async def discard(self, worker: Worker) -> None:
        """Let go of a worker that was killed, without waiting for the kernel to take it apart.

        It executes nothing of its program any more. `close` waits for it; so does this call when many are
        on their way out already.
        """
        if self._closed or self._ending >= _MAX_ENDING:
            await self.retire(worker)
            return
        self._ending += 1
        self._leaving.append(worker)
        self._do_chores_soon()

    async def retire(self, worker: Worker) -> None:
        """End a worker and wait until it is gone."""
        with trio.CancelScope(shield=True):
            with trio.move_on_after(END_SECONDS) as waiting:
                await worker.end()
            if waiting.cancelled_caught:
                # Neither a word about it nor its end: the fork server hangs. Its end is every worker's.
                if self._server is not None:
                    self._server.kill()
                with trio.move_on_after(END_SECONDS):
                    await worker.end()
                worker.close()

    async def close(self) -> None:
        """End every worker and the fork server; returns when the processes are gone."""
        self._closed = True
        while self._waiting:
            self._answer(self._waiting.popleft(), ClosedSandboxError("the sandbox is closed"))
        if self._server is not None:
            await self._server.close()
        while self._parked:
            await self.retire(self._parked.popleft())

    # ---- workers on their way

    def _do_chores_soon(self) -> None:
        if not self._are_chores_due:
            assert self._nursery is not None
            self._are_chores_due = True
            self._nursery.start_soon(self._do_chores)

    async def _do_chores(self) -> None:
        """Do what nobody waits for: have a worker set up in place of one that was taken, clear up after one.

        One task for both, and for several runs: making a task takes a while, too.
        """
        try:
            await trio.sleep(_PAUSE_SECONDS)
        finally:
            self._was_core_idle = is_core_idle()
            if self._was_core_idle and self._parked:
                # Mostly the host is still on this core when the next run is asked for.
                self._parked[0].step_aside()
            self._are_chores_due = False
            leaving, self._leaving = self._leaving, []
            self._refill()
            for worker in leaving:
                await self.retire(worker)
                self._ending -= 1

    def _refill(self) -> None:
        if self._closed:
            return
        assert self._nursery is not None
        wanted = min(len(self._waiting) + self._parked_wanted - len(self._parked), _MAX_STARTING)
        while self._starting < wanted:
            self._starting += 1
            self._nursery.start_soon(self._add_worker)

    async def _add_worker(self, cold: Worker | None = None) -> None:
        """Have one more worker parked.

        Args:
            cold: One that was parked without having been warmed up, which now happens; a new one otherwise.
        """
        try:
            worker = cold or await self._start_worker(self._budget, warm=not self._are_scarce())
            await self._prepare(worker)
        except (WorkerStartError, ClosedSandboxError) as error:
            self._starting -= 1
            if cold is not None:
                # It has ended since it was parked, which says nothing about the next.
                self._refill()
                return
            # Only a run that waits is told; the next one will try again. Parking is only an optimisation.
            if self._waiting:
                self._answer(self._waiting.popleft(), error)
                if self._waiting:
                    self._refill()
        else:
            self._starting -= 1
            self._park(worker)
            self._refill()

    async def _prepare(self, worker: Worker) -> None:
        """Have a worker that nobody waits for do what it can before its program comes."""
        offer = self._steady_offer
        if self._are_scarce() or (worker.is_warm and offer is None):
            return
        is_done = False
        try:
            with trio.move_on_after(START_SECONDS):
                await worker.prepare(offer)
                is_done = True
        except (OSError, trio.ClosedResourceError) as error:
            raise WorkerStartError("a worker ended while it was being set up") from error
        finally:
            if not is_done:
                await self.retire(worker)
        if not is_done:
            raise WorkerStartError(f"a worker was not ready after {START_SECONDS:g} seconds")

    def _park(self, worker: Worker) -> None:
        waiting = next((waiting for waiting in self._waiting if _fits(worker, waiting.offer)), None)
        if waiting is not None:
            self._waiting.remove(waiting)
            self._answer(waiting, worker)
        elif not self._closed and len(self._parked) < self._parked_wanted:
            self._parked.append(worker)
            if not worker.is_warm and not self._is_warming_due:
                assert self._nursery is not None
                self._is_warming_due = True
                self._nursery.start_soon(self._warm_parked)
        else:
            self.drop(worker)

    def _are_scarce(self) -> bool:
        """Return whether runs have to wait for workers, or just had to."""
        return bool(self._waiting) or trio.current_time() < self._scarce_until

    async def _warm_parked(self) -> None:
        """When workers are not scarce any more, warm up those that were parked without."""
        try:
            while self._are_scarce():  # noqa: ASYNC110  # it is time that has to pass
                await trio.sleep(_SCARCE_SECONDS)
        finally:
            self._is_warming_due = False
        assert self._nursery is not None
        for worker in [worker for worker in self._parked if not worker.is_warm]:
            self._parked.remove(worker)
            self._starting += 1
            self._nursery.start_soon(self._add_worker, worker)

    @staticmethod
    def _answer(waiting: _Waiting, answer: Worker | WorkerStartError | ClosedSandboxError) -> None:
        if isinstance(answer, Worker):
            waiting.worker = answer
        else:
            waiting.error = answer
        waiting.answered.set()

    async def _start_worker(self, budget: WorkerBudget, *, warm: bool) -> Worker:
        try:
            return await self._start_worker_of(await self._running_server(), budget, warm=warm)
        except WorkerStartError:
            if self._closed:
                raise
        # One death, of a worker or of the fork server while we asked, says nothing about the next.
        return await self._start_worker_of(await self._running_server(), budget, warm=warm)

    async def _start_worker_of(self, server: ForkServer, budget: WorkerBudget, *, warm: bool) -> Worker:
        worker = await server.fork(budget, warm=warm)
        try:
            with trio.move_on_after(START_SECONDS) as waiting:
                await worker.wait_ready()
        except BaseException:
            await self.retire(worker)
            raise
        if waiting.cancelled_caught:
            await self.retire(worker)
            raise WorkerStartError(f"a worker was not ready after {START_SECONDS:g} seconds")
        server.proven = True
        return worker

    # ---- the fork server

    async def _running_server(self) -> ForkServer:
        server = self._server
        if (
            server is not None
            and not self._closed
            and not self._server_lock.locked()
            and not server.is_gone()
        ):
            # As nearly always, and without a trip through the scheduler.
            return server
        async with self._server_lock:
            if self._closed:
                raise ClosedSandboxError("the sandbox is closed")
            if self._server is None or self._server.is_gone():
                self._note_end()
                if (refusal := self._restarts.refusal()) is not None:
                    raise WorkerStartError(refusal)
                await trio.sleep(self._restarts.pause_seconds())
                self._server = await ForkServer.start(self._walls)
                self._server_began = trio.current_time()
                assert self._nursery is not None
                self._nursery.start_soon(self._attend, self._server)
            return self._server

    def _note_end(self) -> None:
        """Count the end of the fork server there was, once."""
        if self._server is not None:
            self._server = None
            self._restarts.ended(trio.current_time() - self._server_began)

    async def _attend(self, server: ForkServer) -> None:
        """Hear a fork server to its end, clean up after it, and have workers parked again."""
        try:
            await server.run()
        finally:
            # Also when Ctrl-C was raised in there: by then the pool may have forgotten this one for the next.
            await server.close()
        if self._closed:
            return
        if self._server is server:
            self._note_end()
        parked, self._parked = self._parked, deque()
        for worker in parked:
            if worker.alive():
                self._parked.append(worker)
            else:
                await self.retire(worker)
        # A fork server that never made a worker would not make one now: the next run finds out why.
        if server.proven:
            self._refill()


def _fits(worker: Worker, offer: Offer) -> bool:
    return worker.offer is None or worker.offer is offer


def _missing_mandatory(reports: tuple[StepReport, ...]) -> tuple[StepReport, ...]:
    if all(report.active for report in reports):
        # As nearly everywhere: then the host need not load the steps to know which must not be missing.
        return ()
    from sandbox.isolation import plan  # noqa: PLC0415  # see above

    return plan.missing_mandatory(reports)
