"""The worker's event loop and its end of the wire, with a host that is scripted byte by byte."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from asyncio import events

import pytest

from sandbox.worker import batches, namespaces
from sandbox.worker.channel import Channel, SupervisorGoneError
from sandbox.worker.loop import DeadlockError, WireLoop
from sandbox.worker.namespaces import (
    HostFunction,
    HostNamespace,
    complete,
    make_error_class,
    never_awaited,
)


class HostError(Exception):
    pass


class Host:
    """The other end of the wire. What it says is there before the loop runs."""

    def __init__(self):
        self.socket, self.end = socket.socketpair()
        self.loop = WireLoop(Channel(self.socket))

    def say(self, *messages):
        payload = json.dumps(messages).encode()
        self.end.sendall(struct.pack("<I", len(payload)) + payload)

    def heard(self):
        """Return the frames sent so far."""
        self.end.setblocking(False)
        try:
            data = self.end.recv(1 << 20)
        except BlockingIOError:
            return []
        frames = []
        while data:
            (length,) = struct.unpack("<I", data[:4])
            frames.append(json.loads(data[4 : 4 + length]))
            data = data[4 + length :]
        return frames

    def call(self, n=0, line=None):
        return self.loop.start_call(b'"tools","add"', b'{"n":%d}' % n, line, HostError)

    def run(self, coroutine):
        return self.loop.run(coroutine)


@pytest.fixture
def host():
    made = Host()
    yield made
    events._set_running_loop(None)
    made.socket.close()
    made.end.close()


def call_message(number, n=0, line=None):
    return ["call", number, "tools", "add", {"n": n}, line]


def test_a_coroutine_without_calls_runs_without_a_word_to_the_host(host):
    async def program():
        await asyncio.sleep(0)
        return 5

    assert 5 == host.run(program())
    assert [] == host.heard()


def test_an_exception_of_the_program_comes_out_of_run(host):
    async def program():
        raise KeyError("x")

    with pytest.raises(KeyError):
        host.run(program())


def test_a_call_is_sent_when_nothing_else_can_run_and_its_answer_is_the_value(host):
    async def program():
        return await host.call(3, line=7)

    host.say(["result", 1, {"sum": 4}])
    assert {"sum": 4} == host.run(program())
    assert [[call_message(1, 3, 7)]] == host.heard()


def test_answers_are_read_only(host):
    async def program():
        (await host.call())["x"] = 1

    host.say(["result", 1, {}])
    with pytest.raises(TypeError, match="read-only"):
        host.run(program())


def test_an_error_answer_raises_what_the_caller_chose(host):
    async def program():
        await host.call()

    host.say(["error", 1, "no such file"])
    with pytest.raises(HostError, match="no such file"):
        host.run(program())


def test_calls_made_together_leave_in_one_frame_and_may_be_answered_in_any_order(host):
    async def program():
        return await asyncio.gather(*[host.call(n) for n in range(4)])

    host.say(["result", 3, "c"], ["result", 1, "a"])
    host.say(["result", 4, "d"], ["result", 2, "b"])
    assert ["a", "b", "c", "d"] == host.run(program())
    assert [[call_message(n + 1, n) for n in range(4)]] == host.heard()


def test_giving_a_call_up_tells_the_host_and_its_late_answer_is_dropped(host):
    async def program():
        future = host.call()
        future.cancel()
        await asyncio.sleep(0)
        return await host.call(1)

    host.say(["result", 1, "late"], ["result", 2, "second"])
    assert "second" == host.run(program())
    messages = [message for frame in host.heard() for message in frame]
    assert [call_message(1), ["cancel", 1], call_message(2, 1)] == messages


class Together:
    """Takes the answers of calls that were sent together."""

    def __init__(self, loop):
        self.done = loop.create_future()
        self.taken = []

    def take_result(self, call_id, value):
        self.taken.append((call_id, value))
        if len(self.taken) == 3:
            self.done.set_result(self.taken)

    def take_error(self, call_id, message):
        self.take_result(call_id, message)


def test_calls_of_a_batch_leave_in_one_message_and_are_answered_in_a_row_or_each_by_itself(host):
    async def program():
        together = Together(host.loop)
        assert [1, 2, 3] == host.loop.send_together([together] * 3, b"[1,2,3]")
        return await together.done

    host.say(["error", 3, "no"], ["results", 1, ["a", "b"]])
    assert [(3, "no"), (1, "a"), (2, "b")] == host.run(program())
    assert [[["batch", 1, [1, 2, 3]]]] == host.heard()


def test_late_results_of_calls_that_were_given_up_are_dropped(host):
    async def program():
        together = Together(host.loop)
        first, second = host.loop.send_together([together] * 2, b"[1,2]")
        assert [True, True] == [host.loop.give_up(first), host.loop.give_up(second)]
        assert not host.loop.give_up(first)
        return await host.call(), together.taken

    host.say(["results", 1, ["late", "later"]], ["result", 3, "mine"])
    assert ("mine", []) == host.run(program())


def test_a_batch_that_cannot_be_sent_whole_gives_up_what_has_left_and_leaves_the_rest_new(host, monkeypatch):
    space = HostNamespace(
        "tools",
        {"t": "t(...)"},
        noun="tool",
        error_class=make_error_class("ToolError", ()),
        loop=host.loop,
        program_file=__file__,
        positional={},
        eager=frozenset(),
        aliases={},
    )
    complete(space, {}, 1000)
    batch = batches.Batch("codemode.batch", space)
    encode = HostFunction._encoded
    monkeypatch.setattr(namespaces, "_FIRST_CALLS", 2)

    def without_memory(function, arguments):
        if arguments["n"] == 3:
            raise MemoryError
        return encode(function, arguments)

    async def program():
        calls = [space.t(n=n) for n in range(5)]
        monkeypatch.setattr(HostFunction, "_encoded", without_memory)
        with pytest.raises(MemoryError):
            await batch(calls)
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        assert "never awaited" in never_awaited([space])
        return await calls[4]

    host.say(["result", 3, "late but whole"])
    assert "late but whole" == host.run(program())
    heard = [message[:2] for frame in host.heard() for message in frame]
    assert [["batch", 1], ["cancel", 1], ["cancel", 2], ["call", 3]] == heard


def test_an_answered_call_cannot_be_given_up_any_more(host):
    async def program():
        future = host.call()
        await future
        assert not future.cancel()

    host.say(["result", 1, None])
    host.run(program())
    assert [[call_message(1)]] == host.heard()


def test_a_timeout_around_a_call_gives_it_up(host):
    async def program():
        try:
            async with asyncio.timeout(0.01):
                await host.call()
        except TimeoutError:
            return "timed out"

    assert "timed out" == host.run(program())
    # The program ended before the loop had to wait; what is left goes with the message of its end.
    host.loop._channel.flush()
    assert [call_message(1), ["cancel", 1]] == [message for frame in host.heard() for message in frame]


def test_timers_fire_in_the_order_of_their_time(host):
    fired = []

    async def program():
        loop = asyncio.get_running_loop()
        # From one moment, or a pause between two of these lines would change the order.
        now = loop.time()
        for delay in (0.03, 0.01, 0.02):
            loop.call_at(now + delay, fired.append, delay)
        cancelled = loop.call_later(0.015, fired.append, "never")
        cancelled.cancel()
        assert cancelled.cancelled()
        await asyncio.sleep(0.05)

    host.run(program())
    assert [0.01, 0.02, 0.03] == fired


def test_sleeping_takes_its_time_without_using_the_processor(host):
    async def program():
        await asyncio.sleep(0.2)

    began, used = time.monotonic(), time.thread_time()
    host.run(program())
    assert time.monotonic() - began >= 0.2
    assert time.thread_time() - used < 0.1


def test_callbacks_run_in_the_order_they_were_asked_for(host):
    order = []

    async def program():
        loop = asyncio.get_running_loop()
        for number in range(5):
            loop.call_soon(order.append, number)
        await asyncio.sleep(0)

    host.run(program())
    assert list(range(5)) == order


def test_a_task_that_is_always_ready_does_not_keep_answers_out(host):
    async def spin(stop):
        while not stop.is_set():  # noqa: ASYNC110  # being ready all the time is the point
            await asyncio.sleep(0)

    async def program():
        stop = asyncio.Event()
        spinning = asyncio.ensure_future(spin(stop))
        value = await host.call()
        stop.set()
        await spinning
        return value

    host.say(["result", 1, "came through"])
    assert "came through" == host.run(program())


def test_a_wait_that_nothing_can_end_is_an_error_and_not_a_hang(host):
    async def program():
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="nothing left to wait for"):
        host.run(program())


def test_asyncio_run_inside_a_program_runs_to_its_end_and_the_outer_task_goes_on(host):
    async def inner():
        await asyncio.sleep(0)
        return await host.call()

    async def program():
        outer = asyncio.current_task()
        value = host.loop.run_nested(inner())
        assert asyncio.current_task() is outer
        return value

    host.say(["result", 1, "nested"])
    assert "nested" == host.run(program())


@pytest.mark.parametrize("last_words", [b"", b"\x05\x00"], ids=["nothing", "half a header"])
def test_a_host_that_is_gone_ends_the_wait(host, last_words):
    async def program():
        await host.call()

    host.end.sendall(last_words)
    host.end.shutdown(socket.SHUT_WR)
    with pytest.raises(SupervisorGoneError):
        host.run(program())


def test_a_frame_that_comes_in_pieces_is_put_together(host):
    channel = host.loop._channel
    payload = b'[["result",1,"' + b"x" * 1000 + b'"]]'
    data = struct.pack("<I", len(payload)) + payload
    host.end.sendall(data[:3])
    assert [] == channel.receive(0)
    host.end.sendall(data[3:500])
    assert [] == channel.receive(0)
    host.end.sendall(data[500:])
    assert [["result", 1, "x" * 1000]] == channel.receive(0)


def test_nothing_is_sent_for_an_empty_flush(host):
    host.loop._channel.flush()
    assert [] == host.heard()


def test_structured_concurrency_of_the_standard_library_works(host):
    async def worker(results, n):
        results.append(await host.call(n))

    async def program():
        results = []
        async with asyncio.TaskGroup() as group:
            for n in range(3):
                group.create_task(worker(results, n))
        queue = asyncio.Queue()
        await queue.put(sorted(results))
        async with asyncio.Lock(), asyncio.Semaphore(1):
            return await asyncio.wait_for(queue.get(), 1)

    host.say(["result", 1, 1], ["result", 2, 2], ["result", 3, 3])
    assert [1, 2, 3] == host.run(program())


@pytest.mark.parametrize("raised", [MemoryError, RecursionError])
def test_after_an_error_in_the_middle_of_receiving_no_call_is_made_any_more(host, monkeypatch, raised):
    """What was received is lost, and with it where the next frame begins."""

    def receive(self, timeout):
        raise raised("no room")

    async def program():
        caught = []
        for _ in range(2):
            try:
                host.loop.call_and_wait(b'"tools","add"', b"{}", None, HostError)
            except raised as error:
                caught.append(str(error))
        return caught

    monkeypatch.setattr(Channel, "receive", receive)
    assert ["no room", "no room"] == host.run(program())
    assert 1 == len(host.heard())
