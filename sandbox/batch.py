"""The batch that a run is busy with: calls that came in one message, and how far they are.

Knows: what is left of it, and in whose task it is served. Does not know: what answers calls.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from sandbox import wire
    from sandbox.vocabulary import Cancellable, Step


class Batch:
    """What is left of a batch.

    For its calls it stands for the scope of the task that serves them, which is another one whenever a call
    waits and takes its task with it.

    Args:
        calls: Its calls, in order.
    """

    __slots__ = ("calls", "scope", "steps")

    def __init__(self, calls: Iterable[wire.Call]) -> None:
        self.calls = deque(calls)
        """Those that have not begun."""
        self.steps: Generator[Step, None, None] | None = None
        """Where several of them are answered together."""
        self.scope: Cancellable
        """The scope of the task that serves it."""

    def cancel(self) -> None:
        """Cancel the scope of the task that serves it."""
        self.scope.cancel()

    def close(self) -> None:
        """Begin no more calls, and end those that have begun and wait for nothing."""
        self.calls.clear()
        if self.steps is not None:
            self.steps.close()
