"""Interleaved rounds: every case of every driver once per round, so that all see the same machine.

Knows: order, warm-up, what failed. Does not know: what is measured.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from typing import TYPE_CHECKING, Any

from codemode.measurement import Samples, Unit
from measuring.drivers import Driver, DriverError, DriverSpec, open_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class Row:
    """What came out for one case of one driver."""

    unit: Unit
    samples: Samples
    by_round: dict[int, float]
    """The median of each round's samples, for ratios of neighbours in time."""


@dataclasses.dataclass
class Measured:
    """What a whole run of benchmarks gave.

    Attributes:
        rows: By "driver/case".
        failures: What could not be measured, by driver or "driver/case", and why.
        facts: What each driver said of itself.
    """

    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    failures: dict[str, str] = dataclasses.field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def measure(
    specs: Sequence[DriverSpec],
    rounds: int,
    *,
    only: Callable[[str], bool] = lambda _: True,
    progress: Callable[[str], None] | None = None,
) -> Measured:
    """Start every driver, measure in interleaved rounds, and return what came out.

    One round more than asked for is made, and forgotten: it warms caches and pools up.

    Args:
        specs: The drivers.
        rounds: Rounds that count.
        only: Says of a row's name whether it is wanted.
        progress: Gets a line about what is going on.
    """
    say = progress or (lambda _: None)
    found = Measured()
    taken: dict[str, dict[int, list[float]]] = {}
    units: dict[str, Unit] = {}
    with contextlib.ExitStack() as stack:
        plan: list[tuple[str, Driver, str, int]] = []
        for spec in specs:
            say(f"starting {spec.name}")
            try:
                driver = stack.enter_context(open_driver(spec))
            except DriverError as error:
                found.failures[spec.name] = str(error)
                continue
            found.facts[spec.name] = driver.facts
            for case, about in driver.cases.items():
                row = f"{spec.name}/{case}"
                if only(row):
                    plan.append((row, driver, case, about["every"]))
                    units[row] = about["unit"]
        for number in range(rounds + 1):
            # In turns from either end: whoever always came after the same neighbour would inherit its caches.
            plan.reverse()
            for row, driver, case, every in plan:
                if row in found.failures or not _due(number, every):
                    continue
                say(f"round {number} of {rounds}: {row}" if number else f"warming up: {row}")
                try:
                    values = driver.sample(case)
                except DriverError as error:
                    found.failures[row] = str(error)
                    continue
                if number:
                    taken.setdefault(row, {})[number] = values
    for row, unit in units.items():
        if row in taken and row not in found.failures:
            found.rows[row] = _row(unit, taken[row])
    return found


def _due(number: int, every: int) -> bool:
    """Say whether a case is measured in a round. What takes long is not warmed up by a run of its own."""
    return every == 1 or number % every == 1


def _row(unit: Unit, taken: dict[int, list[float]]) -> Row:
    every = [value for values in taken.values() for value in values]
    medians = {number: Samples(tuple(values)).median for number, values in taken.items()}
    return Row(unit, Samples(tuple(every)), medians)


class Progress:
    """A line on standard error: rewritten on a terminal, else one every few seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._said = 0.0

    def __call__(self, text: str) -> None:
        """Show what is going on."""
        now = time.monotonic()
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text[:100]}")
        elif now - self._said > 5:
            sys.stderr.write(f"{text}\n")
            self._said = now
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
