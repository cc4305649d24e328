"""A driver inside trio: the same protocol for our own service."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

import trio

from measuring import protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager


def serve_trio(opening: AbstractAsyncContextManager[Mapping[str, protocol.Case]]) -> None:
    """Measure what is asked for; the loop stays free between samples."""
    trio.run(_serve, opening)


async def _serve(opening: AbstractAsyncContextManager[Mapping[str, protocol.Case]]) -> None:
    channel = protocol.open_channel(sys.argv)
    async with opening as cases:
        protocol.greet(channel, cases, {})
        while True:
            await trio.lowlevel.wait_readable(channel)
            packet = channel.recv(protocol.PACKET_BYTES)
            if not packet:
                return
            try:
                sample = protocol.asked(packet, cases).measure()
                reply = protocol.answer(await sample if inspect.isawaitable(sample) else sample)
            except Exception as error:  # noqa: BLE001  # one failed measurement is not the end of the others
                reply = protocol.failed(error)
            protocol.send(channel, reply)
