"""How much memory does a parked worker keep from others?

    python benchmarks/bench_idle_workers.py [--rounds 10]

Unit: bytes that only the worker holds (USS), as the kernel counts them; shared pages of the fork server are
not a worker's. Method: one sample per parked worker and round, of a service that is otherwise idle; a
trivial run in between makes the next round's workers new ones.
Above 4 MB, parking one worker per core by default would be reconsidered.
Reading another process's memory map needs the right to trace it, which a locked-down worker gives to root
only; elsewhere the row is missing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psutil
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import open_logged_service, run_seconds, wait_parked
from measuring.trio_driver import serve_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codemode.service import CodeService

MAX_BYTES = 4e6
PARKED = 4


async def worker_bytes(service: CodeService) -> list[float]:
    """Return what each parked worker holds for itself."""
    await run_seconds(service, "return 1")
    await wait_parked(service)
    below = psutil.Process().children(recursive=True)
    # The fork server, and in its own process namespace an init process, have children; workers have none.
    parents = {process.ppid() for process in below}
    workers = [process for process in below if process.pid not in parents]
    return [float(process.memory_full_info().uss) for process in workers]


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield the one case."""
    async with open_logged_service(parked_workers=PARKED) as service:
        yield {"USS": Case(lambda: worker_bytes(service), unit="B")}


BENCHMARK = Benchmark(
    "idle_workers",
    "How much memory does a parked worker keep from others?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(Claim("idle parked worker, memory of its own", "idle_workers/USS", at_most=MAX_BYTES),),
)

if __name__ == "__main__":
    BENCHMARK.main()
