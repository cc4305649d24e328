"""Does anything leak, stall or go wrong over thousands of mixed runs?

    python benchmarks/endurance.py [--runs 5000] [--at-once 8]

Runs a mix of programs that succeed, raise, time out, exhaust memory, print too much, are stopped or
cancelled, or crash their worker, several at a time in one sandbox. Prints one line per question and exits 1
when an answer is not the expected one: zombies, descriptors, processes left, growth of the host's memory, lag
of the host's event loop, and runs whose outcome was not the expected one. The language wall is down, because
behind it no program can crash its worker.

A lag or a growth above its bound would reopen docs/decisions/0051.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import gc
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import trio

from sandbox.limits import Limits
from sandbox.supervisor import Sandbox, Stop
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Namespace, Outcome, Program, SandboxSettings

MAX_GROWTH_BYTES = 10_000_000
MAX_LAG_SECONDS = 0.1
WARM_UP_RUNS = 100
"""Runs before memory is first measured: caches fill and pools grow to their size."""
BEAT_SECONDS = 0.01
ZOMBIE_SECONDS = 10
"""Time for the fork server to wait for its children, which takes it milliseconds."""

LIMITS = Limits(wall_seconds=30, compute_seconds=10, memory_mb=64, max_output_bytes=100_000)


@dataclasses.dataclass(frozen=True)
class Kind:
    """One sort of program, how it must end, and how often it comes."""

    name: str
    source: str
    expected: str
    share: int
    """Runs of this sort in every hundred."""
    compute_seconds: float | None = None
    wall_seconds: float | None = None


KINDS = (
    Kind("success", "print('working')\nreturn [await host.echo(n=i) for i in range(3)]", "success", 50),
    Kind("exception", "print('working')\nraise ValueError('no')", "exception", 18),
    Kind("compute timeout", "while True: pass", "timeout", 4, compute_seconds=0.05),
    Kind("wall timeout", "await host.wait()", "timeout", 4, wall_seconds=0.2),
    Kind("memory limit", "kept = []\nwhile True: kept.append(bytearray(8_000_000))", "memory-limit", 4),
    Kind("output limit", "while True: print('x' * 1000)", "output-limit", 4),
    Kind("stop", "await host.wait()", "abort", 4),
    Kind("cancel", "await host.wait()", "cancelled", 4),
    Kind("exit", "import os\nos._exit(3)", "worker-exit", 4),
    Kind("crash", "import ctypes\nctypes.string_at(0)", "worker-exit", 4),
)


@dataclasses.dataclass
class Findings:
    """What happened during the runs."""

    wrong: list[str] = dataclasses.field(default_factory=list)
    ended: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    lags: list[float] = dataclasses.field(default_factory=list)
    zombies: int = 0


def mix(runs: int) -> list[Kind]:
    """Return the sorts of all runs: evenly mixed, and the same every time."""
    places = sorted((index / kind.share, kind.name, kind) for kind in KINDS for index in range(kind.share))
    return list(itertools.islice(itertools.cycle(kind for _, _, kind in places), runs))


async def run_one(sandbox: Sandbox, kind: Kind, findings: Findings) -> None:
    """Run one program and note whether it ended as it should."""
    reached = trio.Event()
    outcome: Outcome | None = None
    stop = Stop()

    async def answer(call: Any) -> Any:
        if call.member == "wait":
            reached.set()
            await trio.sleep_forever()
        return call.arguments

    async def run() -> None:
        nonlocal outcome
        space = Namespace("host", {"echo": "echo(*, n)", "wait": "wait()"}, answer)
        limits = LIMITS.tightened(compute_seconds=kind.compute_seconds, wall_seconds=kind.wall_seconds)
        outcome = await sandbox.run(Program(kind.source, (space,)), limits=limits, stop=stop)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        if kind.name in {"stop", "cancel"}:
            await reached.wait()
            if kind.name == "stop":
                stop.request("enough")
            else:
                nursery.cancel_scope.cancel()
    ending = "cancelled" if outcome is None else outcome.failure.kind if outcome.failure else "success"
    findings.ended[kind.name] += 1
    if ending != kind.expected:
        findings.wrong.append(f"{kind.name}: {ending} {outcome.failure if outcome else ''}")


async def run_all(sandbox: Sandbox, kinds: list[Kind], at_once: int, findings: Findings) -> None:
    """Run programs, several at a time, in order."""
    queue = iter(kinds)

    async def take_turns() -> None:
        for kind in queue:
            await run_one(sandbox, kind, findings)

    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(take_turns)


async def beat(findings: Findings) -> None:
    """Measure how late the event loop wakes a task that asked for it."""
    while True:
        due = time.perf_counter() + BEAT_SECONDS
        await trio.sleep(BEAT_SECONDS)
        findings.lags.append(time.perf_counter() - due)


def descriptors() -> int:
    """Return how many descriptors this process holds."""
    return len(list(Path("/proc/self/fd").iterdir()))


def count_zombies() -> int:
    """Return how many dead processes below this one have not been waited for."""
    count = 0
    for process in psutil.Process().children(recursive=True):
        try:
            count += process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            pass
    return count


async def main(runs: int, at_once: int) -> int:
    """Run everything, print the answers, return the exit status."""
    findings = Findings()
    settings = SandboxSettings(limits=LIMITS, max_concurrent_runs=at_once)
    host = psutil.Process()
    descriptors_before = descriptors()
    began = time.perf_counter()
    async with open_test_sandbox(settings, language_wall=False) as sandbox:
        await run_all(sandbox, mix(WARM_UP_RUNS), at_once, Findings())
        gc.collect()
        memory_before = host.memory_info().rss
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat, findings)
            await run_all(sandbox, mix(runs), at_once, findings)
            nursery.cancel_scope.cancel()
        gc.collect()
        growth = host.memory_info().rss - memory_before
        # One that ended this very moment may still be on its way to being waited for.
        with trio.move_on_after(ZOMBIE_SECONDS):
            while count_zombies():  # noqa: ASYNC110  # nobody tells us
                await trio.sleep(BEAT_SECONDS)
        findings.zombies = count_zombies()
    left = len(host.children(recursive=True))
    open_now = descriptors() - descriptors_before
    lag = sorted(findings.lags)[int(len(findings.lags) * 0.99)]
    seconds = time.perf_counter() - began
    print(f"runs                      {sum(findings.ended.values())} in {seconds:.0f} s, {at_once} at a time")
    print(f"                          {', '.join(f'{name} {n}' for name, n in findings.ended.items())}")
    answers = (
        ("zombies", findings.zombies, findings.zombies == 0),
        ("descriptor difference", open_now, open_now == 0),
        ("leftover processes", left, left == 0),
        ("host memory growth", f"{growth / 1e6:.1f} MB", growth < MAX_GROWTH_BYTES),
        ("event loop lag p99", f"{lag * 1000:.1f} ms", lag < MAX_LAG_SECONDS),
        ("unexpected outcomes", len(findings.wrong), not findings.wrong),
    )
    for name, value, good in answers:
        print(f"{name:25} {value}{'' if good else '   <-- not as it must be'}")
    for line in findings.wrong[:10]:
        print("   ", line)
    return 0 if all(good for _, _, good in answers) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run a mix of good and bad programs and look for leaks.")
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    sys.exit(trio.run(main, options.runs, options.at_once))
