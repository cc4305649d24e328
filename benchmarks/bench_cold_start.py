"""How long does the command take from nothing to the result of a trivial program?

    python benchmarks/bench_cold_start.py [--rounds 10]

Unit: seconds from starting `codemode run -c 'return 1'` to its end, which includes a fork server and a locked
worker. Method: interleaved with `python -c 'import trio'` and `python -c pass` of the same interpreter.
Above 2.5 times the import of trio, what the command imports would be reconsidered.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case, serve_plain

REPEATS = workloads.scaled(3)
COMMAND = "cold_start/codemode run"
COMMANDS = {
    "codemode run": (sys.executable, "-m", "codemode", "run", "-c", "return 1"),
    "import trio": (sys.executable, "-c", "import trio"),
    "python": (sys.executable, "-c", "pass"),
}


def command_seconds(command: tuple[str, ...]) -> float:
    """Return what a command takes."""
    # Without what the coordinator added to the search path, which every start would go through.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    began = time.perf_counter()
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{command[-1]!r} ended with status {done.returncode}: {done.stderr.strip()}")
    return took


def serve() -> None:
    """Measure what the coordinator asks for."""

    def case(command: tuple[str, ...]) -> Case:
        return Case(lambda: [command_seconds(command) for _ in range(REPEATS)])

    serve_plain({name: case(command) for name, command in COMMANDS.items()})


BENCHMARK = Benchmark(
    "cold_start",
    "How long does the command take from nothing to the result of a trivial program?",
    __file__,
    serve,
    claims=(
        Claim(
            "`codemode run -c 'return 1'` / `python -c 'import trio'`",
            COMMAND,
            "cold_start/import trio",
            2.5,
        ),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
