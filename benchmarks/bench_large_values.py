"""What does a large value cost on its way from a tool to a program?

    python benchmarks/bench_large_values.py [--rounds 10]

Unit: seconds per run of a program that calls one tool and returns the length of what it got, whole run
included. The tool declares what it returns, so every object and field is checked. The largest value is about
1 MB of JSON: 10 000 objects of three fields; the smaller ones show how the cost grows.
Method: interleaved rounds beside plain `json`, there and back, of the same value in one process.
A value above 3 times what `json` takes there and back would mean that it is encoded, decoded or walked once
too often.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, TypedDict

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import open_logged_service, run_seconds
from measuring.trio_driver import serve_trio

from tool_bindings import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SIZES = {"10 kB": workloads.scaled(100), "100 kB": workloads.scaled(1_000), "1 MB": workloads.VALUE_ROWS}
VALUE = "large_values/1 MB"


class Row(TypedDict):
    """One object of the value."""

    id: int
    name: str
    score: float


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield one case per size, and the largest through plain `json`."""
    values = {count: workloads.make_rows(count) for count in SIZES.values()}
    registry = ToolRegistry()

    @registry.tool(concurrency_safe=True)
    async def rows(count: int) -> list[Row]:
        """Return many rows."""
        return values[count]  # type: ignore[return-value]  # rows they are

    async with open_logged_service(registry) as service:

        def case(count: int) -> Case:
            return Case(lambda: run_seconds(service, f"return len(await tools.rows(count={count}))"))

        yield {
            **{size: case(count) for size, count in SIZES.items()},
            "json, 1 MB": Case(lambda: json_seconds(values[workloads.VALUE_ROWS])),
        }


def json_seconds(value: object) -> float:
    """Return what encoding and decoding takes."""
    began = time.perf_counter()
    json.loads(json.dumps(value))
    return time.perf_counter() - began


BENCHMARK = Benchmark(
    "large_values",
    "What does a large value cost on its way from a tool to a program?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim("1 MB value / plain json there and back", VALUE, "large_values/json, 1 MB"),
        Claim("1 MB value / 100 kB value", VALUE, "large_values/100 kB"),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
