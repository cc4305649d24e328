"""What does a nested tool call cost, and how far is it from the floor?

    python benchmarks/bench_nested_calls.py [--rounds 10] [--one-core]

Unit: seconds per call; one program of 1000 calls each way, whole run included: sequential, gathered, batched.
Method: interleaved rounds beside the floors, which are blocking round trips over a socket pair. The calls go
through the complete pipeline: validation, freezing, rendering, and both events written to a real file.

A sequential call above 8 round trips on one core, or a batch of more than half of what gathering costs, would
change decisions about the worker's loop and the wire.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import floors
import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import open_logged_service, run_seconds
from measuring.trio_driver import serve_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CALLS = workloads.CALLS
SEQUENTIAL = "nested_calls/sequential"
GATHERED = "nested_calls/gathered"
BATCHED = "nested_calls/batched"
PROGRAMS = {
    "sequential": f"for i in range({CALLS}):\n    await tools.add(a=i, b=2)",
    "gathered": f"import asyncio\nawait asyncio.gather(*[tools.add(a=i, b=2) for i in range({CALLS})])",
    "batched": f"await codemode.batch([tools.add(a=i, b=2) for i in range({CALLS})])",
}


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield the three ways of calling."""
    async with open_logged_service() as service:

        def per_call(source: str) -> Case:
            async def sample() -> float:
                return await run_seconds(service, source) / CALLS

            return Case(sample)

        yield {name: per_call(source) for name, source in PROGRAMS.items()}


BENCHMARK = Benchmark(
    "nested_calls",
    "What does a nested tool call cost, and how far is it from the floor?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim("sequential call / round trip, one core", SEQUENTIAL, floors.ROUND_TRIP_ONE_CORE, 8),
        Claim("sequential call / round trip", SEQUENTIAL, floors.ROUND_TRIP),
        Claim("gathered call / round trip, one core", GATHERED, floors.ROUND_TRIP_ONE_CORE),
        Claim("batched call / gathered call", BATCHED, GATHERED, 0.5),
    ),
    beside=(floors.FLOORS,),
)

if __name__ == "__main__":
    BENCHMARK.main()
