"""Starts the fork server's process: plain subprocess work, free of trio.

A command that will run one program can launch it early, before its own heavy imports, so that both
happen at the same time; whoever opens the sandbox takes it over.

Knows: command line, environment, descriptors. Does not know: the protocol on the control socket.
"""

from __future__ import annotations

import atexit
import dataclasses
import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from sandbox.errors import WorkerStartError


@dataclasses.dataclass(frozen=True, slots=True)
class Walls:
    """Which walls stand. Anything but the default is for tests that prove each wall alone."""

    language: bool = True
    kernel: bool = True
    launcher: tuple[str, ...] = ()
    """Put in front of the fork server's command line; takes a mechanism of the kernel away, say."""


@dataclasses.dataclass(frozen=True, slots=True)
class Launched:
    """A process that is becoming a fork server.

    Attributes:
        process: It, or the one that waits for it.
        control: Our end of the control socket, non-blocking. Closing it ends the process.
        stderr: Descriptor of the file in memory that it writes its complaints to.
    """

    process: subprocess.Popen[bytes]
    control: socket.socket
    stderr: int

    def discard(self) -> None:
        """End the process and let go of everything."""
        self.control.close()
        os.close(self.stderr)
        self.process.wait()


def launch(walls: Walls) -> Launched:
    """Start the process.

    Raises:
        WorkerStartError: A package it needs is not installed.
        OSError: The kernel refused a process or a descriptor.
    """
    # -S keeps site packages, and whatever their .pth files run, out; so say where our packages are.
    paths = [
        str(Path(__file__).resolve().parent.parent),
        _directory_of("RestrictedPython"),
        _directory_of("tzdata"),
    ]
    start = f"import sys; sys.path[:0] = {paths!r}; from sandbox.zygote import main; main()"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    stderr = -1
    try:
        # A file in memory: it cannot fill up and block like a pipe, and leaves nothing behind.
        stderr = os.memfd_create("fork server's stderr")
        config = {
            "control": theirs.fileno(),
            "languageWall": walls.language,
            "kernelWall": walls.kernel,
        }
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and our own module
            [*walls.launcher, sys.executable, "-I", "-S", "-c", start, json.dumps(config)],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        if stderr >= 0:
            os.close(stderr)
        raise
    finally:
        theirs.close()
    return Launched(process, ours, stderr)


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
    return str(Path(spec.origin).resolve().parent.parent)
