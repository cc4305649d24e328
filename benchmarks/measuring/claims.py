"""What a benchmark claims: a ratio of two rows, or one row, and its bound."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from codemode.measurement import Samples, Unit, write_quantity
from measuring.intervals import median_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from measuring.rounds import Measured


@dataclasses.dataclass(frozen=True)
class Claim:
    """One figure that matters.

    Attributes:
        text: What it says, in a few words.
        row: The row in question, "driver/case".
        against: The row it is divided by; without one, the row itself is the figure.
        at_most: The bound, in the row's unit when there is no `against`; without one it is only printed.
        for_certain: Whether, of a claim about one row, the upper end of the median's 95 % interval must keep
            the bound, and not just the median: for figures that are small beside what a machine does to
            single samples. Those must then be independent of each other.
    """

    text: str
    row: str
    against: str | None = None
    at_most: float | None = None
    for_certain: bool = False


@dataclasses.dataclass(frozen=True)
class Judged:
    """A claim and what came out. `value` is None when one of its rows could not be measured."""

    claim: Claim
    value: float | None
    quartiles: tuple[float, float] | None
    """Of the ratios of the single rounds, or of the row."""
    interval: tuple[float, float] | None = None
    """Of a claim that is to hold for certain: where the true median is, with 95 % confidence."""
    unit: Unit | None = None
    """The unit of a claim about one row; a ratio has none."""

    @property
    def verdict(self) -> str:
        """Return "ok", "over", "missing", or nothing where there is no bound."""
        if self.value is None:
            return "missing"
        if self.claim.at_most is None:
            return ""
        value = self.value if self.interval is None else self.interval[1]
        return "ok" if value <= self.claim.at_most else "OVER"

    @property
    def bound(self) -> str:
        """The bound as it is printed."""
        if self.claim.at_most is None:
            return ""
        return (
            f"{self.claim.at_most:g}x" if self.unit is None else write_quantity(self.claim.at_most, self.unit)
        )

    @property
    def spread(self) -> str:
        """How sure the figure is, as printed: its interval, or the quartiles of the ratios of rounds."""
        if self.interval is not None and self.unit is not None:
            low, high = (write_quantity(end, self.unit) for end in self.interval)
            return f"{low} .. {high}"
        if self.quartiles is not None and self.claim.against is not None:
            return f"{self.quartiles[0]:.2f} .. {self.quartiles[1]:.2f}"
        return ""

    @property
    def written(self) -> str:
        """The figure as it is printed."""
        if self.value is None:
            return "-"
        return f"{self.value:.2f}x" if self.unit is None else write_quantity(self.value, self.unit)


def judge(claim: Claim, measured: Measured) -> Judged:
    """Return what came out for a claim: the ratio of the medians, and how the rounds spread around it."""
    row = measured.rows.get(claim.row)
    if row is None:
        return Judged(claim, None, None)
    if claim.against is None:
        interval = median_interval(row.samples.values) if claim.for_certain else None
        return Judged(claim, row.samples.median, row.samples.quartiles, interval, row.unit)
    other = measured.rows.get(claim.against)
    if other is None:
        return Judged(claim, None, None)
    ratio = row.samples.median / other.samples.median if other.samples.median else math.inf
    shared = [number for number in row.by_round if other.by_round.get(number)]
    pairs = [row.by_round[number] / other.by_round[number] for number in shared]
    return Judged(claim, ratio, Samples(tuple(pairs)).quartiles if pairs else None)


def rows_of(claims: Sequence[Claim]) -> set[str]:
    """Return the rows that claims speak of."""
    return {row for claim in claims for row in (claim.row, claim.against) if row is not None}
