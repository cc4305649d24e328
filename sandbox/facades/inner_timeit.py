# ruff: noqa: A002 -- the names and signatures are the library's
"""`timeit` for programs: times functions. Text never becomes code here: a statement is a function.

Knows: how `timeit` counts. Does not know: anything else; this text runs as a program does.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

__all__ = ["Timer", "default_timer", "repeat", "timeit"]

default_timer = time.perf_counter


def _callable(what: str, given: Any) -> Any:
    if given == "pass":
        return lambda: None
    if not callable(given):
        raise TypeError(f"timeit takes the {what} as a function here, not as text: write lambda: f(x)")
    return given


class Timer:
    """Times a function that takes no arguments."""

    def __init__(
        self, stmt: Any = "pass", setup: Any = "pass", timer: Any = default_timer, globals: Any = None
    ) -> None:
        self._statement = _callable("statement", stmt)
        self._setup = _callable("setup", setup)
        self._timer = timer

    def timeit(self, number: int = 1_000_000) -> float:
        """Return the seconds that so many calls take."""
        statement, timer = self._statement, self._timer
        self._setup()
        start = timer()
        for _ in itertools.repeat(None, number):
            statement()
        taken: float = timer() - start
        return taken

    def repeat(self, repeat: int = 5, number: int = 1_000_000) -> list[float]:
        """Time several times."""
        return [self.timeit(number) for _ in range(repeat)]

    def autorange(self, callback: Any = None) -> tuple[int, float]:
        """Find a number of calls that takes at least 0.2 seconds."""
        scale = 1
        while True:
            for factor in (1, 2, 5):
                number = scale * factor
                taken = self.timeit(number)
                if callback:
                    callback(number, taken)
                if taken >= 0.2:
                    return number, taken
            scale *= 10


def timeit(
    stmt: Any = "pass",
    setup: Any = "pass",
    timer: Any = default_timer,
    number: int = 1_000_000,
    globals: Any = None,
) -> float:
    """Return the seconds that so many calls of a function take."""
    return Timer(stmt, setup, timer).timeit(number)


def repeat(
    stmt: Any = "pass",
    setup: Any = "pass",
    timer: Any = default_timer,
    repeat: int = 5,
    number: int = 1_000_000,
    globals: Any = None,
) -> list[float]:
    """Time a function several times."""
    return Timer(stmt, setup, timer).repeat(repeat, number)
