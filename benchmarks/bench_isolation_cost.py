"""What does isolation cost per run, and what does a parked worker save?

    python benchmarks/bench_isolation_cost.py [--rounds 20]

Unit: seconds from asking for a worker to the first text its program prints, as the host sees it. The ways
take turns, so that what else the machine does hits all of them alike:

    locked          a parked worker behind the kernel wall
    unlocked        a parked worker without it (limits and deadlines only)
    the difference  of pairs of the two, one right after the other, in both orders
    plain fork      the host asks a plain, single-threaded process with the same modules to fork; the child
                    writes one byte and ends. The least a process per run could cost without parking.

Then what each step of the kernel wall takes in a fresh fork.

Isolation must cost less than 0.1 ms per run, and the first text must come within 0.8 times what a fork takes.
More would reopen docs/decisions/0050.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import trio
import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.drivers import DriverSpec
from measuring.protocol import Case, serve_plain
from measuring.trio_driver import serve_trio

from sandbox.isolation import plan
from sandbox.isolation.privileges import WORKER_NICENESS
from sandbox.limits import Limits
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Program, SandboxSettings
from sandbox.worker import main as _worker_main  # noqa: F401  # what a worker has loaded, so that forks are alike

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from sandbox.supervisor import Sandbox

MAX_DIFFERENCE_SECONDS = 0.0001
MAX_RATIO_TO_FORK = 0.8
SETTLE_SECONDS = 0.03
"""Pause before each measurement, in which the pools refill and go quiet."""
REPEATS = workloads.scaled(10)
"""Measurements per sample."""
PROGRAM = Program("print('first')")
LIMITS = Limits(wall_seconds=10, compute_seconds=5, memory_mb=128)
SERVE_FORKS, SERVE_STEPS = "--serve-forks", "--serve-steps"


async def first_text_seconds(sandbox: Sandbox) -> float:
    """Run a program that prints at once, and return when its text arrived."""
    arrived = 0.0

    def on_log(_: str) -> None:
        nonlocal arrived
        arrived = arrived or time.perf_counter()

    await trio.sleep(SETTLE_SECONDS)
    began = time.perf_counter()
    outcome = await sandbox.run(PROGRAM, on_log=on_log)
    assert outcome.failure is None
    return arrived - began


# ---- plain forks: what this file does when it is started as the forking process


def serve_forks(descriptor: int) -> None:
    """Fork for each byte that comes; the child answers with a byte of its own and ends."""
    wire = socket.socket(fileno=descriptor)
    gc.collect()
    gc.freeze()
    wire.send(b"r")
    while wire.recv(1):
        pid = os.fork()
        if pid == 0:
            # A process per run would be given the same priority.
            os.nice(WORKER_NICENESS)
            wire.send(b"x")
            os._exit(0)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def open_plain_forker() -> Iterator[socket.socket]:
    """Start a process that forks when asked."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, __file__, SERVE_FORKS, str(theirs.fileno())], pass_fds=(theirs.fileno(),)
    )
    theirs.close()
    ours.recv(1)
    try:
        yield ours
    finally:
        ours.close()
        process.wait()


async def fork_seconds(forker: socket.socket) -> float:
    """Ask for one fork and return when its first byte arrived."""
    await trio.sleep(SETTLE_SECONDS)
    began = time.perf_counter()
    forker.send(b"f")
    forker.recv(1)
    return time.perf_counter() - began


# ---- single steps, in a driver of their own: only a process without threads forks as the fork server does


def step_seconds() -> dict[str, float]:
    """Apply every step in a fresh fork and return how long each took."""
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        took: dict[str, float] = {}
        for step in plan.STEPS:
            # In its own pid namespace the parent has another number; here the process stays outside it.
            launch = plan.Launch(address_space_bytes=1 << 34, cpu_seconds=60, parent_pid=parent)
            began = time.perf_counter()
            with contextlib.suppress(OSError, ValueError):
                step.apply(launch)
            took[step.name] = time.perf_counter() - began
        # RLIMIT_FSIZE does not bind a pipe, and write is allowed.
        os.write(writing, json.dumps(took).encode())
        os._exit(0)
    os.close(writing)
    data = os.read(reading, 65536)
    os.close(reading)
    os.waitpid(pid, 0)
    return dict(json.loads(data))


def serve_steps() -> None:
    """Measure what the coordinator asks for."""

    def case(name: str) -> Case:
        return Case(lambda: [step_seconds()[name] for _ in range(REPEATS)])

    serve_plain({step.name: case(step.name) for step in plan.STEPS})


# ---- the whole


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield the ways of getting a process to run in."""
    settings = SandboxSettings(limits=LIMITS, parked_workers=1)
    async with (
        open_test_sandbox(settings, language_wall=False) as locked,
        open_test_sandbox(settings, language_wall=False, kernel_wall=False) as unlocked,
    ):
        with open_plain_forker() as forker:

            async def difference() -> float:
                # Neighbours in time see the same machine. In both orders: the second finds warmer caches.
                first = await first_text_seconds(locked) - await first_text_seconds(unlocked)
                second = -await first_text_seconds(unlocked) + await first_text_seconds(locked)
                return (first + second) / 2

            def case(measure: Callable[[], Awaitable[float]]) -> Case:
                async def sample() -> list[float]:
                    return [await measure() for _ in range(REPEATS)]

                return Case(sample)

            yield {
                "locked": case(lambda: first_text_seconds(locked)),
                "unlocked": case(lambda: first_text_seconds(unlocked)),
                "the difference": case(difference),
                "plain fork": case(lambda: fork_seconds(forker)),
            }


BENCHMARK = Benchmark(
    "isolation_cost",
    "What does isolation cost per run, and what does a parked worker save?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim(
            "first text, parked worker / plain fork",
            "isolation_cost/locked",
            "isolation_cost/plain fork",
            MAX_RATIO_TO_FORK,
        ),
        Claim("isolation, per run", "isolation_cost/the difference", at_most=MAX_DIFFERENCE_SECONDS),
    ),
    beside=(DriverSpec("isolation_steps", (sys.executable, __file__, SERVE_STEPS)),),
)

if __name__ == "__main__":
    if SERVE_FORKS in sys.argv:
        serve_forks(int(sys.argv[-1]))
    elif SERVE_STEPS in sys.argv:
        serve_steps()
    else:
        BENCHMARK.main()
