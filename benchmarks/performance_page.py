"""Writes the figures of a run of the suite into docs/performance.md.

    python benchmarks/performance_page.py benchmarks/results/latest.json docs/performance.md

The page has places for tables, between `<!-- figures: NAME -->` and `<!-- end -->`. Only ratios are written:
absolute times belong to one machine. What was not measured shows as a dash.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench_cold_start
import bench_compute
import bench_large_values
import bench_nested_calls
import bench_warm_runs
import compare_peers
import floors
from bench_dispatch_pipeline import STAGES

from codemode.measurement import write_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PLACE = re.compile(r"<!-- figures: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
ABSENT = "–"


class Figures:
    """What the suite wrote, and ratios of its rows."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record

    def ratio(self, row: str, against: str) -> str:
        """Return how many times the second row the first one is."""
        one, other = self.median(row), self.median(against)
        return ABSENT if one is None or not other else f"{_short(one / other)}x"

    def share(self, row: str, whole: str) -> str:
        """Return how much of the second row the first one is."""
        one, other = self.median(row), self.median(whole)
        return ABSENT if one is None or not other else f"{100 * one / other:.0f}%"

    def median(self, row: str) -> float | None:
        """Return the median of a row, or None where it was not measured."""
        found = self.record["rows"].get(row)
        return None if found is None else float(found["median"])


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine(figures: Figures) -> str:
    """Return what the figures were measured on."""
    about = figures.record["machine"]
    cores = len(about["cores"])
    # The first two numbers of the kernel; the rest is one machine's build.
    system = re.sub(r"(\d+\.\d+)\S*", r"\1", about["system"], count=1)
    return (
        f"Measured with CPython {about['python']} on {system}, {cores} cores, "
        f"in {figures.record['rounds']} rounds."
    )


def bounds(figures: Figures) -> str:
    """Return every claim that has a bound."""
    rows = []
    for claim in figures.record["claims"]:
        if claim["at_most"] is None:
            continue
        if claim["against"] is None:
            value = None if claim["figure"] is None else claim["figure"] / claim["at_most"]
            written = ABSENT if value is None else f"{100 * value:.0f}% of the bound"
            interval = (
                ""
                if value is None
                else " .. ".join(f"{100 * end / claim['at_most']:.0f}%" for end in claim["interval"] or ())
            )
            rows.append((claim["text"], written, interval, _bound(claim, figures), claim["verdict"]))
            continue
        figure = ABSENT if claim["figure"] is None else f"{_short(claim['figure'])}x"
        spread = " .. ".join(map(_short, claim["quartiles"] or ()))
        rows.append((claim["text"], figure, spread, _bound(claim, figures), claim["verdict"]))
    return table(("what", "figure", "rounds", "at most", ""), rows)


def _bound(claim: dict[str, Any], figures: Figures) -> str:
    if claim["against"] is not None:
        return f"{claim['at_most']:g}x"
    row = figures.record["rows"].get(claim["row"])
    return write_quantity(claim["at_most"], "B" if row is None else row["unit"])


def calls(figures: Figures) -> str:
    """Return the three ways of calling beside the floor and each other."""
    ways = {
        "sequential": bench_nested_calls.SEQUENTIAL,
        "gathered": bench_nested_calls.GATHERED,
        "batched": bench_nested_calls.BATCHED,
    }
    rows = [
        (
            name,
            figures.ratio(row, floors.ROUND_TRIP_ONE_CORE),
            figures.ratio(row, floors.ROUND_TRIP),
            figures.ratio(row, bench_nested_calls.SEQUENTIAL),
        )
        for name, row in ways.items()
    ]
    head = ("one call", "of a round trip on one core", "of a round trip anywhere", "of a sequential call")
    return table(head, rows)


def shares(figures: Figures) -> str:
    """Return the pieces of a sequential call, each measured alone."""
    whole = bench_nested_calls.SEQUENTIAL
    pieces = {
        "a bare round trip between two processes, one core": floors.ROUND_TRIP_ONE_CORE,
        "what trio's waiting adds to it, included": floors.TRIO_ROUND_TRIP_ONE_CORE,
        **{f"dispatch: {stage}": f"dispatch_pipeline/{stage}" for stage in STAGES},
        "both events written to the log": "session_log_append/100 bytes",
    }
    rows = [(name, figures.share(row, whole)) for name, row in pieces.items()]
    return table(("piece", "of a sequential call"), rows)


def runs(figures: Figures) -> str:
    """Return the ways of asking for a run."""
    ways = {
        "a worker parked": (bench_warm_runs.READY, floors.FORK),
        "back to back": (bench_warm_runs.BACK_TO_BACK, floors.FORK_BACK_TO_BACK),
        "the command, from nothing": (bench_cold_start.COMMAND, floors.FORK),
    }
    rows = [
        (name, figures.ratio(row, floor), figures.ratio(row, bench_warm_runs.READY))
        for name, (row, floor) in ways.items()
    ]
    rate, ready = figures.median(bench_warm_runs.SUSTAINED), figures.median(bench_warm_runs.READY)
    text = table(("one run", "of a fork to first byte", "of a run that finds a worker parked"), rows)
    if rate is None or ready is None:
        return text
    together = f"With 4 asked for at a time, {_short(rate * ready)} runs end in the time of one by itself."
    return f"{text}\n\n{together}"


def growth(figures: Figures) -> str:
    """Return what a call costs among many."""
    rows = [
        ("10 000 calls instead of 100", figures.ratio("growth/10 000 calls", "growth/100 calls")),
        ("1000 tools instead of 1", figures.ratio("growth/1000 tools", "growth/1 tool")),
        (
            "1000 tools instead of 1, the run itself",
            figures.ratio("growth/trivial run, 1000 tools", "growth/trivial run, 1 tool"),
        ),
    ]
    return table(("with", "costs"), rows)


def values(figures: Figures) -> str:
    """Return what values cost by their size."""
    smallest = f"large_values/{next(iter(bench_large_values.SIZES))}"
    rows = [
        (size, f"{count}", figures.ratio(f"large_values/{size}", smallest))
        for size, count in bench_large_values.SIZES.items()
    ]
    json_ratio = figures.ratio(bench_large_values.VALUE, "large_values/json, 1 MB")
    text = table(("value", "objects of three fields", "of a run with the smallest"), rows)
    return f"{text}\n\nThe largest takes {json_ratio} what plain `json` takes there and back in one process."


def compute(figures: Figures) -> str:
    """Return how much slower programs are that only compute."""
    rows = [
        (name, figures.ratio(f"compute/{name}", f"compute/{name}, plain")) for name in bench_compute.PROGRAMS
    ]
    return table(("program", "whole run, of plain CPython in a function"), rows)


def peers(figures: Figures) -> str:
    """Return other systems, in times ours."""
    rows = []
    for peer in compare_peers.PEERS:
        version = figures.record["facts"].get(peer.name, {}).get("version", "")
        reason = figures.record["failures"].get(peer.name)
        cells = [
            figures.ratio(f"{peer.name}/{workload}", ours) for workload, ours in compare_peers.OURS.items()
        ]
        rows.append((f"{peer.name} {version}".strip(), *cells, reason or peer.note))
    return table(("system", *compare_peers.OURS, "isolation"), rows)


TABLES: dict[str, Callable[[Figures], str]] = {
    each.__name__: each for each in (machine, bounds, calls, shares, runs, growth, values, compute, peers)
}


def fill(page: str, record: dict[str, Any]) -> str:
    """Return the page with the figures of a run in every place.

    Raises:
        KeyError: The page has a place for a table that nobody writes.
    """
    figures = Figures(record)
    return PLACE.sub(
        lambda place: f"<!-- figures: {place[1]} -->\n{TABLES[place[1]](figures)}\n<!-- end -->", page
    )


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="what `suite.py --json` wrote")
    parser.add_argument("page", type=Path, help="the page to fill")
    options = parser.parse_args()
    record = json.loads(options.results.read_text(encoding="utf-8"))
    options.page.write_text(fill(options.page.read_text(encoding="utf-8"), record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
