"""What does a trivial run cost in a fresh, locked-down process, and how many fit into a second?

    python benchmarks/bench_warm_runs.py [--rounds 10]

Unit: seconds per run; runs per second.
Method: three ways of asking, in interleaved rounds beside the floor, a fork and the child's first byte.

    ready           one run at a time, each only after a worker is parked and the machine is quiet
    back to back    40 runs, each as soon as the one before has ended; their mean
    sustained       runs per second while 4 are asked for at a time

A ready run above 0.7 forks would mean that parking has lost its use; runs back to back above 2 forks, that
more is done per worker than it takes to make one.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import floors
import trio
import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import open_logged_service, run_seconds, wait_parked
from measuring.trio_driver import serve_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codemode.service import CodeService

PROGRAM = "return 1"
READY = "warm_runs/ready"
BACK_TO_BACK = "warm_runs/back to back"
SUSTAINED = "warm_runs/sustained"
BACK_TO_BACK_RUNS = workloads.scaled(40)
SUSTAINED_RUNS = workloads.scaled(200)
AT_ONCE = 4


async def ready(service: CodeService) -> list[float]:
    """Return the time of runs that find a worker parked."""
    return [await run_seconds(service, PROGRAM) for _ in range(workloads.RUNS)]


async def back_to_back(service: CodeService) -> float:
    """Return the mean time of runs one after the other."""
    await wait_parked(service)
    began = time.perf_counter()
    for _ in range(BACK_TO_BACK_RUNS):
        await service.run_code(PROGRAM)
    return (time.perf_counter() - began) / BACK_TO_BACK_RUNS


async def sustained(service: CodeService) -> float:
    """Return runs per second with several at a time."""
    left = SUSTAINED_RUNS

    async def take_turns() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await service.run_code(PROGRAM)

    await wait_parked(service)
    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(take_turns)
    return SUSTAINED_RUNS / (time.perf_counter() - began)


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield the three ways of asking."""
    async with open_logged_service() as service:
        yield {
            "ready": Case(lambda: ready(service)),
            "back to back": Case(lambda: back_to_back(service)),
            "sustained": Case(lambda: sustained(service), unit="1/s"),
        }


BENCHMARK = Benchmark(
    "warm_runs",
    "What does a trivial run cost in a fresh, locked-down process, and how many fit into a second?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim("trivial run, worker ready / fork to first byte", READY, floors.FORK, 0.7),
        Claim(
            "trivial run, back to back / fork to first byte, back to back",
            BACK_TO_BACK,
            floors.FORK_BACK_TO_BACK,
            2,
        ),
        Claim("trivial runs per second, 4 at a time", SUSTAINED),
    ),
    beside=(floors.FLOORS,),
)

if __name__ == "__main__":
    BENCHMARK.main()
