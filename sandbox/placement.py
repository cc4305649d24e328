"""Keeps the worker of the only run on the core of the task that serves it, or off it while both are busy.

A program that awaits one call after the other and its host take turns: while one works the other sleeps. On
one core the turn passes in some 10 us; waking another core takes ten times as long on common machines. With
several runs at a time every core has work, and where each process belongs is the kernel's to say.

Knows: cores. Does not know: runs.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Placement:
    """Where one worker may run.

    Best effort: without the rights or the system calls for it the worker stays where the kernel puts it.

    Args:
        pid: The worker's number; the caller knows that it has not been reaped yet.
    """

    __slots__ = ("_aside_of", "_core", "_everywhere", "_is_bound", "_pid")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._core: int | None = None
        self._aside_of: int | None = None
        """The core it is kept off."""
        self._everywhere: set[int] = set()
        self._is_bound = False

    def is_aside(self) -> bool:
        """Return whether the worker is kept off the core this thread is on now."""
        current_core = _core_reader()
        return current_core is not None and current_core() == self._aside_of

    def step_aside(self) -> bool:
        """Keep the worker off the core this thread is on now, because both have work to do.

        Returns whether there is another core.

        A worker that is woken by this thread, which then goes on working, would else often be put on the
        very same core, and wait there until this thread has nothing left to do. To be let go as soon as this
        thread waits: the other cores may be busy, and this one is free from then on.
        """
        current_core = _core_reader()
        if current_core is None:
            return False
        here = current_core()
        if here == self._aside_of:
            return True
        self._everywhere = os.sched_getaffinity(0)
        others = self._everywhere - {here}
        if others:
            self._is_bound = True
            self._aside_of = here
            _allow(self._pid, others)
        return bool(others)

    def settle(self) -> None:
        """Keep the worker on the core this thread is on now. Once: two that follow each other never meet."""
        current_core = _core_reader()
        if self._core is None and current_core is not None:
            self._core = current_core()
            self._aside_of = None
            self._everywhere = os.sched_getaffinity(0)
            self._is_bound = True
            _allow(self._pid, {self._core})

    def return_to_core(self) -> None:
        """Keep the worker on the core again that it has stepped aside from; where there was none, let it go.

        Not on the core this thread happens to be on now, which may be one that something else is busy on.
        """
        if self._core is None:
            self.let_go()
        else:
            self._aside_of = None
            _allow(self._pid, {self._core})

    def wait_here(self, wait: Callable[[], object]) -> None:
        """Call `wait`, which blocks this thread, so that the thread is woken on the worker's core.

        An idle core would else be woken for it. Only while it is blocked: what it starts, threads and
        processes, must not inherit the restriction.
        """
        if self._core is None:
            wait()
            return
        try:
            _allow(0, {self._core})
            wait()
        finally:
            _allow(0, self._everywhere)

    def let_go(self) -> None:
        """Let the worker run on every core this process may use."""
        if self._is_bound:
            self._is_bound = False
            self._core = self._aside_of = None
            _allow(self._pid, self._everywhere)


def get_ready() -> None:
    """Load what `Placement` needs, when nobody waits."""
    _core_reader()


def _allow(pid: int, cores: set[int]) -> None:
    try:
        os.sched_setaffinity(pid, cores)
    except OSError:
        pass  # It has ended, is not ours to move, or the cores are not there any more.


@cache
def _core_reader() -> Callable[[], int] | None:
    """Return what tells the core this thread is on; None where there is nothing to choose or to ask."""
    if len(os.sched_getaffinity(0)) < 2:
        return None
    import ctypes  # noqa: PLC0415  # a run without calls does not need it

    try:
        reader: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    return reader if reader() >= 0 else None
