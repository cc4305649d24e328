"""Connections of the HTTP server: what ends a write, and who makes room for whom."""

from __future__ import annotations

import pytest
import trio
from hypercorn.config import Config

from codemode.server.connections import (
    MAX_CONNECTIONS,
    STALLED_SECONDS,
    Connections,
    _Connection,
)

TIMEOUT_SECONDS = 20
"""For a test that hangs."""


class Socket:
    """What is used of a socket: that it is closed."""

    closed = False

    def close(self):
        self.closed = True


class Stream:
    """One end of a pair in memory, whose writes wait for the other end to read."""

    def __init__(self, end):
        self.socket = Socket()
        self._end = end

    async def send_all(self, data):
        await self._end.send_all(data)


def pair():
    ours, theirs = trio.testing.lockstep_stream_pair()
    return _Connection(Stream(ours)), theirs


async def test_a_write_that_makes_no_progress_ends_its_connection(autojump_clock):
    connection, _ = pair()
    with pytest.raises(trio.BrokenResourceError):
        await connection.send_all(b"x")
    assert STALLED_SECONDS == trio.current_time()
    assert connection.socket.closed


async def test_a_write_that_nobody_may_cancel_ends_as_well(autojump_clock):
    # As hypercorn writes.
    connection, _ = pair()
    with trio.move_on_after(1), trio.CancelScope(shield=True), pytest.raises(trio.BrokenResourceError):
        await connection.send_all(b"x")


async def test_a_client_that_reads_slowly_gets_all_of_a_long_answer(autojump_clock):
    connection, theirs = pair()
    answer = bytes(range(256)) * 4096
    received = bytearray()

    async def read():
        while len(received) < len(answer):
            await trio.sleep(STALLED_SECONDS * 0.9)
            received.extend(await theirs.receive_some(65_536))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await connection.send_all(answer)
    assert answer == received
    assert trio.current_time() > 10 * STALLED_SECONDS
    assert not connection.socket.closed


async def test_the_oldest_without_a_good_request_makes_room():
    connections = Connections(Config())
    opened = [pair()[0] for _ in range(MAX_CONNECTIONS)]
    connections._open = {("host", number): each for number, each in enumerate(opened)}
    with connections.answering({"client": ("host", 0)}):
        assert connections._has_room()
        assert (False, True, False) == tuple(each.socket.closed for each in opened[:3])
        # Now one more fits.
        assert connections._has_room()
        assert not opened[2].socket.closed


async def test_where_all_answer_good_requests_nobody_is_let_in():
    connections = Connections(Config())
    opened = [pair()[0] for _ in range(MAX_CONNECTIONS)]
    connections._open = {("host", number): each for number, each in enumerate(opened)}
    for each in opened:
        each.requests = 1
    assert not connections._has_room()
    assert not any(each.socket.closed for each in opened)


async def test_serving_ends_though_a_request_never_does():
    began, stop = trio.Event(), trio.Event()

    async def application(scope, receive, send):
        began.set()
        await trio.sleep_forever()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = listener.socket.getsockname()
    with trio.fail_after(TIMEOUT_SECONDS):
        async with listener, trio.open_nursery() as nursery:
            nursery.start_soon(Connections(Config()).serve, application, listener, stop.wait)
            async with await trio.open_tcp_stream(*address) as client:
                await client.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await began.wait()
                stop.set()
                # The client is still there, and waits.
                assert b"" == await client.receive_some()
