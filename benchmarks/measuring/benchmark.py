"""A benchmark file: what it measures, what it claims, and its command line."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import report
from measuring.claims import Claim, Judged, judge, rows_of
from measuring.drivers import DriverSpec
from measuring.rounds import Measured, Progress, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """One question.

    Attributes:
        name: What its rows are called in front; the file is `bench_<name>.py`.
        question: What it answers.
        file: Where it is.
        serve: Measures, as a driver.
        claims: The figures that answer the question.
        beside: Other drivers its claims need, for example the floors.
    """

    name: str
    question: str
    file: str
    serve: Callable[[], None]
    claims: tuple[Claim, ...] = ()
    beside: tuple[DriverSpec, ...] = ()

    @property
    def spec(self) -> DriverSpec:
        """How its driver is started."""
        return DriverSpec(self.name, (sys.executable, self.file, "--serve"))

    def main(self) -> None:
        """Be the driver when asked to; otherwise measure this question alone and print the answer."""
        if "--serve" in sys.argv[1:]:
            self.serve()
            return
        parser = argparse.ArgumentParser(description=self.question)
        add_options(parser)
        options = parser.parse_args()
        with one_core() if options.one_core else contextlib.nullcontext():
            answer = ask([self.spec, *self.beside], self.claims, options)
        print(answer.tables())
        answer.write(options.json)
        sys.exit(answer.status)


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a run of benchmarks gave, and what that says of the claims."""

    measured: Measured
    judged: list[Judged]
    rounds: int

    @property
    def status(self) -> int:
        """Exit status: 1 when a bound is exceeded, or there is no figure to hold against it."""
        return 1 if any(each.verdict in ("OVER", "missing") for each in self.judged) else 0

    def tables(self) -> str:
        """Return the rows, and below them the claims."""
        tables = [report.rows_table(self.measured)]
        if self.judged:
            tables.append(report.claims_table(self.judged))
        return "\n\n".join(tables)

    def write(self, file: str | None) -> None:
        """Write everything as JSON, where a file is named."""
        if file is not None:
            record = report.as_json(self.measured, self.judged, self.rounds)
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what every benchmark takes."""
    parser.add_argument("--rounds", type=int, default=10, help="interleaved rounds (default 10)")
    parser.add_argument(
        "--only", metavar="TEXT", help="only claims and rows with TEXT in their name, and what they need"
    )
    parser.add_argument("--one-core", action="store_true", help="keep every process on one core; no bounds")
    parser.add_argument("--json", metavar="FILE", help="write everything to FILE as well")


def ask(
    specs: Sequence[DriverSpec],
    claims: Sequence[Claim],
    options: argparse.Namespace,
    *,
    wanted: Callable[[str], bool] = lambda _: True,
) -> Answer:
    """Measure in one interleaved run, and judge the claims.

    Args:
        specs: The drivers.
        claims: What to say about their rows.
        options: What `add_options` added.
        wanted: Says of a row whether it is measured at all.
    """
    if options.one_core:
        # Bounds are for a machine as it is.
        claims = [dataclasses.replace(claim, at_most=None) for claim in claims if claim.against is not None]
    text = options.only
    if text:
        claims = [claim for claim in claims if any(text in name for name in (claim.text, *rows_of([claim])))]
    needed = rows_of(claims)
    progress = Progress()
    measured = measure(
        specs,
        options.rounds,
        only=lambda row: wanted(row) and (not text or text in row or row in needed),
        progress=progress,
    )
    progress.clear()
    return Answer(measured, [judge(claim, measured) for claim in claims], options.rounds)


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and every driver started meanwhile, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


__all__ = ["Answer", "Benchmark", "Claim", "add_options", "ask", "one_core"]
