"""The host's side of running programs: a queue, a worker for each run, and an end of everything.

Knows: how many runs there may be, when the sandbox is closed. Does not know: frames, forking, what a
host function does.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from sandbox.errors import ClosedSandboxError, SandboxBusyError, UnsupportedPlatformError
from sandbox.launch import Walls
from sandbox.limits import WorkerBudget
from sandbox.next_steps import advised
from sandbox.nursery import open_background_nursery
from sandbox.pool import WorkerPool
from sandbox.run import LogListener, Run
from sandbox.run_message import Offer, run_message
from sandbox.stop import Stop
from sandbox.stuck_calls import StuckCallListener, StuckCalls
from sandbox.vocabulary import Failure, HostCall, Outcome, Program, SandboxSettings, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sandbox.isolation.report import StepReport
    from sandbox.limits import Limits
    from sandbox.workers import Worker

__all__ = ["Sandbox", "SandboxStatistics", "Stop", "open_sandbox", "open_sandbox_with_walls"]

CLOSED: Final = "the sandbox was closed"
"""The reason of runs that their sandbox did not outlive."""

_MAX_OFFERS: Final = 4
"""Kept of what programs found. Arbitrary: few callers of one sandbox offer different things in turns."""

_logger = logging.getLogger("sandbox")


class SandboxStatistics(NamedTuple):
    """A sandbox at one moment."""

    running: int
    queued: int
    completed: int
    parked: int


class Started:
    """A program that was sent to a worker before its run began; see `Sandbox.start`."""

    __slots__ = ("limits", "program", "run", "stop", "unsent", "worker")

    def __init__(self, worker: Worker, unsent: memoryview, program: Program, limits: Limits) -> None:
        self.worker: Worker | None = worker
        """None once it has been run, or given up."""
        self.unsent = unsent
        """What the worker has not been sent yet."""
        self.program = program
        self.limits = limits
        self.run: Run | None = None
        """Once it has been heard; see `Sandbox.hear`."""
        self.stop: Stop | None = None
        """What ends it from outside, likewise."""


class Sandbox:
    """Runs programs. Made by `open_sandbox`; nobody else constructs it."""

    def __init__(self, settings: SandboxSettings, pool: WorkerPool, on_stuck_call: StuckCallListener) -> None:
        self._settings = settings
        self._pool = pool
        self._on_stuck_call = on_stuck_call
        self._slots = trio.Semaphore(settings.max_concurrent_runs)
        self._stops: set[Stop] = set()
        self._workers: set[Worker] = set()
        """Those that run a program."""
        self._quiet: trio.Event | None = None
        self._queued = 0
        self._running = 0
        self._completed = 0
        self._closed = False
        self._offers: list[Offer] = []
        """What the last programs found, the latest first; the next one probably finds one of these."""

    @property
    def isolation(self) -> tuple[StepReport, ...]:
        """What became of each isolation step on this machine, as a worker reported it."""
        return self._pool.steps

    def statistics(self) -> SandboxStatistics:
        """Return how many runs are where, and how many workers wait for one."""
        return SandboxStatistics(self._running, self._queued, self._completed, self._pool.parked)

    def rouse(self) -> None:
        """Let a worker know that a program will be started within a moment, if that does not hurt anybody.

        For callers that have something to do before `start`. A worker that is woken takes a while to become
        quick; nothing else happens, and nothing is owed.
        """
        if not self._workers:
            self._pool.rouse()

    def start(self, program: Program, limits: Limits) -> Started | None:
        """Send a program to a parked worker, if one is free at once, and let it begin.

        For callers that have something to do before `run`: nothing that the program says is heard until
        then, so none of its calls is made, and it can still be given up without a trace.

        Args:
            program: As for `run`.
            limits: As for `run`.

        Returns:
            What `run` or `give_up` is to be called with, or None: then `run` will see to it.
        """
        if self._closed or self._slots.value == 0 or _refuse_source(program.source, limits) is not None:
            return None
        return self._start(program, limits, at_once=False)

    def _start(self, program: Program, limits: Limits, *, at_once: bool) -> Started | None:
        """Send a program to a parked worker; None without one. It holds one of the slots, which is free."""
        offer = self._offer_of(program)
        worker = self._pool.take_parked(WorkerBudget.of(limits), offer)
        if worker is None:
            return None
        self._slots.acquire_nowait()
        try:
            return self._send(worker, offer, program, limits, at_once=at_once)
        except BaseException:
            self._slots.release()
            raise

    async def hear(
        self,
        started: Started,
        *,
        stop: Stop,
        on_log: LogListener | None = None,
        on_accepted: Callable[[], object] | None = None,
    ) -> bool:
        """Hear what a program says within a moment, and return whether it is over by then.

        Most short programs are; for the others a caller can then get ready to wait. Once, to be followed by
        `run`. No call of the program is made before that, and it can still be given up.

        Args:
            started: What `start` returned.
            stop: As for `run`, which goes on with this one.
            on_log: As for `run`, likewise.
            on_accepted: As for `run`, which does not call it then.
        """
        assert started.worker is not None, "it is neither run nor given up yet"
        assert started.run is None, "what is heard is heard once"
        started.stop = stop
        run = started.run = self._make_run(started, started.worker, stop, on_log)
        # A moment, which nobody need cut short: a program must not be left half heard.
        with trio.CancelScope(shield=True):
            await run.hear(on_accepted)
        return run.is_over()

    def give_up(self, started: Started) -> None:
        """End a program that was started and will not be run. Harmless when it was run."""
        if started.worker is not None:
            worker, started.worker = started.worker, None
            self._workers.remove(worker)
            self._slots.release()
            self._pool.drop(worker)

    async def run(
        self,
        program: Program,
        *,
        limits: Limits | None = None,
        stop: Stop | None = None,
        on_log: LogListener | None = None,
        on_accepted: Callable[[], object] | None = None,
        started: Started | None = None,
    ) -> Outcome:
        """Run one program in a worker of its own, from the first instruction to quiescence.

        Returns only when every host call has ended and the worker is gone; of a worker whose program came to
        its own end, that it has been killed is enough (decision 0060). Cancelling this call kills it first.

        Args:
            program: What to run, and what it may call.
            limits: This run's bounds; by default the sandbox's own. Nothing may be looser than those.
            stop: A way to end the run from outside; it then settles as `abort`.
            on_log: Gets printed text as it arrives, in pieces.
            on_accepted: Called once, when the program has been sent to its worker, or has to wait for one:
                what only has to be done before the first call, while the worker has its own things to do.
            started: What `start` returned for this program and these limits. When it has been heard, `stop`,
                `on_log` and `on_accepted` are those it was heard with.

        Returns:
            How the run ended; what the program did wrong is its `failure`.

        Raises:
            SandboxBusyError: Too many runs are waiting already.
            WorkerStartError: No worker could be started.
            ClosedSandboxError: The sandbox was closed before the call.
        """
        if self._closed:
            raise ClosedSandboxError("the sandbox is closed")
        limits = self._settings.limits if limits is None else limits
        if started is not None and started.worker is None:
            started = None  # It was given up.
        if started is None:
            if (refused := _refuse_source(program.source, limits)) is not None:
                return _unstarted(refused)
            if self._slots.value == 0 and self._queued >= self._settings.max_queued_runs:
                raise SandboxBusyError(
                    f"{self._queued} runs are waiting for a worker already;"
                    f" the limit is max_queued_runs={self._settings.max_queued_runs}"
                )
        elif started.stop is not None:
            stop = started.stop
        stop = stop or Stop()
        self._stops.add(stop)
        try:
            if started is None:
                # Without a trip through the scheduler, which takes as long as all else before it is sent.
                await trio.lowlevel.checkpoint_if_cancelled()
                if stop.requested:
                    return _unstarted(Failure("abort", stop.reason))
                if self._slots.value:
                    started = self._start(program, limits, at_once=True)
            if started is None:
                if on_accepted is not None:
                    on_accepted()
                    on_accepted = None
                if not await self._wait_slot(stop):
                    return _unstarted(Failure("abort", stop.reason))
            self._running += 1
            try:
                if started is None:
                    offer = self._offer_of(program)
                    # A caller may have shielded itself, and whoever makes workers may have been cancelled.
                    with trio.CancelScope() as waiting:
                        stop.listen(waiting.cancel)
                        worker = await self._pool.take(WorkerBudget.of(limits), offer)
                    stop.listen(None)
                    if waiting.cancelled_caught:
                        return _unstarted(Failure("abort", stop.reason))
                    started = self._send(worker, offer, program, limits, at_once=True)
                return await self._settle(started, stop, on_log, on_accepted)
            finally:
                self._running -= 1
                self._completed += 1
                self._slots.release()
        finally:
            self._stops.discard(stop)
            if self._quiet is not None and not self._stops:
                self._quiet.set()

    def _offer_of(self, program: Program) -> Offer:
        offers = self._offers
        if offers and offers[0].is_of(program):
            return offers[0]
        offer = next((offer for offer in offers if offer.is_of(program)), None)
        if offer is None:
            offer = Offer(program)
            del offers[_MAX_OFFERS - 1 :]
        else:
            offers.remove(offer)
        offers.insert(0, offer)
        return offer

    def _send(
        self, worker: Worker, offer: Offer, program: Program, limits: Limits, *, at_once: bool
    ) -> Started:
        """Give a worker its program.

        Args:
            worker: The worker.
            offer: What the program finds.
            program: The program.
            limits: Its bounds.
            at_once: Whether it is waited for at once, as opposed to when the host has done something else.
        """
        for other in self._workers:
            other.placement.let_go()
        self._workers.add(worker)
        try:
            steps_aside = not at_once and self._is_alone()
            unsent = worker.send_program(offer, run_message(program, limits), steps_aside=steps_aside)
        except BaseException:
            self._workers.remove(worker)
            self._pool.drop(worker)
            raise
        self._pool.note_offer(offer)
        self._pool.replace_soon()
        return Started(worker, unsent, program, limits)

    async def _wait_slot(self, stop: Stop) -> bool:
        """Wait in line for the right to run; returns False when the run was stopped first."""
        if self._slots.value:
            self._slots.acquire_nowait()
            return True
        self._queued += 1
        try:
            with trio.CancelScope() as waiting:
                stop.listen(waiting.cancel)
                await self._slots.acquire()
        finally:
            self._queued -= 1
            stop.listen(None)
        if waiting.cancelled_caught:
            return False
        if stop.requested:
            self._slots.release()
            return False
        return True

    async def _settle(
        self,
        started: Started,
        stop: Stop,
        on_log: LogListener | None,
        on_accepted: Callable[[], object] | None,
    ) -> Outcome:
        worker, started.worker = started.worker, None
        assert worker is not None, "nobody else runs it"
        run = started.run
        try:
            if run is None:
                run = self._make_run(started, worker, stop, on_log)
                await run.hear(on_accepted)
            outcome = await run.settle()
        except BaseException:
            await self._pool.retire(worker)
            raise
        finally:
            self._workers.remove(worker)
        if run.reported_its_end:
            await self._pool.discard(worker)
        else:
            await self._pool.retire(worker)
        return outcome

    def _make_run(self, started: Started, worker: Worker, stop: Stop, on_log: LogListener | None) -> Run:
        return Run(
            worker,
            started.program,
            started.limits,
            unsent=started.unsent,
            stop=stop,
            on_log=on_log,
            stuck_calls=StuckCalls(self._on_stuck_call, self._settings.grace_seconds),
            is_alone=self._is_alone,
        )

    def _is_alone(self) -> bool:
        return len(self._workers) == 1

    async def close(self) -> None:
        """Stop what runs or waits, and wait until it is settled. `open_sandbox` calls it at its end."""
        self._closed = True
        with trio.CancelScope(shield=True):
            if self._stops:
                self._quiet = trio.Event()
                for stop in tuple(self._stops):
                    stop.request(CLOSED)
                await self._quiet.wait()


@contextlib.asynccontextmanager
async def open_sandbox(
    settings: SandboxSettings | None = None, *, on_stuck_call: StuckCallListener | None = None
) -> AsyncIterator[Sandbox]:
    """Start a sandbox, and end it with every run and process of it.

    Args:
        settings: Limits and isolation; the defaults are safe.
        on_stuck_call: Gets, once each `grace_seconds`, every call whose function goes on after its run
            has ended, with the seconds since then. By default a warning is logged.

    Raises:
        UnsupportedPlatformError: This is not Linux.
        IsolationUnavailableError: A mandatory wall is missing and the settings require it.
        WorkerStartError: Workers cannot be started on this machine.
    """
    async with open_sandbox_with_walls(
        settings or SandboxSettings(), Walls(), on_stuck_call=on_stuck_call
    ) as sandbox:
        yield sandbox


@contextlib.asynccontextmanager
async def open_sandbox_with_walls(
    settings: SandboxSettings, walls: Walls, *, on_stuck_call: StuckCallListener | None = None
) -> AsyncIterator[Sandbox]:
    """`open_sandbox` with one of the walls taken down, for tests; see `sandbox.testing`."""
    require_platform()
    pool = WorkerPool(settings.limits, settings.parked_workers, walls)
    async with open_background_nursery() as nursery:
        try:
            await pool.open(nursery, require=settings.isolation == "require")
            sandbox = Sandbox(settings, pool, on_stuck_call or _log_stuck_call)
            try:
                yield sandbox
            finally:
                await sandbox.close()
        finally:
            await pool.close()


def require_platform() -> None:
    """Check that this system can have workers at all.

    Raises:
        UnsupportedPlatformError: It cannot; the message names the way out.
    """
    if sys.platform != "linux":
        raise UnsupportedPlatformError(
            f"programs run on Linux only, and this is {sys.platform}: run codemode in a Linux container,"
            " for example `docker run -it --rm -v .:/work -w /work python:3.13 bash`"
        )


def _log_stuck_call(call: HostCall, seconds: float) -> None:
    _logger.warning(
        "%s.%s (call %d) goes on %.1f s after its run has ended",
        call.namespace,
        call.member,
        call.id,
        seconds,
    )


def _unstarted(failure: Failure) -> Outcome:
    return Outcome((), Usage(0.0, 0.0, 0, 0), failure=advised(failure))


def _refuse_source(source: str, limits: Limits) -> Failure | None:
    # A character takes at most 4 bytes, so most programs need not be encoded to be measured.
    if 4 * len(source) <= limits.max_source_bytes:
        return None
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > limits.max_source_bytes:
        return Failure(
            "policy",
            f"the program has {size} bytes; the limit is max_source_bytes={limits.max_source_bytes}",
            hint="pass large data to a tool, or read it from one, instead of writing it into the program",
        )
    return None
