"""A way to end a run from outside.

Knows: a reason, and who listens. Does not know: runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Stop:
    """Asks a run to end from outside, with a reason. One per run; safe to ask twice."""

    __slots__ = ("_listener", "reason", "requested")

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._listener: Callable[[], None] | None = None

    def request(self, reason: str) -> None:
        """End the run; it settles as `abort` with this reason."""
        if not self.requested:
            self.requested = True
            self.reason = reason
            if self._listener is not None:
                self._listener()

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Call `listener` when somebody asks, in place of an earlier one. For the supervisor."""
        self._listener = listener
        if self.requested and listener is not None:
            listener()
