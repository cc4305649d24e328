"""One worker process from the host's side: its wire, its pidfd, its CPU meter, its end.

Knows: one process. Does not know: how it is forked, what runs in it.
It is signalled and waited for through its pidfd, so no signal can reach a process that happens to
have an old number.
"""

from __future__ import annotations

import functools
import os
import select
import signal
from typing import TYPE_CHECKING, Final

import trio

from sandbox import values, wire
from sandbox.errors import WireProtocolError, WorkerStartError
from sandbox.isolation.report import StepReport
from sandbox.meter import CpuMeter, pid_of
from sandbox.placement import Placement, get_ready

if TYPE_CHECKING:
    import socket

    from sandbox.limits import WorkerBudget
    from sandbox.run_message import Offer

_READY_FRAME_BYTES: Final = 64 * 1024
_WARM: Final = values.encode([wire.WARM, None])
_ROUSE: Final = wire.pack([values.encode([wire.ROUSE, None])])
_MOST_ROUSED: Final = 50
"""Times one worker is roused: each takes a millisecond or two of its own CPU bound, which the kernel counts
from its birth, and of which a second is spare. Mostly the first time is followed by its program."""
_STATUS_SECONDS: Final = 5.0
"""How long the fork server may take to report a worker that has ended. Arbitrary; 1 ms is usual."""


class Worker:
    """One worker process, from fork to its end."""

    def __init__(
        self, worker_id: int, wire_socket: socket.socket, budget: WorkerBudget, *, is_warm: bool
    ) -> None:
        self.id = worker_id
        self.budget = budget
        self.is_warm = is_warm
        """Whether it has been through a program already, or was told to. One that has not takes twice as long
        for its first, and was ready in half the time."""
        self.socket = wire_socket
        self.steps: tuple[StepReport, ...] = ()
        self.offer: Offer | None = None
        """What it was told that its program will find; until then it fits every program."""
        self.placement: Placement
        self.exit_status: int | None = None
        """Exit code, negative for a signal; None when the fork server died before it could tell."""
        self._pidfd = -1
        self._meter: CpuMeter | None = None
        self._idle_cpu_seconds = 0.0
        self._used_seconds = 0.0
        """CPU time since the fork, as last read."""
        self._final_cpu_seconds: float | None = None
        self._forked = trio.Event()
        self._reported = trio.Event()
        self._ending = trio.Lock()
        self._start_failure: str | None = None
        self._roused = 0

    # ---- told by the fork server's reader

    def forked(self, pidfd: int) -> None:
        """Take note that the process exists."""
        self._pidfd = pidfd
        self._forked.set()

    def not_forked(self, reason: str) -> None:
        """Take note that there is no process to hold on to."""
        if not self._forked.is_set():
            self._start_failure = reason
            self._forked.set()

    def exited(self, status: int | None, cpu_seconds: float | None = None) -> None:
        """Take note that the process was reaped, or that nobody will ever tell."""
        if not self._reported.is_set():
            self.exit_status = status
            self._final_cpu_seconds = cpu_seconds
            self._reported.set()

    # ---- used by the pool and by runs

    async def wait_ready(self) -> None:
        """Wait until the worker is locked down and parked.

        Raises:
            WorkerStartError: It never got there.
        """
        await self._forked.wait()
        if self._start_failure is not None:
            raise WorkerStartError(f"a worker could not be forked: {self._start_failure}")
        try:
            self.steps = _steps_in(await self._first_payload())
        except (OSError, trio.ClosedResourceError, WireProtocolError) as error:
            # Among them: a fork server that died has had this worker's wire closed meanwhile.
            raise WorkerStartError("a worker did not come up as it should") from error
        try:
            pid = pid_of(self._pidfd)
        except OSError as error:
            raise WorkerStartError("the host has no /proc, without which no worker can be metered") from error
        if pid is None:
            raise WorkerStartError("a worker ended while it was being set up")
        self._meter = CpuMeter(pid)
        self.placement = Placement(pid)
        self._idle_cpu_seconds = self._used_seconds = self._meter.read() or 0.0

    async def _first_payload(self) -> bytes:
        buffer = wire.FrameBuffer(_READY_FRAME_BYTES)
        while (payload := buffer.next_payload()) is None:
            await trio.lowlevel.wait_readable(self.socket)
            data = self.socket.recv(_READY_FRAME_BYTES)
            if not data:
                raise WorkerStartError("a worker ended while it was being set up")
            buffer.feed(data)
        return bytes(payload)

    async def prepare(self, offer: Offer | None) -> None:
        """Have a worker warm up, and set up what its program will find, while it waits.

        Args:
            offer: What the program will find; None when that is not known.

        Raises:
            OSError: It is gone.
            trio.ClosedResourceError: The fork server is, and with it the worker.
        """
        get_ready()
        messages = [] if self.is_warm else [_WARM]
        if offer is not None:
            messages.append(offer.message)
        self.is_warm = True
        self.offer = offer
        frame = memoryview(wire.pack(messages))
        while frame:
            try:
                frame = frame[self.socket.send(frame) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.socket)

    def step_aside(self) -> bool:
        """Keep a parked worker off the core this thread is on; return whether that can be."""
        return self.alive() and self.placement.step_aside()

    def rouse(self) -> None:
        """Tell it that a program will come within a moment, on a core that this thread does not need."""
        if self._roused < _MOST_ROUSED and (self.placement.is_aside() or self.step_aside()):
            self._roused += 1
            try:
                self.socket.send(_ROUSE)
            except OSError:
                pass  # It is gone, which whoever takes it finds out, or has not heard what was said before.

    def send_program(self, offer: Offer, message: bytes, *, steps_aside: bool) -> memoryview:
        """Send the program, as far as it can be sent without waiting; return what is left to send.

        Args:
            offer: What the program finds.
            message: Its `run` message.
            steps_aside: Whether both have something to do now, and nobody else.
        """
        is_prepared = self.offer is offer
        if is_prepared and steps_aside:
            # One that was not has been in nobody's plans, as in a process that runs a single program.
            self.placement.step_aside()
        elif not steps_aside:
            self.placement.let_go()
        if self._meter is not None:
            self._idle_cpu_seconds = self._used_seconds = self._meter.read() or self._used_seconds
        frame = memoryview(wire.pack([message] if is_prepared else [offer.message, message]))
        self.offer = offer
        try:
            return frame[self.socket.send(frame) :]
        except BlockingIOError:
            return frame
        except (BrokenPipeError, ConnectionResetError):
            return frame[:0]  # The worker is gone; whoever reads finds out why.

    def compute_seconds(self) -> float:
        """Return the CPU time used since the worker was parked, as the kernel measures it.

        Of a process that is gone, what the fork server reported, or else the last value that was read.
        """
        used = self._final_cpu_seconds
        if used is None and self._meter is not None:
            used = self._meter.read()
        if used is not None:
            self._used_seconds = used
        return max(self._used_seconds - self._idle_cpu_seconds, 0.0)

    async def wait_metered(self) -> None:
        """Make sure that `compute_seconds` is true now: of a process that is gone, wait for the report."""
        if self._meter is None or self._meter.read() is None:
            await self.wait_exit_status()

    def alive(self) -> bool:
        """Return whether a parked worker can still take a run."""
        return not self._reported.is_set() and not self._has_ended()

    def _has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def kill(self) -> None:
        """End the process now; harmless when it has ended already."""
        if self._pidfd >= 0:
            try:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def end(self) -> None:
        """Kill the process, wait until it is gone, let go of its descriptors. Safe to call twice."""
        if self._pidfd >= 0 and not self._ending.locked() and self._has_ended():
            # As nearly always: then there is nothing to wait for, not even a turn of the scheduler.
            self.close()
            return
        await self._forked.wait()
        async with self._ending:
            if self._pidfd >= 0:
                self.kill()
                await trio.lowlevel.wait_readable(self._pidfd)
            self.close()

    async def wait_exit_status(self) -> int | None:
        """Return how the process ended, once it has: see `exit_status`."""
        with trio.move_on_after(_STATUS_SECONDS):
            await self._reported.wait()
        return self.exit_status

    def close(self) -> None:
        """Let go of the descriptors, whatever the process does."""
        self.socket.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


@functools.lru_cache(maxsize=8)
def _steps_in(payload: bytes) -> tuple[StepReport, ...]:
    """Return the steps that a worker reports with its first frame.

    Nearly all workers say the same, so what it means is found out once.

    Raises:
        WireProtocolError: It is no such report.
        WorkerStartError: It says that the worker could not be set up.
    """
    messages = wire.decode_payload(payload)
    ready = wire.parse_message(messages[0]) if len(messages) == 1 else None
    if not isinstance(ready, wire.Ready):
        raise WireProtocolError("a worker says something else than that it is ready")
    for name, _, detail in ready.steps:
        if name == wire.BROKEN_START:
            # The text is a traceback of ours; its last line says what it was.
            reason = detail.strip().rpartition("\n")[2]
            failure = WorkerStartError(f"a worker could not be set up: {reason}")
            failure.add_note(detail)
            raise failure
    return tuple(StepReport(*step) for step in ready.steps)
