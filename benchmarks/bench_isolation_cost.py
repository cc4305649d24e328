"""What does isolation cost per run, and what does a parked worker save?

    python benchmarks/bench_isolation_cost.py [--rounds 20]

Unit: seconds from asking for a worker to the first text its program prints, as the host sees it, or to the
program's first instruction: it reads the clock that both processes share, and the text brings that back. The
ways take turns, so that what else the machine does hits all of them alike:

    first instruction, locked       in a parked worker behind the kernel wall
    first instruction, both walls   with the language wall as well, which compiles and judges a program first

and, all of them to the first text:

    locked          a parked worker behind the kernel wall
    unlocked        a parked worker without it (limits and deadlines only)
    the difference  of pairs of the two, see below
    of two locked   the same for two sandboxes that are both locked: what the method finds where there is
                    nothing to find
    plain fork      the host asks a plain, single-threaded process with the same modules to fork; the child
                    writes one byte and ends. The least a process per run could cost without parking.

Then what each step of the kernel wall takes in a fresh fork.

The first instruction must be executed within 1 ms, the first text must come within 0.8 times what a fork
takes, and isolation must cost less than 0.1 ms per run. More would reopen docs/decisions/0050.

A single run is some hundred microseconds earlier or later for reasons that have nothing to do with isolation,
so the difference is taken so that only the locks can make it:

- Before each measured run both sandboxes make a run that does not count, at the same time. So both have just
  made a worker, of the same age, told the same things, and whatever the first did to the machine the second
  did as well; then only one of them is measured.
- One pair is a measured run of each, one right after the other, since neighbours in time see the same
  machine. Which comes first alternates, so that an advantage of either place cancels out in the median.
- The figure is the median of the pairs' differences. What is held against the bound is not this median, which
  chance may put anywhere, but the upper end of its 95 % interval: at most one time in forty a difference at
  the bound or above it would pass. The interval is that of the sign test, which assumes nothing about the
  distribution and only that pairs are independent of each other, which the reset before each makes them. Too
  few or too noisy pairs make the interval wide and the claim fail; they never let it pass.
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

MAX_FIRST_INSTRUCTION_SECONDS = 0.001
MAX_DIFFERENCE_SECONDS = 0.0001
MAX_RATIO_TO_FORK = 0.8
SETTLE_SECONDS = 0.03
"""Pause before each measurement, in which the machine goes quiet."""
POLL_SECONDS = 0.002
REPEATS = workloads.scaled(10)
"""Measurements per sample."""
PAIRS = workloads.scaled(30)
CONTROL_PAIRS = workloads.scaled(10)
"""Pairs per sample, of the difference and of the two that are alike."""
PARKED = 2
"""Workers parked in each sandbox: what a service keeps on a machine of two cores. With one, the next would be
made while its only one runs."""
PROGRAM = Program("print('first')")
CLOCK_PROGRAM = Program("from time import perf_counter\nprint(perf_counter())")
"""What it reads is CLOCK_MONOTONIC, on the host as well. The import is charged along."""
LIMITS = Limits(wall_seconds=10, compute_seconds=5, memory_mb=128)
SERVE_FORKS, SERVE_STEPS = "--serve-forks", "--serve-steps"


async def first_text_seconds(sandbox: Sandbox, *others: Sandbox) -> float:
    """Wait until all is quiet, run a program that prints at once, and return when its text arrived."""
    arrived = 0.0

    def on_log(_: str) -> None:
        nonlocal arrived
        arrived = arrived or time.perf_counter()

    await settled(sandbox, *others)
    began = time.perf_counter()
    outcome = await sandbox.run(PROGRAM, on_log=on_log)
    assert outcome.failure is None
    return arrived - began


async def first_instruction_seconds(sandbox: Sandbox) -> float:
    """Wait until all is quiet, run a program that reads the clock at once, and return when it did."""
    await settled(sandbox)
    began = time.perf_counter()
    outcome = await sandbox.run(CLOCK_PROGRAM)
    (text,) = outcome.logs
    return float(text) - began


async def settled(*sandboxes: Sandbox) -> None:
    """Wait until every sandbox has its workers parked, and the machine has had a moment to go quiet."""
    while any(sandbox.statistics().parked < PARKED for sandbox in sandboxes):  # noqa: ASYNC110  # no event
        await trio.sleep(POLL_SECONDS)
    await trio.sleep(SETTLE_SECONDS)


class Pairs:
    """Differences between two sandboxes, see the head of this file.

    Args:
        one: The sandbox whose times count as they are.
        other: The one whose times are taken off.
    """

    def __init__(self, one: Sandbox, other: Sandbox) -> None:
        self._one = one
        self._other = other
        self._other_first = False

    async def take(self, count: int) -> list[float]:
        """Return the differences of so many pairs."""
        return [await self._pair() for _ in range(count)]

    async def _pair(self) -> float:
        self._other_first = not self._other_first
        if self._other_first:
            other = await self._measured(self._other)
            return await self._measured(self._one) - other
        one = await self._measured(self._one)
        return one - await self._measured(self._other)

    async def _measured(self, sandbox: Sandbox) -> float:
        async with trio.open_nursery() as nursery:
            for each in (self._one, self._other):
                nursery.start_soon(each.run, PROGRAM)
        return await first_text_seconds(sandbox, self._one, self._other)


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
    settings = SandboxSettings(limits=LIMITS, parked_workers=PARKED)
    async with (
        open_test_sandbox(settings, language_wall=False) as locked,
        open_test_sandbox(settings, language_wall=False) as locked_too,
        open_test_sandbox(settings, language_wall=False, kernel_wall=False) as unlocked,
        open_test_sandbox(settings) as both_walls,
    ):
        with open_plain_forker() as forker:
            difference, control = Pairs(locked, unlocked), Pairs(locked, locked_too)

            def case(measure: Callable[[], Awaitable[float]]) -> Case:
                async def sample() -> list[float]:
                    return [await measure() for _ in range(REPEATS)]

                return Case(sample)

            yield {
                "first instruction, locked": case(lambda: first_instruction_seconds(locked)),
                "first instruction, both walls": case(lambda: first_instruction_seconds(both_walls)),
                "locked": case(lambda: first_text_seconds(locked)),
                "unlocked": case(lambda: first_text_seconds(unlocked)),
                "the difference": Case(lambda: difference.take(PAIRS)),
                "of two locked": Case(lambda: control.take(CONTROL_PAIRS)),
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
        Claim(
            "first instruction, parked worker",
            "isolation_cost/first instruction, locked",
            at_most=MAX_FIRST_INSTRUCTION_SECONDS,
        ),
        Claim("first instruction, both walls", "isolation_cost/first instruction, both walls"),
        Claim("first text, parked worker", "isolation_cost/locked"),
        Claim(
            "isolation, per run",
            "isolation_cost/the difference",
            at_most=MAX_DIFFERENCE_SECONDS,
            for_certain=True,
        ),
        Claim("the same of two that are alike", "isolation_cost/of two locked", for_certain=True),
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
