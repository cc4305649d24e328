"""The floors: what no design can beat on this machine.

A driver only; see `codemode.floors` for what each of them is. The fork is of a process of about 30 MB that
has trio loaded, which is what a service that forked for each run, without parking, would have to fork; once
after a pause, as runs are measured that find a worker ready, and once back to back, as other runs are.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import trio
import workloads
from measuring.drivers import DriverSpec
from measuring.protocol import Case, serve_plain

from codemode.floors import MESSAGE, READ_BYTES, fork_seconds, open_echo, round_trip_seconds

if TYPE_CHECKING:
    import socket

ROUND_TRIPS = workloads.scaled(500)
FORKS = workloads.scaled(10)
ROUND_TRIP = "floors/round trip"
ROUND_TRIP_ONE_CORE = "floors/round trip, one core"
TRIO_ROUND_TRIP = "floors/round trip, trio"
TRIO_ROUND_TRIP_ONE_CORE = "floors/round trip, trio, one core"
FORK = "floors/fork to first byte"
FORK_BACK_TO_BACK = "floors/fork to first byte, back to back"

FLOORS = DriverSpec("floors", (sys.executable, str(Path(__file__).resolve()), "--serve"))


def trio_round_trip_seconds(*, one_core: bool) -> float:
    """Return what a round trip takes when our end waits in trio and the other end blocks."""
    with open_echo(one_core=one_core) as wire:
        wire.setblocking(False)
        return trio.run(_timed, wire)


async def _timed(wire: socket.socket) -> float:
    await _exchange(wire)
    began = time.perf_counter()
    await _exchange(wire)
    return (time.perf_counter() - began) / ROUND_TRIPS


async def _exchange(wire: socket.socket) -> None:
    for _ in range(ROUND_TRIPS):
        wire.send(MESSAGE)
        while True:
            await trio.lowlevel.wait_readable(wire)
            with contextlib.suppress(BlockingIOError):
                wire.recv(READ_BYTES)
                break


def forks_after_pauses() -> list[float]:
    """Return what forks take when the caches are as cold as those of a run that comes after a pause."""
    found = []
    for _ in range(FORKS):
        time.sleep(workloads.PAUSE_SECONDS)
        found.append(fork_seconds())
    return found


def main() -> None:
    """Measure what the coordinator asks for."""
    serve_plain(
        {
            "round trip": Case(lambda: round_trip_seconds(ROUND_TRIPS, one_core=False)),
            "round trip, one core": Case(lambda: round_trip_seconds(ROUND_TRIPS, one_core=True)),
            "round trip, trio": Case(lambda: trio_round_trip_seconds(one_core=False)),
            "round trip, trio, one core": Case(lambda: trio_round_trip_seconds(one_core=True)),
            "fork to first byte": Case(forks_after_pauses),
            "fork to first byte, back to back": Case(lambda: [fork_seconds() for _ in range(FORKS)]),
        },
        rss_mb=round(psutil.Process().memory_info().rss / 1e6, 1),
    )


if __name__ == "__main__":
    main()
