"""What calls of one tool cost on this machine, beside what no design can beat.

Measures in interleaved rounds: whatever else the machine does hits every row alike, so the ratios hold where
the times do not.

Knows: the ways of calling, their order, what is subtracted. Does not know: options, tables.
"""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any, Final

import trio

from codemode.floors import fork_seconds, round_trip_seconds
from codemode.measurement import Samples
from codemode.outcome import failure_text
from tool_bindings.content import blocks_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codemode.service import CodeService
    from tool_bindings import AbortSignal

ROUND_TRIP: Final = "round trip between processes"
ROUND_TRIP_ONE_CORE: Final = "the same, both on one core"
FORK: Final = "fork to first byte"
TRIVIAL: Final = "trivial run"
DIRECT: Final = "direct call"
SEQUENTIAL: Final = "sequential call"
GATHERED: Final = "gathered call"
BATCHED: Final = "batched call"

RATIOS: Final = (
    (SEQUENTIAL, ROUND_TRIP_ONE_CORE),
    (SEQUENTIAL, DIRECT),
    (GATHERED, SEQUENTIAL),
    (BATCHED, GATHERED),
    (TRIVIAL, FORK),
)
"""Which rows are worth dividing by which."""

TRIVIAL_PROGRAM: Final = "return 1"
_ROUND_TRIPS: Final = 200
_FORKS: Final = 5
_POLL_SECONDS: Final = 0.002
_PARK_SECONDS: Final = 60.0
"""Arbitrary; parking a worker takes some milliseconds."""
QUIET_SECONDS: Final = 0.03
"""After a worker is parked: what the fork server does last must not run into the measurement."""


class BenchmarkError(Exception):
    """What was to be measured failed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """What is called.

    Attributes:
        tool: Its name.
        arguments: What it is called with, every time.
        calls: Calls per program.
    """

    tool: str
    arguments: Mapping[str, Any]
    calls: int

    def programs(self) -> dict[str, str]:
        """Return a program for each way of making many calls."""
        # JSON text as a string literal: its numbers and names mean the same in the program as here.
        head = (
            "import asyncio, json\n"
            f"arguments = json.loads({json.dumps(json.dumps(dict(self.arguments)))})\n"
            f"tool = tools[{json.dumps(self.tool)}]\n"
        )
        many = f"[tool(**arguments) for _ in range({self.calls})]"
        return {
            SEQUENTIAL: f"{head}for _ in range({self.calls}):\n    await tool(**arguments)",
            GATHERED: f"{head}await asyncio.gather(*{many})",
            # A failure is a value here, and must not look like speed.
            BATCHED: f"{head}for result in await codemode.batch({many}):\n"
            "    if isinstance(result, Exception):\n        raise result",
        }


async def measure_subject(
    service: CodeService,
    subject: Subject,
    rounds: int,
    *,
    abort: AbortSignal | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Samples]:
    """Return the seconds of each row, one sample per round.

    A round more is made first, and forgotten. Calls are given per call, without the run around them.

    Args:
        service: Whose registry has the tool.
        subject: What is called.
        rounds: Rounds that count.
        abort: Ends the run that is going on, which then fails.
        progress: Gets a few words about what is going on.

    Raises:
        BenchmarkError: The tool or a program failed.
    """
    taken: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        progress(f"round {number} of {rounds}" if number else "warming up")
        found = await _floors()
        found[DIRECT] = await _direct_seconds(service, subject, abort)
        found[TRIVIAL] = await run_seconds(service, TRIVIAL_PROGRAM, abort=abort)
        for name, source in subject.programs().items():
            whole = await run_seconds(service, source, abort=abort)
            found[name] = (whole - found[TRIVIAL]) / subject.calls
        if number:
            for name, value in found.items():
                taken.setdefault(name, []).append(value)
    return {name: Samples(tuple(values)) for name, values in taken.items()}


async def _floors() -> dict[str, float]:
    forks = []
    for _ in range(_FORKS):
        # With caches as cold as those of a run, before which there is a pause, too.
        await trio.sleep(QUIET_SECONDS)
        forks.append(fork_seconds())
    return {
        ROUND_TRIP: round_trip_seconds(_ROUND_TRIPS, one_core=False),
        ROUND_TRIP_ONE_CORE: round_trip_seconds(_ROUND_TRIPS, one_core=True),
        FORK: Samples(tuple(forks)).median,
    }


async def _direct_seconds(service: CodeService, subject: Subject, abort: AbortSignal | None) -> float:
    arguments = dict(subject.arguments)
    began = time.perf_counter()
    for _ in range(subject.calls):
        result = await service.call(subject.tool, arguments, abort=abort)
        if result.is_error:
            raise BenchmarkError(f"tool {subject.tool!r} failed: {blocks_text(result.content)}")
    return (time.perf_counter() - began) / subject.calls


async def run_seconds(service: CodeService, source: str, *, abort: AbortSignal | None = None) -> float:
    """Return how long a program takes that finds a worker ready.

    Raises:
        BenchmarkError: It failed.
    """
    await wait_parked(service)
    began = time.perf_counter()
    outcome = await service.run_code(source, abort=abort)
    took = time.perf_counter() - began
    if outcome.failure is not None:
        raise BenchmarkError(failure_text(outcome.failure, (), ()))
    return took


async def wait_parked(service: CodeService) -> None:
    """Return when as many workers wait as are wanted, and the machine has had a moment to go quiet.

    Raises:
        BenchmarkError: They do not come.
    """
    with trio.move_on_after(_PARK_SECONDS) as waiting:
        while service.statistics().parked < service.settings.parked_workers:  # noqa: ASYNC110  # no event
            await trio.sleep(_POLL_SECONDS)
    if waiting.cancelled_caught:
        raise BenchmarkError(f"no worker was ready after {_PARK_SECONDS:g} seconds")
    await trio.sleep(QUIET_SECONDS)
