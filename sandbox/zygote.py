"""The fork server: forks one-shot workers out of a clean, pre-imported, locked-down process.

It is exec'd, never forked from the host, whose memory holds keys. It is single-threaded, holds no
program, argument or tool name, and in its own namespaces it is pid 1: when it ends, for whatever
reason, the kernel ends every worker. It ends when the host closes the control socket.

    host -> fork server   "id memory cpu warm" (bytes, seconds, 0 or 1) and the worker's wire
    fork server -> host   "hello" with the steps as JSON and a pidfd of itself, "forked id" and a pidfd,
                          "exited id status cpu", "failed id reason"

After each fork this process copies every page it writes to, hence words and no JSON, and `recvmsg` without
the standard library's help.

Knows: forking, waiting, the isolation plan. Does not know: what a worker does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import warnings
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox.isolation import landlock, plan, privileges, rlimits, seccomp
from sandbox.isolation.report import StepReport
from sandbox.worker import main as worker_main
from sandbox.worker.warmup import warm_up

if TYPE_CHECKING:
    from types import ModuleType

WIRE_DESCRIPTOR: Final = 3
"""The one descriptor a worker keeps."""
_MAX_REQUEST_BYTES: Final = 1024
_DESCRIPTOR_BYTES: Final = 4
_DESCRIPTOR_SPACE: Final = socket.CMSG_LEN(_DESCRIPTOR_BYTES) if sys.platform != "win32" else 0
"""What one descriptor takes that comes along with a message."""
_START_FAILED: Final = 70
"""Exit status of a worker that could not be set up (EX_SOFTWARE)."""
_NO_KERNEL_WALL: Final = (StepReport("kernel", active=False, detail="switched off for a test"),)


class Request(NamedTuple):
    """What a worker is to be."""

    worker_id: int
    memory_bytes: int
    cpu_seconds: int
    warm: int


def main(control_descriptor: int, *, language_wall: bool, kernel_wall: bool) -> None:
    """Serve forks until the host is gone.

    Args:
        control_descriptor: Our end of the control socket.
        language_wall: Whether workers run programs under the policy.
        kernel_wall: Whether this process and its workers are locked down.
    """
    control = socket.socket(fileno=control_descriptor)
    # The terminal's Ctrl-C is the host's to handle; it ends us by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nobody would read them, and the policy need not silence them again for each program.
    warnings.simplefilter("ignore")
    highest = rlimits.bound_descriptors(rlimits.FORK_SERVER_DESCRIPTORS)
    # Everything a worker will ever import must be there before the file system is gone.
    importlib.import_module("decimal")  # `sandbox.numerals` wants it for some numbers only.
    language = importlib.import_module(
        "sandbox.worker.restricted" if language_wall else "sandbox.worker.plain"
    )
    warm_up(language)
    with contextlib.suppress(OSError):  # Of an unknown machine, which each worker reports.
        seccomp.prepare()
    landlock.abi()
    # Nothing that is loaded by now is ever freed, so no collection need look at it: in each process forked
    # from this one it would touch, and so copy, all our pages. Nor is anything collected before: what that
    # frees leaves holes in those pages, which the first objects of every worker would fill.
    gc.freeze()
    gc.enable()
    base_bytes = rlimits.mapped_bytes()
    reports: tuple[StepReport, ...] = ()
    if kernel_wall:
        reports = plan.apply_steps("fork server", plan.Launch())
        if any(report.active and report.name == "namespaces" for report in reports):
            _become_first_process(control)
    os.environ.clear()
    nursery = _Nursery(language, reports, base_bytes, highest, kernel_wall=kernel_wall)
    server = _ForkServer(control, nursery)
    pidfd = os.pidfd_open(os.getpid())
    steps = json.dumps([[report.name, report.active, report.detail] for report in reports])
    server.say(b"hello " + steps.encode(), pidfd)
    os.close(pidfd)
    server.serve()
    # Without the interpreter's teardown: whoever closed the socket waits for us.
    os._exit(0)


def _become_first_process(control: socket.socket) -> None:
    """Go on in a child, which is pid 1 of the new pid namespace; the parent only waits for it."""
    child = os.fork()
    if child == 0:
        # Outside the namespace nobody else would end us when the waiting parent is killed.
        # A parent outside the namespace has the number 0.
        privileges.die_with_parent(0)
        return
    control.close()
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class _ForkServer:
    """The control socket, and the workers that have not been waited for."""

    def __init__(self, control: socket.socket, nursery: _Nursery) -> None:
        self._control = control
        self._nursery = nursery
        self._workers: dict[int, tuple[int, int]] = {}
        """Worker's pidfd to (pid, the host's id for it)."""
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Fork and reap until the control socket closes."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._workers:
                    self._reap(descriptor)
                elif not self._handle_request():
                    return

    def say(self, message: bytes, descriptor: int | None = None) -> None:
        """Send one message to the host; a host that is gone is noticed by `serve`."""
        try:
            if descriptor is None:
                self._control.send(message)
            else:
                passed = descriptor.to_bytes(_DESCRIPTOR_BYTES, sys.byteorder)
                self._control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _handle_request(self) -> bool:
        try:
            data, passed, _, _ = self._control.recvmsg(_MAX_REQUEST_BYTES, _DESCRIPTOR_SPACE)
        except ConnectionResetError:
            return False
        if not data:
            return False
        request = Request(*map(int, data.split()))
        if not passed:
            # The kernel drops a passed descriptor when there is no number left for it.
            self.say(b"failed %d the fork server has no file descriptor left" % request.worker_id)
            return True
        self._fork(request, int.from_bytes(passed[0][2][:_DESCRIPTOR_BYTES], sys.byteorder))
        return True

    def _fork(self, request: Request, wire_descriptor: int) -> None:
        parent_pid = os.getpid()
        pid = -1
        try:
            pid = os.fork()
            if pid == 0:
                self._nursery.become_worker(wire_descriptor, request, parent_pid)
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            if pid > 0:
                # Not waited for yet, so the number is still its own.
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            self.say(b"failed %d %b" % (request.worker_id, (error.strerror or "").encode()))
            return
        finally:
            os.close(wire_descriptor)
        self._workers[pidfd] = (pid, request.worker_id)
        self._poll.register(pidfd, select.POLLIN)
        self.say(b"forked %d" % request.worker_id, pidfd)

    def _reap(self, pidfd: int) -> None:
        pid, worker_id = self._workers.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, used = os.wait4(pid, 0)
        status = os.waitstatus_to_exitcode(status)
        self.say(b"exited %d %d %.6f" % (worker_id, status, used.ru_utime + used.ru_stime))


class _Nursery:
    """What a forked child needs to grow up into a worker."""

    def __init__(
        self,
        language: ModuleType,
        reports: tuple[StepReport, ...],
        base_bytes: int,
        highest_descriptor: int,
        *,
        kernel_wall: bool,
    ) -> None:
        self._language = language
        self._reports = reports
        self._base_bytes = base_bytes
        self._highest_descriptor = highest_descriptor
        self._kernel_wall = kernel_wall

    def become_worker(self, wire_descriptor: int, request: Request, parent_pid: int) -> None:
        """Be a worker from here on; never returns."""
        status = _START_FAILED
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if wire_descriptor != WIRE_DESCRIPTOR:
                os.dup2(wire_descriptor, WIRE_DESCRIPTOR, inheritable=False)
            os.closerange(0, WIRE_DESCRIPTOR)
            os.closerange(WIRE_DESCRIPTOR + 1, self._highest_descriptor)
            # Made before the filter: the constructor asks the kernel what kind of socket it is.
            wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=WIRE_DESCRIPTOR)
            launch = plan.Launch(self._base_bytes + request.memory_bytes, request.cpu_seconds, parent_pid)
            if self._kernel_wall:
                reports = plan.apply_steps("worker", launch, self._reports)
            else:
                # Lifetime, priority and resource bounds hold in every mode; the rest is what is off.
                privileges.die_with_parent(parent_pid)
                privileges.lower_priority()
                rlimits.apply(address_space_bytes=launch.address_space_bytes, cpu_seconds=launch.cpu_seconds)
                reports = (*_NO_KERNEL_WALL, StepReport("rlimits", active=True))
            status = worker_main.serve(wire, reports, self._language, warm=bool(request.warm))
        except BaseException:  # noqa: BLE001  # nobody is above us: say what happened and end
            worker_main.report_broken_start(WIRE_DESCRIPTOR)
        finally:
            # Never unwind into the fork server's frames.
            os._exit(status)
