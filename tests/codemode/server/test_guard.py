"""The checks in front of the HTTP server, without a server."""

from __future__ import annotations

import pytest
import trio

from codemode.server.guard import (
    BODY_SECONDS,
    CLIENT_KEY,
    DISCONNECTED_KEY,
    MAX_REQUESTS,
    Guard,
    allowed_hosts,
    token_name,
)

TOKEN = "correct-horse-battery"
GOOD = [(b"host", b"127.0.0.1:80"), (b"authorization", f"Bearer {TOKEN}".encode())]


class Request:
    """One request through a guard, and what came back."""

    def __init__(self, guard, headers, kind="http"):
        self.scope = {"type": kind, "headers": headers, "path": "/mcp"}
        self.sent = []
        self._guard = guard

    async def send(self, message):
        self.sent.append(message)

    async def receive(self):
        return {"type": "http.disconnect"}

    async def run(self):
        await self._guard(self.scope, self.receive, self.send)
        return self.sent[0].get("status") if self.sent else None


def guarded(application=None, tokens=(TOKEN,)):
    seen = []

    async def remember(scope, receive, send):
        seen.append(scope)

    return Guard(application or remember, tokens, allowed_hosts("127.0.0.1", 80)), seen


async def test_a_good_request_passes_with_the_name_of_its_token_and_not_the_token():
    guard, seen = guarded()
    assert await Request(guard, GOOD).run() is None
    assert token_name(TOKEN) == seen[0][CLIENT_KEY]
    assert TOKEN not in seen[0][CLIENT_KEY]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (GOOD[1:], 421),
        ([*GOOD, (b"host", b"evil")], 421),
        ([(b"host", b"127.0.0.1:8080"), GOOD[1]], 421),
        (GOOD[:1], 401),
        ([*GOOD, GOOD[1]], 401),
        ([GOOD[0], (b"authorization", b"Bearer " + b"x" * 10_000)], 401),
        ([GOOD[0], (b"authorization", b"Bearer ")], 401),
        ([GOOD[0], (b"authorization", b"\xff\xfe")], 401),
        ([*GOOD, (b"origin", b"http://127.0.0.1.evil.example")], 403),
        ([*GOOD, (b"origin", b"http://127.0.0.1:8080")], 403),
        ([*GOOD, (b"origin", b"file://127.0.0.1")], 403),
    ],
)
async def test_every_other_request_is_turned_away_before_it_is_read(headers, status):
    guard, seen = guarded()
    request = Request(guard, headers)
    assert status == await request.run()
    assert [] == seen
    assert TOKEN.encode() not in repr(request.sent).encode()


async def test_a_page_of_this_very_server_may_ask():
    guard, seen = guarded()
    await Request(guard, [*GOOD, (b"origin", b"http://localhost")]).run()
    assert 1 == len(seen)


async def test_each_token_is_a_client_of_its_own():
    guard, seen = guarded(tokens=(TOKEN, "another-token-entirely"))
    await Request(guard, GOOD).run()
    await Request(guard, [GOOD[0], (b"authorization", b"bearer another-token-entirely")]).run()
    assert 2 == len({scope[CLIENT_KEY] for scope in seen})


async def test_requests_of_one_token_at_a_time_are_bounded_and_counted_down(autojump_clock):
    gate = trio.Event()

    async def wait(scope, receive, send):
        await gate.wait()

    guard, _ = guarded(wait)
    async with trio.open_nursery() as nursery:
        for _ in range(MAX_REQUESTS):
            nursery.start_soon(Request(guard, GOOD).run)
        await trio.testing.wait_all_tasks_blocked()
        assert 429 == await Request(guard, GOOD).run()
        gate.set()
    assert await Request(guard, GOOD).run() is None


async def test_the_application_can_tell_that_the_client_has_gone():
    gone = []

    async def application(scope, receive, send):
        gone.append(scope[DISCONNECTED_KEY].is_set())
        await receive()
        gone.append(scope[DISCONNECTED_KEY].is_set())

    guard, _ = guarded(application)
    await Request(guard, GOOD).run()
    assert [False, True] == gone


async def test_a_body_that_trickles_in_for_ever_is_given_up_and_a_stream_is_not(autojump_clock):
    received = []

    async def application(scope, receive, send):
        while not received or received[-1]["type"] != "http.disconnect":
            received.append(await receive())

    guard, _ = guarded(application)
    request = Request(guard, GOOD)

    async def trickle():
        await trio.sleep(BODY_SECONDS / 4)
        return {"type": "http.request", "body": b"x", "more_body": True}

    request.receive = trickle
    began = trio.current_time()
    await request.run()
    assert ["http.request"] * 3 == [message["type"] for message in received[:3]]
    assert BODY_SECONDS == trio.current_time() - began

    received.clear()
    messages = [{"type": "http.request", "body": b"x"}, {"type": "http.disconnect"}]

    async def late():
        await trio.sleep(BODY_SECONDS * 0.9)
        return messages.pop(0)

    request.receive = late
    await request.run()
    assert ["http.request", "http.disconnect"] == [message["type"] for message in received]


async def test_a_websocket_is_closed():
    guard, seen = guarded()
    request = Request(guard, GOOD, "websocket")
    await request.run()
    assert ["websocket.close"] == [message["type"] for message in request.sent]
    assert [] == seen


@pytest.mark.parametrize(
    ("host", "port", "inside", "outside"),
    [
        ("127.0.0.1", 8000, "localhost:8000", "localhost"),
        ("::1", 8000, "[::1]:8000", "::1:8000"),
        ("0.0.0.0", 8000, "127.0.0.1:8000", "0.0.0.0:8000"),
        ("box.local", 443, "box.local", "box.local:80"),
    ],
)
def test_hosts_are_those_the_server_was_bound_under(host, port, inside, outside):
    hosts = allowed_hosts(host, port)
    assert inside in hosts
    assert outside not in hosts
