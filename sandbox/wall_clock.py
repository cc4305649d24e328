"""The time one run may take, which stands still while a person is asked.

Knows: a deadline. Does not know: what happens when it has passed.
"""

from __future__ import annotations

import math

import trio


class WallClock:
    """Counts down from when it is started."""

    __slots__ = ("_deadline", "_held_since", "_holds", "_waiting")

    def __init__(self) -> None:
        self._deadline = math.inf
        self._holds = 0
        """Calls that wait for a person."""
        self._held_since = 0.0
        self._waiting: trio.CancelScope | None = None

    def start(self, deadline: float) -> None:
        """Set when the time is up, on the clock of `trio.current_time`."""
        self._deadline = deadline

    def hold(self, held: bool) -> None:
        """Stop the clock, or let it go on when nobody holds it any more."""
        if held:
            self._holds += 1
            if self._holds == 1:
                self._held_since = trio.current_time()
        else:
            self._holds -= 1
            if self._holds == 0:
                self._deadline += trio.current_time() - self._held_since
        if self._waiting is not None:
            # Sleeping for a deadline that has moved.
            self._waiting.cancel()

    def is_over(self) -> bool:
        """Return whether the time is up."""
        return not self._holds and trio.current_time() >= self._deadline

    async def wait(self, event: trio.Event, seconds: float) -> None:
        """Wait for an event, at most so long, and no longer than the clock stays as it is."""
        until = trio.current_time() + seconds
        if not self._holds:
            until = min(until, self._deadline)
        with trio.CancelScope(deadline=until) as self._waiting:
            await event.wait()
