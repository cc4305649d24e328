"""The fork server: forks one-shot workers out of a clean, pre-imported, locked-down process.

It is exec'd, never forked from the host, whose memory holds keys. It is single-threaded, holds no
program, argument or tool name, and in its own namespaces it is pid 1: when it ends, for whatever
reason, the kernel ends every worker. It ends when the host closes the control socket.

    host -> fork server   {"fork": id, "memory": bytes, "cpu": seconds} and the worker's wire
    fork server -> host   {"hello": [steps]}, {"forked": id} and a pidfd, {"exited": id, "status": n},
                          {"failed": id, "reason": text}

Knows: forking, waiting, the isolation plan. Does not know: what a worker does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
from types import ModuleType
from typing import Any, Final

from sandbox.isolation import plan, privileges, rlimits
from sandbox.worker import main as worker_main

WIRE_DESCRIPTOR: Final = 3
"""The one descriptor a worker keeps."""
_MAX_MESSAGE_BYTES: Final = 64 * 1024
_START_FAILED: Final = 70
"""Exit status of a worker that could not be set up (EX_SOFTWARE)."""
_NO_KERNEL_WALL: Final = (plan.StepReport("kernel", False, "switched off for a test"),)


def main() -> None:
    """Serve forks until the host is gone. Arguments: one JSON object, see `sandbox.workers`."""
    config = json.loads(sys.argv[1])
    control = socket.socket(fileno=config["control"])
    # The terminal's Ctrl-C is the host's to handle; it ends us by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Everything a worker will ever import must be there before the file system is gone.
    language = importlib.import_module(
        "sandbox.worker.restricted" if config["languageWall"] else "sandbox.worker.plain"
    )
    base_bytes = rlimits.mapped_bytes()
    kernel_wall = config["kernelWall"]
    reports: tuple[plan.StepReport, ...] = ()
    if kernel_wall:
        reports = plan.apply_steps("fork server", plan.Budget(0, 0))
        if any(report.active and report.name == "namespaces" for report in reports):
            _become_first_process(control)
    os.environ.clear()
    gc.collect()
    # Without this, the first collection in every worker would touch, and so copy, all our pages.
    gc.freeze()
    server = _ForkServer(control, base_bytes, reports, config, language)
    server.say({"hello": [[report.name, report.active, report.detail] for report in reports]})
    server.serve()


def _become_first_process(control: socket.socket) -> None:
    """Go on in a child, which is pid 1 of the new pid namespace; the parent only waits for it."""
    child = os.fork()
    if child == 0:
        # Outside the namespace nobody else would end us when the waiting parent is killed.
        privileges.die_with_parent()
        return
    control.close()
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class _ForkServer:
    """The control socket, and the workers that have not been waited for."""

    def __init__(
        self,
        control: socket.socket,
        base_bytes: int,
        reports: tuple[plan.StepReport, ...],
        config: dict[str, Any],
        language: ModuleType,
    ) -> None:
        self._control = control
        self._base_bytes = base_bytes
        self._reports = reports
        self._config = config
        self._language = language
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

    def say(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send one message to the host; a host that is gone is noticed by `serve`."""
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], list(descriptors))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _handle_request(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, _MAX_MESSAGE_BYTES, 1)
        except ConnectionResetError:
            return False
        if not data:
            return False
        request = json.loads(data)
        wire_descriptor = descriptors[0]
        try:
            pid = os.fork()
        except OSError as error:
            os.close(wire_descriptor)
            self.say({"failed": request["fork"], "reason": str(error)})
            return True
        if pid == 0:
            self._become_worker(wire_descriptor, request)
        os.close(wire_descriptor)
        pidfd = os.pidfd_open(pid)
        self._workers[pidfd] = (pid, request["fork"])
        self._poll.register(pidfd, select.POLLIN)
        self.say({"forked": request["fork"]}, (pidfd,))
        return True

    def _reap(self, pidfd: int) -> None:
        pid, worker_id = self._workers.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self.say({"exited": worker_id, "status": os.waitstatus_to_exitcode(status)})

    def _become_worker(self, wire_descriptor: int, request: dict[str, Any]) -> None:
        status = _START_FAILED
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if wire_descriptor != WIRE_DESCRIPTOR:
                os.dup2(wire_descriptor, WIRE_DESCRIPTOR, inheritable=False)
            os.closerange(0, WIRE_DESCRIPTOR)
            os.closerange(WIRE_DESCRIPTOR + 1, _highest_descriptor())
            # Made before the filter: the constructor asks the kernel what kind of socket it is.
            wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=WIRE_DESCRIPTOR)
            budget = plan.Budget(self._base_bytes + request["memory"], request["cpu"])
            if self._config["kernelWall"]:
                reports = plan.apply_steps("worker", budget, self._reports)
            else:
                # Lifetime and resource bounds hold in every mode; the rest of the wall is what is off.
                privileges.die_with_parent()
                rlimits.apply(address_space_bytes=budget.address_space_bytes, cpu_seconds=budget.cpu_seconds)
                reports = (*_NO_KERNEL_WALL, plan.StepReport("rlimits", True))
            status = worker_main.serve(wire, reports, self._language)
        except BaseException:  # noqa: BLE001  # nobody is above us: say what happened and end
            worker_main.report_broken_start(WIRE_DESCRIPTOR)
        finally:
            # Never unwind into the fork server's frames.
            os._exit(status)


def _highest_descriptor() -> int:
    """Return one more than any descriptor number this process can hold."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


if __name__ == "__main__":
    main()
