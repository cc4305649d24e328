"""What no design can beat on this machine: the bare operations that calls and runs are made of.

Knows: how to time them. Does not know: what they are compared with.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE: Final = b"x" * 100
"""About the size of a small call's frame."""
READ_BYTES: Final = 65_536


@contextlib.contextmanager
def _forking() -> Iterator[None]:
    """Allow forks beside threads, of which Python 3.12 warns: these children answer and end, no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@contextlib.contextmanager
def open_echo(*, one_core: bool) -> Iterator[socket.socket]:
    """Start a process that sends back whatever it gets, and yield our end of the connection.

    Args:
        one_core: Whether both ends stay on one core meanwhile; otherwise the kernel places them.
    """
    with _on_one_core() if one_core else contextlib.nullcontext():
        ours, theirs = socket.socketpair()
        with _forking():
            # It inherits where it may run.
            child = os.fork()
        if child == 0:
            _echo(ours, theirs)
        theirs.close()
        try:
            yield ours
        finally:
            ours.close()
            os.waitpid(child, 0)


@contextlib.contextmanager
def _on_one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _echo(ours: socket.socket, theirs: socket.socket) -> None:
    # No handler of the parent's may run here, whatever happens.
    try:
        ours.close()
        while data := theirs.recv(READ_BYTES):
            theirs.sendall(data)
    finally:
        os._exit(0)


def round_trip_seconds(count: int, *, one_core: bool) -> float:
    """Return what one blocking round trip to another process over a socket pair takes.

    Args:
        count: Round trips to take the mean of, after as many to warm up.
        one_core: Whether both ends stay on one core; otherwise the kernel places them.
    """
    with open_echo(one_core=one_core) as wire:
        _exchange(wire, count)
        began = time.perf_counter()
        _exchange(wire, count)
        return (time.perf_counter() - began) / count


def _exchange(wire: socket.socket, count: int) -> None:
    for _ in range(count):
        wire.sendall(MESSAGE)
        wire.recv(READ_BYTES)


def fork_seconds() -> float:
    """Return the time from the request to fork this process to the child's first byte."""
    ours, theirs = socket.socketpair()
    with ours, theirs, _forking():
        began = time.perf_counter()
        child = os.fork()
        if child == 0:
            theirs.send(b"x")
            os._exit(0)
        ours.recv(1)
        took = time.perf_counter() - began
        os.waitpid(child, 0)
    return took
