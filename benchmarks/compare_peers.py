"""How does the service compare with other systems that run a model's programs?

    python benchmarks/compare_peers.py [--rounds 10] [--one-core]

Unit: seconds per call or per run, medians of interleaved rounds, and ratios to ours.
Method: every system runs in a process of its own, by the interpreter of a virtual environment of its own, as
it is shipped; only limits that the workloads would hit are raised. The same workloads, checked results:

    trivial run       a program that returns 1, in fresh state, a worker ready where there is one
    sequential call   1000 awaited calls of a trivial tool, divided by 1000
    gathered call     the same calls gathered
    1 MB value        one call that returns 10 000 objects; the program returns their number
    nested loops, word count, join      programs that only compute

What isolation each has differs: see the note printed with each. Systems that cannot be installed are
reported and left out. Environments are kept in the user's cache directory (`codemode/benchmarks`).
Bounds are those of docs/performance.md; one that is exceeded makes the exit status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import bench_compute
import bench_large_values
import bench_nested_calls
import bench_warm_runs
import workloads
from measuring.benchmark import Claim, add_options, ask, one_core
from measuring.drivers import DriverSpec
from measuring.environments import InstallError, python_for
from measuring.rounds import Progress

from codemode.measurement import write_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from measuring.rounds import Measured

SCRIPTS = Path(__file__).resolve().parent / "peers"


@dataclasses.dataclass(frozen=True)
class Peer:
    """Another system.

    Attributes:
        name: What its rows are called in front.
        script: Its driver, in `peers`.
        requirements: What its environment needs.
        note: What isolates a program there.
    """

    name: str
    script: str
    requirements: tuple[str, ...]
    note: str


MONTY = ("pydantic-monty>=1.4,<2",)
PEERS = (
    Peer("plain exec", "plain_exec.py", (), "no isolation"),
    Peer("monty async", "monty_async.py", MONTY, "own interpreter in a worker process"),
    Peer("monty sync", "monty_sync.py", MONTY, "own interpreter in a worker process"),
    Peer(
        "fastmcp CodeMode",
        "fastmcp_code_mode.py",
        ("fastmcp[code-mode]>=4.2,<5",),
        "monty, started for each run",
    ),
    Peer(
        "harness CodeMode",
        "harness_code_mode.py",
        ("pydantic-ai-harness[code-mode]>=0.62,<1",),
        "monty, started for each agent run",
    ),
    Peer("smolagents local", "smolagents_local.py", ("smolagents>=1.26,<2",), "none: interpreter in process"),
)

OURS = {
    "trivial run": bench_warm_runs.READY,
    "sequential call": bench_nested_calls.SEQUENTIAL,
    "gathered call": bench_nested_calls.GATHERED,
    "1 MB value": bench_large_values.VALUE,
    **{name: bench_compute.small(name) for name in workloads.COMPUTE},
}
"""Which of our rows answers which workload."""

OWN = (
    bench_nested_calls.BENCHMARK,
    bench_warm_runs.BENCHMARK,
    bench_large_values.BENCHMARK,
    bench_compute.BENCHMARK,
)


def against(peer: str, workload: str, at_most: float | None = None) -> Claim:
    """Return the claim about one workload and one peer."""
    return Claim(f"{workload} / {peer}", OURS[workload], f"{peer}/{workload}", at_most)


CLAIMS = (
    against("monty async", "sequential call", 0.20),
    against("monty sync", "sequential call", 0.30),
    against("monty async", "gathered call", 0.15),
    against("fastmcp CodeMode", "trivial run", 0.2),
    against("monty async", "1 MB value", 1.0),
)


def specs(peers: Iterable[Peer] = PEERS) -> tuple[list[DriverSpec], dict[str, str]]:
    """Return how to start those that could be installed, and why the others could not."""
    found, missing = [], {}
    progress = Progress()
    for peer in peers:
        progress(f"preparing {peer.name}")
        try:
            python = python_for(peer.requirements)
        except InstallError as error:
            missing[peer.name] = f"cannot be installed: {error}"
            continue
        found.append(DriverSpec(peer.name, (python, str(SCRIPTS / peer.script))))
    progress.clear()
    return found, missing


def matrix(measured: Measured) -> str:
    """Return one line per system and one column per workload: the median, and how many times ours it is."""
    names = ["codemode", *(peer.name for peer in PEERS)]
    width = max(map(len, names))
    lines = [" " * width + "".join(f"{workload:>20}" for workload in OURS)]
    for name in names:
        cells = []
        for workload, ours in OURS.items():
            row = measured.rows.get(ours if name == "codemode" else f"{name}/{workload}")
            base = measured.rows.get(ours)
            if row is None:
                cells.append(f"{'-':>20}")
                continue
            text = write_quantity(row.samples.median, row.unit)
            times = "" if base is None else f"{row.samples.median / base.samples.median:.2g}x"
            cells.append(f"{text:>11} {times:>8}")
        lines.append(f"{name:{width}}{''.join(cells)}")
    for peer in PEERS:
        version = measured.facts.get(peer.name, {}).get("version", "")
        state = measured.failures.get(peer.name, peer.note)
        lines.append(f"{peer.name:{width}} {version:>8}  {state}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    options = parser.parse_args()
    found, missing = specs()
    ours = set(OURS.values())
    own_names = {benchmark.name for benchmark in OWN}
    with one_core() if options.one_core else contextlib.nullcontext():
        answer = ask(
            [*(benchmark.spec for benchmark in OWN), *found],
            CLAIMS,
            options,
            wanted=lambda row: row in ours or row.partition("/")[0] not in own_names,
        )
    answer.measured.failures.update(missing)
    print(answer.tables())
    print()
    print(matrix(answer.measured))
    answer.write(options.json)
    return answer.status


if __name__ == "__main__":
    sys.exit(main())
