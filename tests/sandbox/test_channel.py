"""The worker's end of the wire: frames however they come."""

from __future__ import annotations

import gc
import socket
import tracemalloc

import pytest

from sandbox import packed
from sandbox.frozen import FrozenList
from sandbox.values import encode, freeze
from sandbox.wire import pack
from sandbox.worker import channel as channel_module
from sandbox.worker.channel import Channel, SupervisorGoneError

SPACE = channel_module._SPACE_BYTES


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), theirs


def framed(*messages):
    return pack([encode(message) for message in messages])


def packed_frames(number, value):
    return [part.frame for part in packed.pack("result", number, freeze(value))]


def received(channel, count):
    """Receive until there are so many messages."""
    messages = []
    while len(messages) < count:
        messages += channel.receive(None)
    return messages


LONG = ["result", 2, "y" * 3 * SPACE]
EXACT = ["result", 3, "z" * (SPACE - len(framed(["result", 3, ""])))]
ROWS = [{"id": number, "name": f"row {number}"} for number in range(2_500)]
MESSAGES = [["result", 1, [1]], LONG, EXACT, ["error", 4, "no"], ["result", 5, ROWS], ["result", 6, 0]]
STREAM = b"".join(
    [*map(framed, MESSAGES[:4]), *packed_frames(5, ROWS), framed(MESSAGES[5])],
)


@pytest.mark.parametrize("piece", [1_000_000, SPACE, SPACE - 1, 4097, 997, 100])
def test_messages_are_the_same_however_their_bytes_come(ends, piece):
    channel, theirs = ends
    messages = []
    for start in range(0, len(STREAM), piece):
        theirs.sendall(STREAM[start : start + piece][:50_000])
        for rest in range(start + 50_000, min(start + piece, len(STREAM)), 50_000):
            messages += channel.receive(0)
            theirs.sendall(STREAM[rest : min(rest + 50_000, start + piece)])
        messages += channel.receive(0)
    while len(messages) < len(MESSAGES):
        messages += channel.receive(None)
    assert MESSAGES == messages


def test_a_frame_of_any_length_around_that_of_the_space_is_whole(ends):
    channel, theirs = ends
    around = len(framed(["result", 1, ""]))
    for length in range(SPACE - around - 6, SPACE - around + 6):
        value = "x" * length
        theirs.sendall(framed(["result", 1, value]) + framed(["result", 2, length]))
        assert [["result", 1, value], ["result", 2, length]] == received(channel, 2)


def test_several_frames_that_come_together_are_heard_together(ends):
    channel, theirs = ends
    theirs.sendall(framed(["result", 1, 1], ["result", 2, 2]) + framed(["result", 3, 3]))
    assert [1, 2, 3] == [message[2] for message in channel.receive(None)]


def test_with_a_timeout_a_part_of_a_frame_is_not_waited_for(ends):
    channel, theirs = ends
    frame = framed(["result", 1, 1])
    assert [] == channel.receive(0)
    theirs.sendall(frame[:3])
    assert [] == channel.receive(0)
    theirs.sendall(frame[3:9])
    assert [] == channel.receive(1000)
    theirs.sendall(frame[9:])
    assert [["result", 1, 1]] == channel.receive(1000)


def test_with_a_timeout_the_rest_of_a_large_result_is_not_waited_for(ends):
    channel, theirs = ends
    first, *others = packed_frames(1, ROWS)
    theirs.sendall(first)
    assert [] == channel.receive(1000)
    for frame in others:
        theirs.sendall(frame)
    assert [["result", 1, ROWS]] == channel.receive(None)


@pytest.mark.parametrize("sent", [b"", framed(["result", 1, 1])[:6], framed(LONG)[: SPACE + 5]])
def test_a_closed_wire_is_an_error_whatever_came_before(ends, sent):
    channel, theirs = ends
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(SupervisorGoneError):
        channel.receive(None)


def test_values_are_frozen(ends):
    channel, theirs = ends
    theirs.sendall(framed(["result", 1, [[1]]]) + b"".join(packed_frames(2, ROWS)))
    first, second = received(channel, 2)
    assert [FrozenList, FrozenList, FrozenList] == [type(first[2]), type(first[2][0]), type(second[2])]


@pytest.mark.parametrize("frames", [[framed(LONG)], packed_frames(1, ROWS)])
def test_the_collector_goes_on_when_there_is_no_memory_for_a_large_frame(ends, monkeypatch, frames):
    def fail(*_args, **_kwargs):
        assert not gc.isenabled()
        raise MemoryError

    monkeypatch.setattr(channel_module, "_LARGE_BYTES", 100)
    monkeypatch.setattr(channel_module.values, "decode", fail)
    monkeypatch.setattr(packed, "decode", fail)
    channel, theirs = ends
    theirs.sendall(frames[0])
    assert gc.isenabled()
    with pytest.raises(MemoryError):
        received(channel, 1)
    assert gc.isenabled()


def test_short_frames_are_received_into_the_same_memory(ends):
    channel, theirs = ends
    frame = framed(["result", 1, 1])
    theirs.sendall(frame * 2)
    received(channel, 2)
    tracemalloc.start()
    try:
        for _ in range(50):
            theirs.sendall(frame)
            channel.receive(None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < SPACE


# ---- looking for a message before sleeping


class Poll:
    """A poll object that remembers how it was asked, and finds what comes at the given question."""

    def __init__(self, found_at):
        self.found_at = found_at
        self.asked = []

    def poll(self, timeout=None):
        self.asked.append(timeout)
        return [(0, 1)] if len(self.asked) == self.found_at or timeout is None else []


def test_a_worker_sleeps_at_once_until_it_is_told_to_look(ends):
    channel, theirs = ends
    channel._poll = Poll(found_at=0)
    theirs.sendall(framed(["result", 1, "a"]))
    assert [["result", 1, "a"]] == channel.receive(None)
    assert [None] == channel._poll.asked


def test_how_long_to_look_leads_a_frame_and_is_no_message_of_the_programs(ends):
    channel, theirs = ends
    theirs.sendall(framed(["pace", 10_000_000], ["result", 1, "a"]))
    assert [["result", 1, "a"]] == channel.receive(None)
    channel._poll = Poll(found_at=3)
    theirs.sendall(framed(["result", 2, "b"]))
    assert [["result", 2, "b"]] == channel.receive(None)
    assert [0, 0, 0] == channel._poll.asked


def test_a_channel_looks_once_without_taking_anything(ends):
    channel, theirs = ends
    assert (False, False) == (channel.has_heard(), channel.look(0.001))
    theirs.sendall(framed(["result", 1, "a"]))
    assert (True, True) == (channel.has_heard(), channel.look(60))
    assert [["result", 1, "a"]] == channel.receive(None)
    assert not channel.has_heard()


@pytest.mark.parametrize("received", [7, 40])
def test_what_was_received_with_something_else_has_been_heard(ends, received):
    channel, theirs = ends
    two = framed(["result", 1, "a"]) + framed(["result", 2, "b"])
    theirs.sendall(two[: len(two) - received])
    channel._start, channel._end = 0, channel._receive_into(channel._space)
    assert channel.has_heard()


def test_a_worker_sleeps_when_it_has_looked_long_enough(ends, monkeypatch):
    channel, theirs = ends
    theirs.sendall(framed(["pace", 200], ["result", 1, "a"]))
    channel.receive(None)
    clock = iter([10.0, 10.0, 10.0001, 10.0003])
    monkeypatch.setattr(channel_module, "perf_counter", lambda: next(clock))
    channel._poll = Poll(found_at=0)
    theirs.sendall(framed(["result", 2, "b"]))
    assert [["result", 2, "b"]] == channel.receive(None)
    assert [0, 0, None] == channel._poll.asked


def test_a_frame_that_says_only_how_long_to_look_is_waited_beyond(ends):
    channel, theirs = ends
    theirs.sendall(framed(["pace", 0]) + framed(["result", 1, "a"]))
    assert [["result", 1, "a"]] == received(channel, 1)
