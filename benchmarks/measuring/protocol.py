"""How a driver, a process that measures one thing, talks to the coordinator that interleaves them all.

Every system under test runs in a process of its own, by its own interpreter, so nobody pays for what another
has imported or allocated. The coordinator asks for one sample at a time and is blocked meanwhile.

    driver  -> {"cases": {name: {"unit": "s", "every": 1}}, "facts": {...}}
    coord.  -> {"case": name}
    driver  -> {"values": [...]} or {"error": "..."}

One JSON text per packet of a SOCK_SEQPACKET socket, whose descriptor is the last argument of the driver.
Standard library only: the interpreters of peers have nothing of ours.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import platform
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    Sample = float | list[float]
    Measure = Callable[[], Sample | Awaitable[Sample]]

PACKET_BYTES = 1 << 20


class Case:
    """One thing to measure.

    Attributes:
        measure: Takes one sample, or several; may be asynchronous where the driver is.
        unit: "s", "B", "1/s" or "count".
        every: 1, or 5 for what takes long and is measured in every fifth round only.
    """

    def __init__(self, measure: Measure, unit: str = "s", every: int = 1) -> None:
        self.measure = measure
        self.unit = unit
        self.every = every


def open_channel(arguments: list[str]) -> socket.socket:
    """Return the socket the coordinator passed, with what is printed out of the table's way."""
    os.dup2(2, 1)
    return socket.socket(fileno=int(arguments[-1]))


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send one packet."""
    channel.send(json.dumps(message).encode())


def greet(channel: socket.socket, cases: Mapping[str, Case], facts: Mapping[str, Any]) -> None:
    """Say what can be measured."""
    listed = {name: {"unit": case.unit, "every": case.every} for name, case in cases.items()}
    send(channel, {"cases": listed, "facts": {"python": platform.python_version(), **facts}})


def asked(packet: bytes, cases: Mapping[str, Case]) -> Case:
    """Return the case a packet asks for."""
    return cases[json.loads(packet)["case"]]


def answer(sample: Sample) -> dict[str, Any]:
    """Return the packet for one sample or several."""
    return {"values": sample if isinstance(sample, list) else [sample]}


def failed(error: BaseException) -> dict[str, Any]:
    """Return the packet for a measurement that raised."""
    traceback.print_exception(error, file=sys.stderr)
    return {"error": "".join(traceback.format_exception_only(error)).strip()}


def serve_plain(cases: Mapping[str, Case], **facts: Any) -> None:
    """Measure what is asked for, in a driver without an event loop."""
    channel = open_channel(sys.argv)
    greet(channel, cases, facts)
    while packet := channel.recv(PACKET_BYTES):
        try:
            reply = answer(asked(packet, cases).measure())  # type: ignore[arg-type]  # nothing async here
        except Exception as error:  # noqa: BLE001  # whatever a peer raises is its result
            reply = failed(error)
        send(channel, reply)


def serve_asyncio(cases: AbstractAsyncContextManager[Mapping[str, Case]], **facts: Any) -> None:
    """Measure what is asked for, inside asyncio; the loop stays free between samples."""
    asyncio.run(_serve_asyncio(cases, facts))


async def _serve_asyncio(
    opening: AbstractAsyncContextManager[Mapping[str, Case]], facts: dict[str, Any]
) -> None:
    channel = open_channel(sys.argv)
    channel.setblocking(False)
    loop = asyncio.get_running_loop()
    async with opening as cases:
        greet(channel, cases, facts)
        while packet := await loop.sock_recv(channel, PACKET_BYTES):
            try:
                sample = asked(packet, cases).measure()
                reply = answer(await sample if inspect.isawaitable(sample) else sample)
            except Exception as error:  # noqa: BLE001  # whatever a peer raises is its result
                reply = failed(error)
            send(channel, reply)
