"""Does a call stay as cheap when there are many calls, or many tools?

    python benchmarks/bench_growth.py [--rounds 10]

Unit: seconds per sequential call, the start of the run subtracted: each sample has a trivial run, too.
Method: interleaved rounds; programs of 100 and of 10 000 calls with one tool registered, and of 1000 calls
with 1 and with 1000 tools; and trivial runs with either, each with a worker ready.
A ratio above 1.25 would mean that something is kept, searched or written per call or per run that grows.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import new_registry, open_logged_service, run_seconds
from measuring.trio_driver import serve_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codemode.service import CodeService

MANY_TOOLS = workloads.scaled(1000)
FEW_CALLS, SOME_CALLS, MANY_CALLS = (workloads.scaled(calls) for calls in (100, 1000, 10_000))
FEW_REPEATS = workloads.scaled(10)
"""Programs of few calls per sample: one alone is hardly longer than the run around it."""
TRIVIAL = "return 1"


async def call_seconds(service: CodeService, calls: int) -> float:
    """Return what one of so many calls takes, without the run around them."""
    start = await run_seconds(service, TRIVIAL)
    whole = await run_seconds(service, f"for i in range({calls}):\n    await tools.add(a=i, b=2)")
    return (whole - start) / calls


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield calls per program, and tools per registry."""
    async with (
        open_logged_service() as one,
        open_logged_service(new_registry(MANY_TOOLS)) as many,
    ):

        def calls(service: CodeService, count: int, repeats: int = 1) -> Case:
            async def sample() -> list[float]:
                return [await call_seconds(service, count) for _ in range(repeats)]

            return Case(sample)

        yield {
            "100 calls": calls(one, FEW_CALLS, FEW_REPEATS),
            "10 000 calls": calls(one, MANY_CALLS),
            "1 tool": calls(one, SOME_CALLS),
            "1000 tools": calls(many, SOME_CALLS),
            "trivial run, 1 tool": Case(lambda: run_seconds(one, TRIVIAL)),
            "trivial run, 1000 tools": Case(lambda: run_seconds(many, TRIVIAL)),
        }


BENCHMARK = Benchmark(
    "growth",
    "Does a call stay as cheap when there are many calls, or many tools?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim("call, one of 10 000 / one of 100", "growth/10 000 calls", "growth/100 calls", 1.25),
        Claim("call, 1000 tools / 1 tool", "growth/1000 tools", "growth/1 tool", 1.25),
        Claim(
            "trivial run, 1000 tools / 1 tool",
            "growth/trivial run, 1000 tools",
            "growth/trivial run, 1 tool",
            1.25,
        ),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
