"""Every figure that matters, its bound, and whether it is kept, from one interleaved run.

    python benchmarks/suite.py [--peers] [--rounds 10] [--only TEXT] [--one-core] [--one-core-too]
                               [--json FILE] [--plot FILE.svg]
    python benchmarks/suite.py --check benchmarks/baseline.json
    python benchmarks/suite.py --write-baseline benchmarks/baseline.json

Exits 1 when a bound is exceeded or a figure is missing. With --check the bounds do not count: it exits 1 when
a ratio is more than 1.5 times the committed one. With --peers other systems run in the same rounds, each in a
virtual environment of its own that is made when it is first needed; see compare_peers.py.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import bench_cold_start
import bench_compute
import bench_dispatch_pipeline
import bench_exporters
import bench_growth
import bench_idle_workers
import bench_isolation_cost
import bench_language_wall
import bench_large_values
import bench_mcp_stub_size
import bench_nested_calls
import bench_session_log_append
import bench_warm_runs
import compare_peers
import floors
from measuring import baseline
from measuring.benchmark import add_options, ask, one_core
from measuring.plot import Panel, PlotError, draw

if TYPE_CHECKING:
    from measuring.benchmark import Answer
    from measuring.claims import Judged

BENCHMARKS = (
    bench_nested_calls.BENCHMARK,
    bench_warm_runs.BENCHMARK,
    bench_large_values.BENCHMARK,
    bench_compute.BENCHMARK,
    bench_growth.BENCHMARK,
    bench_idle_workers.BENCHMARK,
    bench_cold_start.BENCHMARK,
    bench_dispatch_pipeline.BENCHMARK,
    bench_session_log_append.BENCHMARK,
    bench_language_wall.BENCHMARK,
    bench_isolation_cost.BENCHMARK,
    bench_exporters.BENCHMARK,
    bench_mcp_stub_size.BENCHMARK,
)
ONE_CORE_ROUNDS = 3
"""Of the table with everything on one core, which has no bounds."""


def _beside_peers(workload: str) -> tuple[tuple[str, str], ...]:
    return (
        (compare_peers.OURS[workload], "codemode"),
        *((f"{peer.name}/{workload}", peer.name) for peer in compare_peers.PEERS),
    )


PANELS = (
    Panel(
        "One nested call, out of 1000",
        (
            (floors.ROUND_TRIP_ONE_CORE, "floor: round trip, one core"),
            (floors.ROUND_TRIP, "floor: round trip"),
            *_beside_peers("sequential call"),
        ),
    ),
    Panel(
        "One gathered call, out of 1000",
        (*_beside_peers("gathered call"), (bench_nested_calls.BATCHED, "codemode, batched")),
    ),
    Panel(
        "A trivial run in fresh state, worker ready",
        ((floors.FORK, "floor: fork to first byte"), *_beside_peers("trivial run")),
    ),
    Panel("A run that gets a 1 MB value from a tool", _beside_peers("1 MB value")),
    Panel("A run of nested loops", _beside_peers("nested loops")),
    Panel(
        "One call as calls and tools grow",
        tuple((f"growth/{case}", case) for case in ("100 calls", "10 000 calls", "1 tool", "1000 tools")),
    ),
    Panel(
        "A run that gets a value, by its size",
        tuple((f"large_values/{size}", size) for size in bench_large_values.SIZES),
    ),
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    parser.add_argument("--peers", action="store_true", help="other systems in the same rounds")
    parser.add_argument("--one-core-too", action="store_true", help="then again with everything on one core")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture: .svg, .png or .pdf")
    parser.add_argument("--check", type=Path, metavar="FILE", help="compare the ratios with committed ones")
    parser.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="commit to the ratios of this run"
    )
    options = parser.parse_args()
    found, missing = compare_peers.specs() if options.peers else ([], {})
    # A dictionary, because several stand beside the floors.
    beside = dict.fromkeys(spec for benchmark in BENCHMARKS for spec in benchmark.beside)
    specs = [*beside, *(benchmark.spec for benchmark in BENCHMARKS), *found]
    claims = [claim for benchmark in BENCHMARKS for claim in benchmark.claims]
    if options.peers:
        claims += compare_peers.CLAIMS
    with one_core() if options.one_core else contextlib.nullcontext():
        answer = ask(specs, claims, options)
    answer.measured.failures.update(missing)
    _print(answer, peers=options.peers)
    answer.write(options.json)
    if options.plot:
        _plot(answer, options.plot)
    if options.one_core_too:
        options.one_core, options.rounds = True, ONE_CORE_ROUNDS
        with one_core():
            print("\nEverything on one core, without bounds:\n")
            _print(ask(specs, claims, options), peers=options.peers)
    if options.write_baseline:
        baseline.write(options.write_baseline, own_ratios(answer))
    if options.check:
        changes = baseline.compare(options.check, own_ratios(answer))
        print(f"\nagainst {options.check.name}, at most {baseline.MAX_WORSENING}x of it:\n")
        print(baseline.table(changes))
        return int(any(change.fails for change in changes))
    return answer.status


def own_ratios(answer: Answer) -> list[Judged]:
    """Return what the guard looks at: ratios of our own rows, which need no other system."""
    own = {claim for benchmark in BENCHMARKS for claim in benchmark.claims}
    return [each for each in answer.judged if each.claim in own]


def _print(answer: Answer, *, peers: bool) -> None:
    print(answer.tables())
    if peers:
        print()
        print(compare_peers.matrix(answer.measured))


def _plot(answer: Answer, file: Path) -> None:
    ours = frozenset(benchmark.name for benchmark in BENCHMARKS)
    try:
        draw(answer.measured, PANELS, file, ours=ours)
    except PlotError as error:
        print(f"no picture: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
