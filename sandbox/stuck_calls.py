"""Reports host calls whose functions go on after their run has ended.

Knows: which these are, and for how long by now. Does not know: why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import trio

from sandbox.vocabulary import HostCall

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST_GRACE_SECONDS: Final = 0.01
"""Least time between two reports of a stuck call, so that a grace of 0 is no busy loop. Arbitrary."""

StuckCallListener = Callable[[HostCall, float], None]
"""Gets a call whose function goes on after its run has ended, and for how many seconds by now."""


class StuckCalls:
    """Those of one run.

    Args:
        listener: Gets them, one after the other.
        grace_seconds: How long they have before they are reported, each time.
    """

    __slots__ = ("_grace_seconds", "_listener", "_reporting")

    def __init__(self, listener: StuckCallListener, grace_seconds: float) -> None:
        self._listener = listener
        self._grace_seconds = max(grace_seconds, _SHORTEST_GRACE_SECONDS)
        self._reporting: trio.CancelScope | None = None

    async def report(self, calls: Mapping[int, HostCall]) -> None:
        """Report calls, from the end of their run until there are none any more."""
        began = trio.current_time()
        # Goes on in a cancelled run, whose caller waits for these calls all the same.
        with trio.CancelScope(shield=True) as self._reporting:
            while calls:
                await trio.sleep(self._grace_seconds)
                for call in tuple(calls.values()):
                    self._listener(call, trio.current_time() - began)

    def end(self) -> None:
        """Take note that there are none any more."""
        if self._reporting is not None:
            self._reporting.cancel()
