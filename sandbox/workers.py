"""The host's side of worker processes: the fork server's handle, parked workers, ends of lives.

Knows: processes, pidfds, the control socket. Does not know: programs, frames.
Every process is waited for through a pidfd and signalled through one, so no signal can reach a
process that happens to have an old number.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import Any, Final

import psutil
import trio

from sandbox import wire
from sandbox.errors import IsolationUnavailableError, WireProtocolError, WorkerStartError
from sandbox.isolation import plan
from sandbox.limits import MIB, Limits

_MAX_CONTROL_BYTES: Final = 64 * 1024
_START_SECONDS: Final = 30.0
"""How long the fork server or a worker may take to come up. Arbitrary; 0.2 s is usual."""
_END_SECONDS: Final = 5.0
"""How long processes that were told to end may take before the next harder way. Arbitrary; 5 ms is usual."""
_READY_FRAME_BYTES: Final = 64 * 1024
_STDERR_BYTES_SHOWN: Final = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class Walls:
    """Which walls stand. Anything but the default is for tests that prove each wall alone."""

    language: bool = True
    kernel: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerBudget:
    """Bounds a worker is born with, because it cannot change them once locked down."""

    memory_bytes: int
    cpu_seconds: int

    @classmethod
    def of(cls, limits: Limits) -> WorkerBudget:
        """Return the birth bounds for runs under these limits."""
        return cls(limits.memory_mb * MIB, math.ceil(limits.compute_seconds))


class Worker:
    """One worker process, from fork to its reaped end."""

    def __init__(self, worker_id: int, wire_socket: socket.socket, budget: WorkerBudget) -> None:
        self.id = worker_id
        self.budget = budget
        self.socket = wire_socket
        self.steps: tuple[plan.StepReport, ...] = ()
        self.exit_status: int | None = None
        """Exit code, negative for a signal; None when the fork server died before it could tell."""
        self._pidfd = -1
        self._process: psutil.Process | None = None
        self._idle_cpu_seconds = 0.0
        self._forked = trio.Event()
        self._reported = trio.Event()
        self._failure: str | None = None

    # ---- told by the fork server's reader

    def forked(self, pidfd: int) -> None:
        """Take note that the process exists."""
        self._pidfd = pidfd
        self._forked.set()

    def failed(self, reason: str) -> None:
        """Take note that there will be no process."""
        self._failure = reason
        self._forked.set()
        self._reported.set()

    def exited(self, status: int | None) -> None:
        """Take note that the process was reaped."""
        if self.exit_status is None:
            self.exit_status = status
        self._reported.set()

    # ---- used by the pool and by runs

    async def wait_ready(self) -> None:
        """Wait until the worker is locked down and parked.

        Raises:
            WorkerStartError: It never got there.
        """
        await self._forked.wait()
        if self._failure is not None:
            raise WorkerStartError(f"the kernel refused to fork a worker: {self._failure}")
        self._process = _process_of(self._pidfd)
        buffer = wire.FrameBuffer(_READY_FRAME_BYTES)
        try:
            while (payload := buffer.next_payload()) is None:
                await trio.lowlevel.wait_readable(self.socket)
                data = self.socket.recv(_READY_FRAME_BYTES)
                if not data:
                    raise WorkerStartError("a worker ended while it was being set up")
                buffer.feed(data)
            (message,) = wire.decode_payload(payload)
            ready = wire.parse_message(message)
        except (ConnectionResetError, ValueError, WireProtocolError) as error:
            raise WorkerStartError("a worker did not come up as it should") from error
        if not isinstance(ready, wire.Ready):
            raise WorkerStartError("a worker did not come up as it should")
        for name, _, detail in ready.steps:
            if name == wire.BROKEN_START:
                raise WorkerStartError(f"a worker could not be set up: {detail}")
        self.steps = tuple(plan.StepReport(*step) for step in ready.steps)
        self._idle_cpu_seconds = self._cpu_seconds()

    def compute_seconds(self) -> float:
        """Return the CPU time used since the worker was parked, as the host measures it."""
        return max(self._cpu_seconds() - self._idle_cpu_seconds, 0.0)

    def alive(self) -> bool:
        """Return whether a parked worker can still take a run."""
        return not self._reported.is_set()

    def kill(self) -> None:
        """End the process now; harmless when it has ended already."""
        if self._pidfd >= 0:
            try:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def end(self) -> None:
        """Kill the process, wait until it is gone, let go of its descriptors. Safe to call twice."""
        with trio.CancelScope(shield=True):
            if self._failure is None:
                await self._forked.wait()
                self.kill()
                await self._reported.wait()
        self.close()

    def close(self) -> None:
        """Let go of the descriptors of a process that is gone."""
        self.socket.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _cpu_seconds(self) -> float:
        if self._process is None:
            return self._idle_cpu_seconds
        try:
            times = self._process.cpu_times()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return self._idle_cpu_seconds
        return float(times.user + times.system)


class ForkServer:
    """A running fork server. Made by `start`; `run` must be running for workers to make progress."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, stderr_path: str) -> None:
        self._process = process
        self._control = control
        self._stderr_path = stderr_path
        self._workers: dict[int, Worker] = {}
        self._next_id = 1
        self.steps: tuple[plan.StepReport, ...] = ()
        self.gone = False
        self._hearing = trio.CancelScope(shield=True)

    @classmethod
    async def start(cls, walls: Walls) -> ForkServer:
        """Exec a fork server and wait until it is locked down.

        Raises:
            WorkerStartError: It did not come up; the message ends with what it wrote to stderr.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptor, stderr_path = tempfile.mkstemp(prefix="codemode-fork-server-")
        try:
            process = await trio.to_thread.run_sync(_spawn, theirs, descriptor, walls)
        finally:
            theirs.close()
            os.close(descriptor)
        ours.setblocking(False)
        server = cls(process, ours, stderr_path)
        try:
            with trio.fail_after(_START_SECONDS):
                message, _ = await server._receive()
        except trio.TooSlowError:
            message = None
        if message is None:
            said = server._stderr_tail()
            await server.close()
            raise WorkerStartError(f"the fork server did not start: {said or 'it ended without a word'}")
        server.steps = tuple(plan.StepReport(*step) for step in message["hello"])
        return server

    async def run(self) -> None:
        """Hear what becomes of workers until the fork server is gone or closed.

        Shielded, because cancelled runs still wait to hear that their worker is gone.
        """
        with self._hearing:
            while True:
                message, descriptors = await self._receive()
                if message is None:
                    break
                if "forked" in message:
                    self._workers[message["forked"]].forked(descriptors[0])
                elif "exited" in message:
                    self._workers.pop(message["exited"]).exited(message["status"])
                else:
                    self._workers.pop(message["failed"]).failed(message["reason"])
        self.gone = True
        for worker in self._workers.values():
            if not worker._forked.is_set():
                worker.failed("the fork server ended")
            worker.exited(None)
        self._workers.clear()

    def fork(self, budget: WorkerBudget) -> Worker:
        """Ask for one more worker.

        Raises:
            WorkerStartError: The fork server is gone.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        worker = Worker(self._next_id, ours, budget)
        request = {"fork": worker.id, "memory": budget.memory_bytes, "cpu": budget.cpu_seconds}
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno()])
        except OSError as error:
            ours.close()
            raise WorkerStartError("the fork server is gone") from error
        finally:
            theirs.close()
        self._next_id += 1
        self._workers[worker.id] = worker
        return worker

    async def close(self) -> None:
        """End every worker and the fork server; returns when all of them are gone."""
        with trio.CancelScope(shield=True):
            with trio.move_on_after(_END_SECONDS):
                for worker in tuple(self._workers.values()):
                    await worker.end()
            self._hearing.cancel()
            # The end of the control socket ends the fork server, and that ends any worker left.
            trio.lowlevel.notify_closing(self._control)
            self._control.close()
            await trio.to_thread.run_sync(self._wait_process)
        for worker in self._workers.values():
            worker.exited(None)
        Path(self._stderr_path).unlink(missing_ok=True)

    def _wait_process(self) -> None:
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def _receive(self) -> tuple[dict[str, Any] | None, list[int]]:
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._control, _MAX_CONTROL_BYTES, 1)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._control)
            except ConnectionResetError:
                return None, []
            else:
                return (json.loads(data) if data else None), descriptors

    def _stderr_tail(self) -> str:
        try:
            text = Path(self._stderr_path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return text[-_STDERR_BYTES_SHOWN:].strip()


class WorkerPool:
    """Keeps workers parked, hands one to each run, and heals a fork server that died.

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
        self._parked: deque[Worker] = deque()
        self._parking = 0
        self._starting = trio.Lock()
        self._nursery: trio.Nursery | None = None
        self.steps: tuple[plan.StepReport, ...] = ()
        """What became of each isolation step, as a worker of this pool reported it."""

    async def open(self, nursery: trio.Nursery, *, require: bool) -> None:
        """Start the fork server and one worker, whose report says what is active.

        Raises:
            IsolationUnavailableError: A mandatory step failed and `require` is set.
            WorkerStartError: There is no working fork server.
        """
        self._nursery = nursery
        worker = await self._fork(self._budget)
        self.steps = worker.steps
        missing = plan.missing_mandatory(worker.steps) if self._walls.kernel and require else ()
        if missing:
            await worker.end()
            what = "; ".join(f"{report.name}: {report.detail}" for report in missing)
            raise IsolationUnavailableError(
                tuple(report.name for report in missing), f"mandatory isolation is not available: {what}"
            )
        self._parked.append(worker)
        self._refill()

    async def take(self, budget: WorkerBudget) -> Worker:
        """Return a worker that nobody else has, and start preparing the next one.

        Raises:
            WorkerStartError: No worker came up.
        """
        if budget.memory_bytes != self._budget.memory_bytes:
            # A bound given at birth; the CPU bound is metered by the host as well and need not differ.
            return await self._fork(budget)
        while self._parked:
            worker = self._parked.popleft()
            if worker.alive():
                self._refill()
                return worker
            worker.close()
        worker = await self._fork(self._budget)
        self._refill()
        return worker

    async def close(self) -> None:
        """End every worker and the fork server; returns when the processes are gone."""
        if self._server is not None:
            await self._server.close()
        while self._parked:
            self._parked.popleft().close()

    def _refill(self) -> None:
        assert self._nursery is not None
        while len(self._parked) + self._parking < self._parked_wanted:
            self._parking += 1
            self._nursery.start_soon(self._park_one)

    async def _park_one(self) -> None:
        try:
            worker = await self._fork(self._budget)
        except WorkerStartError:
            # The next run will try again and report it; parking is only an optimisation.
            return
        finally:
            self._parking -= 1
        self._parked.append(worker)

    async def _fork(self, budget: WorkerBudget) -> Worker:
        server = await self._running_server()
        worker = server.fork(budget)
        try:
            with trio.fail_after(_START_SECONDS):
                await worker.wait_ready()
        except trio.TooSlowError:
            await worker.end()
            raise WorkerStartError(f"a worker was not ready after {_START_SECONDS:g} seconds") from None
        except BaseException:
            await worker.end()
            raise
        return worker

    async def _running_server(self) -> ForkServer:
        async with self._starting:
            if self._server is not None and self._server.gone:
                await self._server.close()
                self._server = None
            if self._server is None:
                self._server = await ForkServer.start(self._walls)
                assert self._nursery is not None
                self._nursery.start_soon(self._server.run)
            return self._server


def _spawn(control: socket.socket, stderr: int, walls: Walls) -> subprocess.Popen[bytes]:
    config = {"control": control.fileno(), "languageWall": walls.language, "kernelWall": walls.kernel}
    # -S keeps site packages, and whatever their .pth files run, out; so say where our two packages are.
    paths = [str(Path(__file__).resolve().parent.parent), _directory_of("RestrictedPython"), _directory_of("tzdata")]
    start = f"import sys; sys.path[:0] = {paths!r}; from sandbox.zygote import main; main()"
    return subprocess.Popen(  # noqa: S603  # our own interpreter and our own module
        [sys.executable, "-I", "-S", "-c", start, json.dumps(config)],
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        pass_fds=(control.fileno(),),
        start_new_session=True,
    )


def _directory_of(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise WorkerStartError(f"the package {package!r}, which the sandbox needs, is not installed")
    return str(Path(spec.origin).resolve().parent.parent)


def _process_of(pidfd: int) -> psutil.Process | None:
    """Return the process behind a pidfd under its number in our own pid namespace."""
    text = Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii")
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "Pid" and int(value) > 0:
            try:
                return psutil.Process(int(value))
            except psutil.NoSuchProcess:
                return None
    return None
