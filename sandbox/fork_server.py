"""The host's handle on a fork server: start it, ask it for workers, hear what becomes of them, end it.

Knows: the control socket and its messages. Does not know: when workers are needed, programs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from typing import TYPE_CHECKING, Final

import trio

from sandbox import launch
from sandbox.errors import WorkerStartError
from sandbox.isolation.report import StepReport
from sandbox.workers import Worker

if TYPE_CHECKING:
    from sandbox.launch import Launched, Walls
    from sandbox.limits import WorkerBudget

START_SECONDS: Final = 30.0
"""How long the fork server or a worker may take to come up. Arbitrary; 0.2 s is usual."""
END_SECONDS: Final = 5.0
"""How long processes that were told to end may take before the next harder way. Arbitrary; 5 ms is usual."""
_MAX_CONTROL_BYTES: Final = 64 * 1024
_STDERR_BYTES_SHOWN: Final = 2000


class ForkServer:
    """A running fork server. Made by `start`; `run` must be running for workers to make progress."""

    def __init__(self, launched: Launched) -> None:
        self._process = launched.process
        self._process_pidfd = os.pidfd_open(launched.process.pid)
        self._control = launched.control
        self._stderr = launched.stderr
        self._pidfd = -1
        """The process that forks; another one than `_process` when it is pid 1 of its own namespace."""
        self._workers: dict[int, Worker] = {}
        self._next_id = launch.ORDERED_ID
        self._ordered: Worker | None = None
        """A worker that was asked for when the process was launched, and that nobody has got yet."""
        if launched.ordered is not None:
            self._ordered = Worker(
                self._next_id, launched.ordered.wire, launched.ordered.budget, is_warm=True
            )
            self._next_id += 1
        self._sending = trio.Lock()
        self._hears = False
        self._ended = trio.Event()
        self.steps: tuple[StepReport, ...] = ()
        self._gone = False
        self._closing = trio.Lock()
        self.proven = False
        """Whether at least one worker of it got ready."""

    @classmethod
    async def start(cls, walls: Walls) -> ForkServer:
        """Exec a fork server and wait until it is locked down.

        Raises:
            WorkerStartError: It did not come up; the message ends with the last line of its stderr.
        """
        try:
            server = await trio.to_thread.run_sync(_spawn, walls)
        except OSError as error:
            raise WorkerStartError(f"the fork server could not be started: {error.strerror}") from error
        try:
            await server.wait_hello()
        except BaseException:
            await server.close()
            raise
        return server

    async def wait_hello(self) -> None:
        """Wait until the process says that it is locked down. Called by `start`.

        Raises:
            WorkerStartError: It says nothing.
        """
        message: bytes | None = None
        descriptors: list[int] = []
        with trio.move_on_after(START_SECONDS):
            message, descriptors = await self._receive()
        if message is None or not descriptors:
            # Ended, so that what it has to say is complete.
            self.kill()
            said = self._stderr_tail()
            reason = said.rpartition("\n")[2] or "it ended without a word"
            failure = WorkerStartError(f"the fork server did not start: {reason}")
            failure.add_note(said)
            raise failure
        (self._pidfd,) = descriptors
        self.steps = tuple(StepReport(*step) for step in json.loads(message.partition(b" ")[2]))
        if self._ordered is not None:
            self._workers[self._ordered.id] = self._ordered

    async def run(self) -> None:
        """Hear what becomes of workers until the fork server is gone.

        Shielded, because cancelled runs still wait to hear that their worker is gone; `close` ends it.
        """
        self._hears = True
        try:
            with trio.CancelScope(shield=True):
                # Closed already when whoever started it was cancelled at once.
                while self._control.fileno() >= 0:
                    message, descriptors = await self._receive()
                    if message is None:
                        break
                    self._hear(message, descriptors)
        finally:
            # Also when Ctrl-C was raised just here: whoever waits for a word would wait for ever.
            self._gone = True
            for worker in self._workers.values():
                worker.not_forked("the fork server ended")
                worker.exited(None)
            self._workers.clear()
            self._ended.set()

    def _hear(self, message: bytes, descriptors: list[int]) -> None:
        what, worker_id, *rest = message.split(b" ", 2)
        if what == b"forked":
            worker = self._workers[int(worker_id)]
            if descriptors:
                worker.forked(descriptors[0])
            else:
                # The kernel drops a passed descriptor when there is no number left for it.
                # Without its pidfd the worker is of no use; the end of its wire ends it.
                worker.not_forked("this process has no file descriptor left")
        elif what == b"exited":
            status, _, cpu_seconds = rest[0].partition(b" ")
            self._workers.pop(int(worker_id)).exited(int(status), float(cpu_seconds))
        else:
            worker = self._workers.pop(int(worker_id))
            worker.not_forked(rest[0].decode())
            worker.exited(None)

    async def fork(self, budget: WorkerBudget, *, warm: bool) -> Worker:
        """Ask for one more worker.

        Args:
            budget: What it is born with.
            warm: Whether it is warmed up before it is ready. One that was ordered in advance always is.

        Raises:
            WorkerStartError: The fork server is gone, or there is no descriptor left.
        """
        if self._ordered is not None and self._ordered.budget == budget:
            ordered, self._ordered = self._ordered, None
            return ordered
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:
            raise WorkerStartError(f"no wire for another worker: {error.strerror}") from error
        ours.setblocking(False)
        worker = Worker(self._next_id, ours, budget, is_warm=warm)
        self._next_id += 1
        self._workers[worker.id] = worker
        try:
            await self._send(launch.fork_request(worker.id, budget, warm=warm), theirs)
        except BaseException as error:
            self._workers.pop(worker.id, None)
            ours.close()
            if isinstance(error, (OSError, trio.ClosedResourceError)):
                raise WorkerStartError("the fork server is gone") from error
            raise
        finally:
            theirs.close()
        return worker

    def kill(self) -> None:
        """End the fork server, and with it every worker, now. `run` then notices."""
        self._gone = True
        _kill(self._pidfd if self._pidfd >= 0 else self._process_pidfd)

    def is_gone(self) -> bool:
        """Return whether it can fork no more, also when `run` has yet to notice."""
        if not self._gone and self._pidfd >= 0:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            self._gone = bool(poll.poll(0))
        return self._gone

    async def close(self) -> None:
        """End every worker and the fork server; returns when all of them are gone. Safe to call twice."""
        with trio.CancelScope(shield=True):
            async with self._closing:
                await self._close()

    async def _close(self) -> None:
        self._gone = True
        workers = tuple(self._workers.values())
        for worker in workers:
            worker.kill()
        # The end of the control socket ends the fork server, and that ends any worker left.
        try:
            self._control.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # Closed by an earlier call, or the other end is gone.
        await self._wait_process()
        if self._hears:
            await self._ended.wait()
        with trio.move_on_after(END_SECONDS):
            for worker in workers:
                await worker.end()
        self._let_go()

    async def _wait_process(self) -> None:
        if self._process.returncode is not None:
            return
        for pidfd in (self._pidfd, self._process_pidfd):
            # First the harmless way, then the process that forks, then the one that waits for it.
            with trio.move_on_after(END_SECONDS) as waiting:
                await trio.lowlevel.wait_readable(self._process_pidfd)
            if not waiting.cancelled_caught:
                break
            _kill(pidfd)
        # Readable means that it ended, so this does not block.
        await trio.lowlevel.wait_readable(self._process_pidfd)
        self._process.wait()

    def _let_go(self) -> None:
        if self._process_pidfd < 0:
            return
        self._control.close()
        if self._ordered is not None:
            self._ordered.close()
        for descriptor in (self._pidfd, self._process_pidfd, self._stderr):
            if descriptor >= 0:
                os.close(descriptor)
        self._pidfd = self._process_pidfd = self._stderr = -1

    async def _send(self, data: bytes, wire: socket.socket) -> None:
        try:
            # Without taking turns, which costs a trip through the scheduler: a message is sent whole or not.
            socket.send_fds(self._control, [data], [wire.fileno()])
        except BlockingIOError:
            async with self._sending:
                await self._send_later(data, wire)

    async def _send_later(self, data: bytes, wire: socket.socket) -> None:
        while True:
            await trio.lowlevel.wait_writable(self._control)
            try:
                socket.send_fds(self._control, [data], [wire.fileno()])
            except BlockingIOError:
                continue
            return

    async def _receive(self) -> tuple[bytes | None, list[int]]:
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._control, _MAX_CONTROL_BYTES, 1)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._control)
            except ConnectionResetError:
                return None, []
            else:
                return data or None, descriptors

    def _stderr_tail(self) -> str:
        size = os.fstat(self._stderr).st_size
        data = os.pread(self._stderr, _STDERR_BYTES_SHOWN, max(size - _STDERR_BYTES_SHOWN, 0))
        return data.decode("utf-8", errors="replace").strip()


def _kill(pidfd: int) -> None:
    if pidfd >= 0:
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _spawn(walls: Walls) -> ForkServer:
    launched = launch.take_early(walls) or launch.launch(walls)
    try:
        return ForkServer(launched)
    except OSError:
        # No pidfd for it: a kernel before 5.3, or no descriptor left.
        launched.discard()
        raise
