"""What does a nested tool call cost, and how far is it from the floor?

Unit: microseconds per call, medians of interleaved rounds, and ratios to the floor of the same run.
Method: in each round, one after the other: a blocking socketpair round trip between two processes (unpinned,
then both on one core), then one program of 1000 calls each way: sequential, gathered, batched. The calls go
through the complete pipeline: validation, freezing, rendering, and both events written to a real file.
A warm trivial run is measured beside fork-to-first-byte.

Absolute figures do not carry over to another machine; the ratios of one run do.
A sequential ratio above 8 (to the pinned round trip), or a batch that is not at most half of gather, would
change decisions about the worker's loop and the wire.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path

import trio

from codemode import SessionLog, open_service
from tool_bindings import ToolRegistry

CALLS = 1000
ROUND_TRIPS = 500
MESSAGE = b"x" * 100

PROGRAMS = {
    "sequential": f"for i in range({CALLS}):\n    await tools.add(a=i, b=2)",
    "gathered": f"import asyncio\nawait asyncio.gather(*[tools.add(a=i, b=2) for i in range({CALLS})])",
    "batched": f"await codemode.batch([tools.add(a=i, b=2) for i in range({CALLS})])",
}


def round_trip_us(core: int | None) -> float:
    """Return the cost of one blocking round trip to another process."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if core is not None:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
    if child == 0:
        ours.close()
        while data := theirs.recv(65536):
            theirs.sendall(data)
        os._exit(0)
    theirs.close()
    began = time.perf_counter()
    for _ in range(ROUND_TRIPS):
        ours.sendall(MESSAGE)
        ours.recv(65536)
    elapsed = time.perf_counter() - began
    if core is not None:
        os.sched_setaffinity(0, before)
    ours.close()
    os.waitpid(child, 0)
    return elapsed / ROUND_TRIPS * 1e6


def fork_to_first_byte_us() -> float:
    """Return the time from fork to the child's first byte."""
    ours, theirs = socket.socketpair()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        theirs.sendall(b"x")
        os._exit(0)
    ours.recv(1)
    elapsed = time.perf_counter() - began
    os.waitpid(child, 0)
    ours.close()
    theirs.close()
    return elapsed * 1e6


async def measure(rounds: int) -> dict[str, list[float]]:
    """Return the samples of every row, in microseconds."""
    registry = ToolRegistry()

    @registry.tool(concurrency_safe=True)
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    samples: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as folder, SessionLog.open(Path(folder) / "events.jsonl") as log:
        async with open_service(registry, session_log=log) as service:
            for number in range(rounds + 1):
                warm = number > 0
                floors = (
                    ("round trip", round_trip_us(None)),
                    ("round trip, one core", round_trip_us(min(os.sched_getaffinity(0)))),
                    ("fork to first byte", fork_to_first_byte_us()),
                )
                for name, value in floors if warm else ():
                    note(name, value)
                for name, source in PROGRAMS.items():
                    await trio.sleep(
                        0.05
                    )  # Let the pool park the next worker: that is not what is asked here.
                    began = time.perf_counter()
                    outcome = await service.run_code(source)
                    elapsed = time.perf_counter() - began
                    assert outcome.ok, outcome.failure
                    if warm:
                        note(name, elapsed / CALLS * 1e6)
                await trio.sleep(0.05)
                began = time.perf_counter()
                await service.run_code("return 1")
                if warm:
                    note("trivial run", (time.perf_counter() - began) * 1e6)
    return samples


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="interleaved rounds (default 10)")
    samples = trio.run(measure, parser.parse_args().rounds)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    print(f"{'':24}{'median us':>12}{'min us':>12}")
    for name, values in samples.items():
        print(f"{name:24}{medians[name]:12.1f}{min(values):12.1f}")
    floor = medians["round trip, one core"]
    print()
    print(f"sequential / round trip on one core  {medians['sequential'] / floor:6.2f}   (target: at most 8)")
    print(f"sequential / round trip              {medians['sequential'] / medians['round trip']:6.2f}")
    batch_ratio = medians["batched"] / medians["gathered"]
    print(f"batched / gathered                   {batch_ratio:6.2f}   (target: at most 0.5)")
    print(
        f"trivial run / fork to first byte     {medians['trivial run'] / medians['fork to first byte']:6.2f}"
        "   (target: at most 0.7)"
    )


if __name__ == "__main__":
    main()
