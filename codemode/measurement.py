"""Samples of a measured quantity, and how they are summarised and written.

Knows: medians, quartiles, ratios, units. Does not know: what is measured, or how.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["s", "B", "1/s", "count"]
"""Seconds, bytes, events per second, or a plain number."""

_SECONDS: Final = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))
_BYTES: Final = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))


@dataclasses.dataclass(frozen=True, slots=True)
class Samples:
    """What was measured of one thing, in the order it was measured.

    Medians, because what else a machine does only ever adds, and only to some of the samples.
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("there is nothing to summarise: no sample was taken")

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        """What a quarter and three quarters of the values lie below; their distance is the spread."""
        return self.percentile(25), self.percentile(75)

    def percentile(self, percent: float) -> float:
        """Return the value that `percent` of the values lie below, between its neighbours in proportion."""
        ordered = sorted(self.values)
        place = (len(ordered) - 1) * percent / 100
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def write_quantity(value: float, unit: Unit) -> str:
    """Write a value with three significant digits and the prefix that suits it."""
    if unit == "s":
        return _scaled(value, _SECONDS)
    if unit == "B":
        return _scaled(value, _BYTES)
    return f"{_three_digits(value)}{'/s' if unit == '1/s' else ''}"


def _scaled(value: float, scales: Sequence[tuple[float, str]]) -> str:
    # Compared as rounded, so that 999.7 us is written as 1.00 ms.
    fitting = [scale for scale in scales if abs(value) >= scale[0] * 0.9995]
    size, name = fitting[-1] if fitting else scales[0]
    return f"{_three_digits(value / size)} {name}"


def _three_digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
