"""Whether a worker and the task that serves it share one core or have one each.

A program that makes one call after the other works while its host waits, and waits while its host works.
On one core the change takes some 10 us, but each side finds the caches full of what the other has done. On a
core each, both looking for the next message instead of sleeping, it takes none, and what a call leaves to be
done is done while the program goes on. That is quicker where nothing else wants the cores, and much slower
where something does. Nothing tells beforehand which is the case, so both are tried, and the quicker one is
kept while it is.

Knows: exchanges, a message and its answer, and how long they take. Does not know: what they are about.
"""

from __future__ import annotations

import math
import select
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from sandbox.placement import Placement

QUICK_SECONDS: Final = 0.0005
"""A program that answers within this is waited for briefly the next time. Arbitrary: a few times what the
next call of a loop takes."""
_BRIEF_WAIT_MILLISECONDS: Final = 1
"""Longest time other tasks are kept waiting for a message that is about to come; the least poll knows."""
LOOK_SECONDS: Final = 0.0002
"""How long either side looks for a message before it sleeps. Arbitrary: about two exchanges."""
_WINDOW_EXCHANGES: Final = 24
"""Exchanges that are timed together. Arbitrary: enough to tell one way from the other, few enough to lose."""
_WORTHWHILE: Final = 0.9
"""Part of the time on one core that an exchange may take on two. Arbitrary: more is not worth two cores."""
_MOST_WINDOWS: Final = 128
"""Windows on one core before two are tried again, at most; every try that fails doubles them. Arbitrary: a
try is given up after little more than a window's time, so on a busy machine they all cost a few percent."""
_FIRST_WINDOWS: Final = 3
"""Windows on one core before the first try. Arbitrary: when a run begins, a worker is made for the next one,
which takes a core for as long."""
_ADVANCE: Final = 0.5
"""Part of a window's time by which a try may be slower at first. Arbitrary: what moving takes, twice."""
_MOST_SAVED: Final = 2
"""Windows' time that a try may lose again when it has saved as much before. Arbitrary: a core that is taken
away for a moment now and then does not end it, and one that is wanted by somebody else does soon."""
_LASTING_WINDOWS: Final = 8
"""Windows that a try has to last for the next pause to be a short one again. Arbitrary."""
_MOST_LOOKING_SECONDS: Final = 0.9
"""CPU time of one worker that is taken for looking. Below the second by which the kernel's own CPU limit
of a worker is longer than the run's."""


class Pace:
    """Times the exchanges of one run, places its worker accordingly, and waits for it briefly.

    Args:
        sock: The worker's wire.
        placement: Where the worker may run.
        tell: Sends a worker for how many seconds it is to look for a message before it sleeps.
    """

    __slots__ = (
        "_began",
        "_exchanges",
        "_heard",
        "_most_seconds",
        "_pause",
        "_placement",
        "_poll",
        "_saved_seconds",
        "_tell",
        "_windows_lasted",
        "_windows_left",
        "is_apart",
        "looking_seconds",
    )

    def __init__(self, sock: socket.socket, placement: Placement, tell: Callable[[float], object]) -> None:
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        self._poll = poll.poll
        self._placement = placement
        self._tell = tell
        self.is_apart = False
        """Whether both have a core of their own, and look for messages."""
        self.looking_seconds = 0.0
        """CPU time that the worker has spent on looking for answers, at most: waiting for a tool is free."""
        self._exchanges = -1
        """Exchanges of this window; below 0 before one has begun."""
        self._began = 0.0
        self._heard = 0.0
        """When the last message came, if the worker looks for its answer."""
        self._most_seconds = math.inf
        """Seconds a window on two cores may take, by the quickest since both have shared one."""
        self._saved_seconds = 0.0
        """By how much the windows since then were shorter; what the next one may be longer."""
        self._windows_left = _FIRST_WINDOWS
        self._pause = 1
        self._windows_lasted = 0

    def exchange(self) -> None:
        """Take note that a message came that is one of many, each by itself. Called before it is acted on."""
        self._exchanges += 1
        if self.is_apart:
            self._heard = perf_counter()
            saved = self._saved_seconds + self._most_seconds - (self._heard - self._began)
            if saved < 0 or self.looking_seconds > _MOST_LOOKING_SECONDS:
                self._come_together()
            elif self._exchanges >= _WINDOW_EXCHANGES:
                self._saved_seconds = min(saved, _MOST_SAVED * self._most_seconds)
                self._begin_window(self._heard)
                self._windows_lasted += 1
        elif self._exchanges >= _WINDOW_EXCHANGES:
            now = perf_counter()
            self._most_seconds = min(self._most_seconds, (now - self._began) * _WORTHWHILE)
            self._begin_window(now)
            self._windows_left -= 1
            if self._windows_left <= 0:
                self._move_apart()
        elif self._exchanges <= 0:
            self._began = perf_counter()

    def answered(self) -> None:
        """Take note that the last message has been answered."""
        if self._heard:
            self.looking_seconds += min(perf_counter() - self._heard, LOOK_SECONDS)
            self._heard = 0.0  # The answer to another call may follow before the next message.

    def interrupt(self) -> None:
        """Take note that something else came, from a program that does not make one call after the other."""
        self._exchanges = -1
        if self.is_apart:
            self._come_together()
        # Many calls at a time keep both busy at once.
        self._placement.let_go()

    def wait(self) -> bool:
        """Wait for a message, blocking this thread for a moment; return whether the worker is a quick one."""
        began = perf_counter()
        if self.is_apart:
            self._look(began + LOOK_SECONDS)
        else:
            self._placement.settle()
            self._placement.wait_here(self.sleep)
        return perf_counter() - began < QUICK_SECONDS

    def sleep(self) -> None:
        """Sleep until a message comes, or for a moment."""
        self._poll(_BRIEF_WAIT_MILLISECONDS)

    def _look(self, until: float) -> None:
        while perf_counter() < until:
            if self._poll(0):
                return
        self.sleep()

    def _begin_window(self, now: float) -> None:
        self._began = now
        self._exchanges = 0

    def _move_apart(self) -> None:
        if self.looking_seconds < _MOST_LOOKING_SECONDS and self._placement.step_aside():
            self.is_apart = True
            self._windows_lasted = 0
            self._saved_seconds = _ADVANCE * self._most_seconds
            self._tell(LOOK_SECONDS)

    def _come_together(self) -> None:
        self.is_apart = False
        self._heard = 0.0
        self._exchanges = -1
        self._most_seconds = math.inf
        lasted = self._windows_lasted >= _LASTING_WINDOWS
        self._pause = self._windows_left = 1 if lasted else min(self._pause * 2, _MOST_WINDOWS)
        self._placement.return_to_core()
        self._tell(0.0)
