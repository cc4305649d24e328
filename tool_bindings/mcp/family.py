"""What a child process started: found wherever it hides, and made to end.

A killed process is not gone at once, so whoever says "nothing is left" has to look until it is so.

Knows: process ids, sessions, parents. Does not know: servers, pipes.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

import psutil
import trio

__all__ = ["Family"]

_LOOK_SECONDS: Final = 0.01
"""Between two looks at processes that have been killed. Arbitrary: most are gone at the second."""


class Family:
    """A process that leads a session, and what descends from it.

    Members of its session are found also when their parents are gone; descendants that made a session of
    their own, as browsers are started, only while their parents live, so look before anybody is told to end.

    Args:
        leader: The first process. Nobody has waited for it yet, so its id is its own.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._members: set[psutil.Process] = set()
        self.look()

    def look(self) -> None:
        """Remember who is there. Only while the leader's id cannot be somebody else's."""
        others: dict[psutil.Process, int] = {}
        for pid in psutil.pids():
            with contextlib.suppress(OSError, psutil.Error):
                process = psutil.Process(pid)
                if os.getsid(pid) == self._leader:
                    self._members.add(process)
                else:
                    others[process] = process.ppid()
        found = {member.pid for member in self._running()}
        while children := {process for process, parent in others.items() if parent in found} - self._members:
            self._members |= children
            found |= {child.pid for child in children}

    async def kill(self, seconds: float) -> None:
        """Kill every member, and return when none runs any more, or after so many seconds.

        One that nobody has waited for yet runs no more: that is its new parent's to do.
        """
        with trio.move_on_after(seconds):
            while members := self._running():
                for member in members:
                    with contextlib.suppress(psutil.Error):
                        member.kill()
                # What a member started just before it was killed. It keeps the session's id taken.
                self.look()
                await trio.sleep(_LOOK_SECONDS)

    def _running(self) -> list[psutil.Process]:
        return [member for member in self._members if _runs(member)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
