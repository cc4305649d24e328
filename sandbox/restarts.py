"""When a fork server that keeps ending may be started again.

One end is an accident, and heals at once. One that ends again and again soon after its start would only
keep a core busy: each time it is given twice the pause, and runs are told instead of kept waiting.

Knows: the trio clock. Does not know: processes.
"""

from __future__ import annotations

from typing import Final

import trio

SOON_SECONDS: Final = 10.0
"""A fork server that lived longer has shown that it works. Arbitrary."""
FIRST_PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 30.0
PATIENT_ENDS: Final = 4
"""Ends in a row after which a pause is no longer waited for by runs: they fail at once. Arbitrary; the pauses
so far come to less than a second."""


class Restarts:
    """Counts ends in a row, and says how long to wait before the next start."""

    def __init__(self) -> None:
        self._ends = 0
        self._not_before = 0.0

    def ended(self, lived_seconds: float) -> None:
        """Take note that a fork server ended by itself, after so many seconds."""
        if lived_seconds > SOON_SECONDS:
            self._ends = 0
        self._ends += 1
        # The first one costs nothing.
        pause = 0.0 if self._ends == 1 else FIRST_PAUSE_SECONDS * 2.0 ** min(self._ends - 2, 16)
        self._not_before = trio.current_time() + min(pause, MAX_PAUSE_SECONDS)

    def pause_seconds(self) -> float:
        """Return how long the next start has to wait."""
        return max(self._not_before - trio.current_time(), 0.0)

    def refusal(self) -> str | None:
        """Return why a run is not to wait for the next start, or None when it may."""
        pause = self.pause_seconds()
        if self._ends <= PATIENT_ENDS or pause == 0:
            return None
        return (
            f"the fork server ended {self._ends} times in a row, each time within {SOON_SECONDS:g} seconds"
            f" of its start; it is started again in {pause:.1f} seconds: see whether something here"
            " ends processes, such as a memory limit, and run the program again then"
        )
