"""The lane: in which order the nested calls of one run start, overlap and settle.

Starts are in submission order: start event, then pre-execute and guards, one call after the other.
Parallel-safe calls overlap from there on, up to a bound, and settle as each is done. An exclusive call
waits until nothing runs, runs alone, and holds the barrier until it has settled, post-execute included.

There is no driver task: each call's own task waits for its turn and passes it on, so a run with one
call at a time never switches tasks.

Knows: order and capacity. Does not know: dispatching, events, programs.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class Abandoned(Exception):  # noqa: N818  # not an error: the call never started, and nobody waits for it
    """The run ended, or the call was cancelled, before its turn came."""


class Ticket:
    """One call's place in the lane."""

    __slots__ = ("exclusive", "settled", "started", "turn")

    def __init__(self) -> None:
        self.turn: trio.Event | None = None
        self.exclusive = False
        self.started = False
        self.settled = False


class Lane:
    """Lets calls through in order.

    Args:
        max_parallel: Parallel-safe calls that may run at the same time.
    """

    def __init__(self, max_parallel: int) -> None:
        self._max_parallel = max_parallel
        self._waiting: deque[Ticket] = deque()
        self._starting: Ticket | None = None
        self._active = 0
        self._exclusive_active = False
        self._closed = False

    def admit(self) -> Ticket:
        """Take a place at the end. Call it in submission order."""
        ticket = Ticket()
        self._waiting.append(ticket)
        return ticket

    def start_now(self, ticket: Ticket, classify: Callable[[], bool]) -> bool:
        """Let the call start if its turn has come; return whether it has. Takes what `wait_turn` takes."""
        if self._starting is not None or self._closed or ticket.settled or self._waiting[0] is not ticket:
            return False
        exclusive = ticket.exclusive = classify()
        if self._exclusive_active or (self._active if exclusive else self._active >= self._max_parallel):
            return False
        self._waiting.popleft()
        self._starting = ticket
        self._active += 1
        self._exclusive_active = exclusive
        return True

    async def wait_turn(self, ticket: Ticket, classify: Callable[[], bool]) -> None:
        """Wait until the call may start; no later call starts before `started` is called.

        Args:
            ticket: The call's place.
            classify: Says whether the call is exclusive; asked when the call is first in line,
                because the answer may depend on what is registered by then.

        Raises:
            Abandoned: The lane was closed or the place given up first.
        """
        while True:
            if self._closed or ticket.settled:
                self._drop(ticket)
                raise Abandoned
            if self.start_now(ticket, classify):
                return
            ticket.turn = trio.Event()
            await ticket.turn.wait()

    def started(self, ticket: Ticket) -> None:
        """Let the next call start: this one's ordered part is over."""
        assert self._starting is ticket
        ticket.started = True
        self._starting = None
        if self._waiting:
            self._wake(self._waiting[0])

    def settle(self, ticket: Ticket) -> None:
        """Free the call's place. The barrier of an exclusive call falls here."""
        ticket.settled = True
        if self._starting is ticket:
            self._starting = None
        self._active -= 1
        if ticket.exclusive:
            self._exclusive_active = False
        if self._waiting:
            self._advance()

    def room(self) -> int:
        """Return how many parallel-safe calls may start at once, 0 where they would overtake somebody."""
        if self._waiting or self._starting is not None or self._exclusive_active or self._closed:
            return 0
        return self._max_parallel - self._active

    def take(self) -> Ticket:
        """Take the place of a parallel-safe call that has started already, where there was room for it."""
        ticket = Ticket()
        ticket.started = True
        self._active += 1
        return ticket

    def give_up(self, ticket: Ticket) -> bool:
        """Abandon a call that has not come to its turn; returns whether it had not."""
        if ticket not in self._waiting:
            return False
        ticket.settled = True
        self._wake(ticket)
        return True

    def close(self) -> None:
        """Abandon every call that has not come to its turn, and admit none any more."""
        self._closed = True
        for ticket in tuple(self._waiting):
            self._wake(ticket)

    def _drop(self, ticket: Ticket) -> None:
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            self._advance()

    def _advance(self) -> None:
        if self._waiting and self._starting is None:
            self._wake(self._waiting[0])

    @staticmethod
    def _wake(ticket: Ticket) -> None:
        if ticket.turn is not None:
            ticket.turn.set()
