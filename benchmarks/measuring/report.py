"""The table and the JSON of a run of benchmarks."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

from codemode.measurement import write_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from measuring.claims import Judged
    from measuring.rounds import Measured, Row


def rows_table(measured: Measured) -> str:
    """Return one line per row: median, quartiles, least, number of samples."""
    width = max((len(name) for name in measured.rows), default=0)
    lines = [f"{'':{width}} {'median':>10} {'quartiles':>23} {'least':>10} {'n':>5}"]
    for name, row in measured.rows.items():
        low, high = (write_quantity(value, row.unit) for value in row.samples.quartiles)
        median, least = (
            write_quantity(value, row.unit) for value in (row.samples.median, min(row.samples.values))
        )
        count = len(row.samples.values)
        lines.append(f"{name:{width}} {median:>10} {f'{low} .. {high}':>23} {least:>10} {count:>5}")
    lines += [f"{name:{width}} not measured: {why}" for name, why in measured.failures.items()]
    return "\n".join(lines)


def claims_table(judged: Sequence[Judged]) -> str:
    """Return one line per claim: the figure, how sure it is, its bound, whether it is kept.

    How sure: of a ratio the quartiles of the rounds; of a figure whose bound is to be kept for certain its
    95 % interval, whose upper end is what is held against the bound.
    """
    width = max((len(each.claim.text) for each in judged), default=0)
    sure = max([15, *(len(each.spread) for each in judged)])
    lines = [f"{'':{width}} {'figure':>10} {'rounds':>{sure}} {'at most':>9}"]
    for each in judged:
        line = (
            f"{each.claim.text:{width}} {each.written:>10} {each.spread:>{sure}} {each.bound:>9}"
            f"  {each.verdict}"
        )
        lines.append(line.rstrip())
    return "\n".join(lines)


def as_json(measured: Measured, judged: Sequence[Judged], rounds: int) -> dict[str, Any]:
    """Return everything that came out."""
    return {
        "machine": machine(),
        "rounds": rounds,
        "rows": {name: _row_json(row) for name, row in measured.rows.items()},
        "claims": [_claim_json(each) for each in judged],
        "failures": measured.failures,
        "facts": measured.facts,
    }


def machine() -> dict[str, Any]:
    """Return what a reader must know before comparing absolute figures, which is better not done at all."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": sorted(os.sched_getaffinity(0)),
    }


def _row_json(row: Row) -> dict[str, Any]:
    low, high = row.samples.quartiles
    return {
        "unit": row.unit,
        "median": row.samples.median,
        "quartiles": [low, high],
        "p99": row.samples.percentile(99),
        "least": min(row.samples.values),
        "samples": len(row.samples.values),
    }


def _claim_json(each: Judged) -> dict[str, Any]:
    return {
        "text": each.claim.text,
        "row": each.claim.row,
        "against": each.claim.against,
        "figure": each.value,
        "quartiles": each.quartiles,
        "interval": each.interval,
        "at_most": each.claim.at_most,
        "verdict": each.verdict.lower(),
    }
