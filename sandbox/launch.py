"""Starts the fork server's process: plain subprocess work, free of trio.

A command that will run one program can launch it early, before its own heavy imports, so that both
happen at the same time; whoever opens the sandbox takes it over.

Knows: command line, environment, descriptors, how a worker is asked for. Does not know: what is answered.
It is imported before everything else, so it imports little: no dataclasses, no pathlib.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox.errors import WorkerStartError

if TYPE_CHECKING:
    from sandbox.limits import WorkerBudget

ORDERED_ID: Final = 1
"""The id of a worker that is asked for before anybody listens to answers."""
START: Final = """\
import gc, os, sys
gc.disable()
os.register_at_fork = lambda **hooks: None
sys.modules["ssl"] = None
os.environ["PYTHONTZPATH"] = ""
sys.path += {paths!r}
from sandbox.zygote import main
main({control}, language_wall={walls.language}, kernel_wall={walls.kernel})
"""
"""What the process runs. Imports leave no garbage worth a collection; it is turned on when all is loaded.
What modules would do in each forked child is for processes with threads, whose locks another thread may hold,
and for random numbers, which workers seed themselves; here each child would pay for it.
asyncio does without TLS where there is none, and here it would only be memory and time. Zones come from
`tzdata` alone; zoneinfo would look up how Python was built to find others.
"""


class Walls(NamedTuple):
    """Which walls stand. Anything but the default is for tests that prove each wall alone."""

    language: bool = True
    kernel: bool = True
    launcher: tuple[str, ...] = ()
    """Put in front of the fork server's command line; takes a mechanism of the kernel away, say."""


class Ordered(NamedTuple):
    """A worker that was asked for in advance: its wire, non-blocking, and what it is born with."""

    wire: socket.socket
    budget: WorkerBudget


class Launched(NamedTuple):
    """A process that is becoming a fork server.

    Attributes:
        process: It, or the one that waits for it.
        control: Our end of the control socket, non-blocking. Closing it ends the process.
        stderr: Descriptor of the file in memory that it writes its complaints to.
        ordered: The worker it makes first, if that was asked for.
    """

    process: subprocess.Popen[bytes]
    control: socket.socket
    stderr: int
    ordered: Ordered | None = None

    def discard(self) -> None:
        """End the process and let go of everything."""
        self.control.close()
        if self.ordered is not None:
            self.ordered.wire.close()
        os.close(self.stderr)
        # It may be far from looking at the socket.
        self.process.kill()
        self.process.wait()


def launch(walls: Walls) -> Launched:
    """Start the process.

    Raises:
        WorkerStartError: A package it needs is not installed.
        OSError: The kernel refused a process or a descriptor.
    """
    # -S keeps site packages, and whatever their .pth files run, out; so say where our packages are.
    # Behind the standard library's, which most imports look for.
    paths = list(dict.fromkeys(map(_directory_of, ("sandbox", "RestrictedPython", "tzdata"))))
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.setblocking(False)
    stderr = -1
    try:
        # A file in memory: it cannot fill up and block like a pipe, and leaves nothing behind.
        stderr = os.memfd_create("fork server's stderr")
        start = START.format(paths=paths, control=theirs.fileno(), walls=walls)
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and our own module
            [*walls.launcher, sys.executable, "-I", "-S", "-c", start],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    except BaseException:
        control.close()
        if stderr >= 0:
            os.close(stderr)
        raise
    finally:
        theirs.close()
    return Launched(process, control, stderr)


_early: list[Launched] = []


def launch_early() -> None:
    """Launch a fork server with all walls for a sandbox that this process is about to open.

    Does nothing where that fails: opening the sandbox will fail the same way, and say why.
    """
    if sys.platform != "linux" or _early:
        return
    try:
        launched = launch(Walls())
    except (OSError, WorkerStartError):
        return
    _early.append(launched)
    atexit.register(discard_early)


def order_worker(budget: WorkerBudget) -> None:
    """Ask the process that was launched early for its first worker, so that it need not wait for us.

    Does nothing where there is no such process, or where it is gone: opening the sandbox will say so.
    """
    if not _early:
        return
    launched = _early.pop()
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:
        pass
    else:
        with theirs:
            ours.setblocking(False)
            launched = launched._replace(ordered=Ordered(ours, budget))
            try:
                socket.send_fds(
                    launched.control, [fork_request(ORDERED_ID, budget, warm=True)], [theirs.fileno()]
                )
            except OSError:
                pass
    _early.append(launched)


def fork_request(worker_id: int, budget: WorkerBudget, *, warm: bool) -> bytes:
    """Return the message that asks for a worker; its end of the wire goes along.

    Args:
        worker_id: What the host calls it.
        budget: What it is born with.
        warm: Whether it is warmed up before it says that it is ready.
    """
    return b"%d %d %d %d" % (worker_id, *budget, warm)


def take_early(walls: Walls) -> Launched | None:
    """Return the process that was launched early, once, if it has these walls."""
    return _early.pop() if _early and walls == Walls() else None


def discard_early() -> None:
    """End a process that was launched early and that nobody took over."""
    while _early:
        _early.pop().discard()


def _directory_of(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise WorkerStartError(f"the package {package!r}, which the sandbox needs, is not installed")
    return os.path.dirname(os.path.dirname(os.path.realpath(spec.origin)))  # noqa: PTH120  # see above
