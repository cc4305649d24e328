"""Serving one client over standard input and output.

Nothing but messages reaches the client: while serving, descriptor 1 is standard error and descriptor 0
is at its end, for Python code, C libraries and child processes alike.

Knows: descriptors, lines, how much may be unanswered. Does not know: what requests do. Loading it loads
the MCP SDK.
"""

from __future__ import annotations

import contextlib
import os
import select
from typing import TYPE_CHECKING, Final

import anyio
import trio
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from tool_bindings.mcp.framing import LineSplitter, MalformedLineError, message_from_line, message_line

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    from codemode.server.descriptors import Descriptors
    from codemode.server.handlers import CodeServer

__all__ = ["serve_stdio"]

MAX_UNANSWERED: Final = 1024
"""Requests read and not yet answered; at that many no more is read until some are."""
MAX_LINE_BYTES: Final = 4_194_304
"""Bytes of one message of a client: four times the largest program."""
_READ_BYTES: Final = 65_536


async def serve_stdio(server: CodeServer, descriptors: Descriptors) -> None:
    """Serve until the client closes its end; its runs are stopped then."""
    inward, reads = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    writes, outward = anyio.create_memory_object_stream["SessionMessage"](16)
    open_requests = _OpenRequests()
    with inward, reads, writes, outward:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, descriptors.wire_in, inward, writes.clone(), open_requests)
            nursery.start_soon(_write, descriptors.wire_out, outward, open_requests, nursery.cancel_scope)
            nursery.start_soon(server.announce_changes)
            await server.mcp.run(reads, writes, server.initialization())
            nursery.cancel_scope.cancel()


class _OpenRequests:
    """The requests that wait for an answer."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._fewer = trio.Event()

    async def wait_for_room(self) -> None:
        while len(self._ids) >= MAX_UNANSWERED:
            self._fewer = trio.Event()
            await self._fewer.wait()

    def seen(self, message: SessionMessage) -> None:
        body = message.message
        if isinstance(body, JSONRPCRequest):
            self._ids.add(body.id)
        elif isinstance(body, JSONRPCNotification) and body.method == "notifications/cancelled":
            # It will not be answered.
            cancelled = (body.params or {}).get("requestId")
            if isinstance(cancelled, (str, int)):
                self._drop(cancelled)

    def answered(self, message: SessionMessage) -> None:
        body = message.message
        if isinstance(body, (JSONRPCResponse, JSONRPCError)) and body.id is not None:
            self._drop(body.id)

    def _drop(self, request_id: str | int) -> None:
        self._ids.discard(request_id)
        self._fewer.set()


async def _read(
    descriptor: int,
    inward: MemoryObjectSendStream[SessionMessage | Exception],
    writes: MemoryObjectSendStream[SessionMessage],
    open_requests: _OpenRequests,
) -> None:
    splitter = LineSplitter(MAX_LINE_BYTES)
    with inward, writes, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while data := await _receive(descriptor):
            for line in splitter.feed(data):
                try:
                    if isinstance(line, MalformedLineError):
                        raise line
                    message = message_from_line(line)
                except MalformedLineError as error:
                    if not error.answers:
                        await writes.send(error.as_error())
                    continue
                await open_requests.wait_for_room()
                open_requests.seen(message)
                await inward.send(message)


async def _write(
    descriptor: int,
    outward: MemoryObjectReceiveStream[SessionMessage],
    open_requests: _OpenRequests,
    serving: trio.CancelScope,
) -> None:
    try:
        async with outward:
            async for message in outward:
                await _send(descriptor, message_line(message))
                open_requests.answered(message)
    except OSError:
        serving.cancel()  # Nobody reads any more, which is how some clients leave.


def _is_always_ready(descriptor: int) -> bool:
    """Return whether epoll knows nothing of it: files and `/dev/null` never keep anybody waiting."""
    with select.epoll() as probe:
        try:
            probe.register(descriptor)
        except PermissionError:
            return True
    return False


async def _receive(descriptor: int) -> bytes:
    # The descriptor stays in blocking mode, which it shares with whoever gave it to us.
    if _is_always_ready(descriptor):
        await trio.lowlevel.checkpoint()
    else:
        await trio.lowlevel.wait_readable(descriptor)
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:
        return b""  # A terminal that was closed, a peer that reset: the end either way.


async def _send(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    always_ready = _is_always_ready(descriptor)
    while view:
        if always_ready:
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.wait_writable(descriptor)
        # At most this much fits into a pipe that is writable, so a blocking descriptor does not block.
        view = view[os.write(descriptor, view[: select.PIPE_BUF]) :]
