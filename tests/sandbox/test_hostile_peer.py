"""A worker that has fallen, scripted at the byte level: the host must bound it, end it, and go on."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time

import psutil
import pytest
import trio
import trio.testing
from scripted_peer import (
    BROKEN,
    LIMITS,
    SPACE,
    Peer,
    end_of,
    frame,
    outcome_of,
    run_with,
    says,
    sends,
    settled,
)

from sandbox import wire
from sandbox.limits import Limits
from sandbox.vocabulary import ABSENT, Namespace

CALL = ["call", 1, "host", "echo", {}, None]


async def test_a_peer_that_behaves_is_served():
    async def script(peer):
        await peer.say(["log", "hello\n"], ["call", 1, "host", "echo", {"x": 1}, 3])
        assert [["result", 1, {"x": 1}]] == await peer.hear()
        await peer.say(["done", {"value": 5}])

    outcome = await outcome_of(script)
    assert (None, 5) == end_of(outcome)
    assert ("hello",) == outcome.logs


async def test_frames_are_understood_a_byte_at_a_time():
    async def script(peer):
        for byte in frame(b'[["log","a"]]') + frame(b'[["log","b"],["done",{"value":1}]]'):
            await peer.send(bytes([byte]))
            await trio.lowlevel.checkpoint()

    outcome = await outcome_of(script)
    assert (("ab",), 1) == (outcome.logs, outcome.value)


@pytest.mark.parametrize(
    "data",
    [
        frame(b"junk"),
        frame(b"{}"),
        frame(b"[NaN]"),
        frame(b"[[]]"),
        frame(b"[null]"),
        frame(b'[["result",1,2]]'),
        frame(b'[["run",{}]]'),
        frame(b'[["call",1,"host","echo"]]'),
        frame(b'[["call",0,"host","echo",{},null]]'),
        frame(b'[["results",1,[1]]]'),
        frame(b'[["done",{"failure":{"kind":"timeout","message":"forged"}}]]'),
        frame(b"[" * 5000),
        frame(b"\xff\xfe"),
        frame(b""),
        struct.pack("<I", 2**32 - 1),
        struct.pack("<I", 100_000_000) + b"x",
    ],
    ids=repr,
)
async def test_what_no_worker_of_ours_sends_ends_the_run(data):
    outcome = await outcome_of(sends(frame(b'[["log","kept"]]') + data))
    assert BROKEN == end_of(outcome)
    assert ("kept",) == outcome.logs


@pytest.mark.parametrize(
    "second",
    [["call", 1, "host", "echo", {}, None], ["call", 2, "host", "echo", {}, None]],
    ids=["the same number again", "a lower number"],
)
async def test_a_call_number_is_answered_at_most_once(second):
    asked = []

    async def note(call):
        asked.append(call.id)

    space = Namespace("host", {"echo": "echo()"}, note)
    first = ["call", 3 if second[1] == 2 else 1, "host", "echo", {}, None]
    outcome = await outcome_of(says(first, second), namespaces=(space,))
    assert BROKEN == end_of(outcome)
    assert [first[1]] == asked


async def test_a_number_is_not_free_again_after_its_answer():
    async def script(peer):
        await peer.say(CALL)
        await peer.hear()
        await peer.say(CALL)
        await trio.sleep_forever()

    assert BROKEN == end_of(await outcome_of(script))


@pytest.mark.parametrize(
    ("space", "member"), [("nobody", "echo"), ("host", "nothing"), ("host", "__class__")]
)
async def test_a_call_of_what_was_not_offered_fails_for_the_program_only(space, member):
    async def script(peer):
        await peer.say(["call", 1, space, member, {}, None])
        assert [["error", 1, f'unknown binding "{space}.{member}"']] == await peer.hear()
        await peer.say(["done", {}])

    assert (None, ABSENT) == end_of(await outcome_of(script))


async def test_a_cancel_of_an_unknown_call_is_harmless_and_a_flood_of_them_is_not():
    async def one(peer):
        await peer.say(CALL)
        await peer.hear()
        await peer.say(["cancel", 77])
        await peer.say(["done", {"value": 1}])

    assert (None, 1) == end_of(await outcome_of(one))
    assert BROKEN == end_of(await outcome_of(says(CALL, *[["cancel", 1]] * 50)))


async def test_a_forged_end_gives_up_the_calls_and_waits_for_them():
    ended = []

    async def slow(call):
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.05)
            ended.append(call.id)

    space = Namespace("host", {"echo": "echo()"}, slow)
    calls = [["call", number, "host", "echo", {}, None] for number in range(1, 4)]
    outcome = await outcome_of(says(*calls, ["done", {"value": "early"}]), namespaces=(space,))
    assert (None, "early") == end_of(outcome)
    assert [1, 2, 3] == sorted(ended)


async def test_what_comes_after_the_end_is_not_looked_at():
    asked = []

    async def note(call):
        asked.append(call.id)

    space = Namespace("host", {"echo": "echo()"}, note)
    outcome = await outcome_of(
        says(["done", {"value": 1}], ["log", "late"], CALL, ["done", {"value": 2}]), namespaces=(space,)
    )
    assert ((None, 1), (), []) == (end_of(outcome), outcome.logs, asked)


async def test_a_result_over_the_limit_is_refused_whatever_the_worker_says_it_counted():
    outcome = await outcome_of(says(["done", {"value": "x" * 20_000}]))
    assert "output-limit" == outcome.failure.kind
    assert ABSENT is outcome.value


async def test_an_error_text_over_the_limit_is_cut():
    failure = {"kind": "exception", "message": "m" * 20_000}
    outcome = await outcome_of(says(["done", {"failure": failure}]))
    assert "output-limit" == outcome.failure.kind
    assert len(outcome.failure.message) < 200


async def test_arguments_over_the_limit_are_refused_whatever_the_worker_says_it_counted():
    outcome = await outcome_of(says(["call", 1, "host", "echo", {"x": "y" * 20_000}, None]))
    assert "worker-exit" == outcome.failure.kind


async def test_a_worker_that_says_again_that_it_is_ready_is_ended():
    assert BROKEN == end_of(await outcome_of(says(["ready", []])))


async def test_a_worker_that_fails_outside_the_program_says_how():
    outcome = await outcome_of(says(["ready", [["set-up", False, "Traceback ...\nKeyError: 'x'"]]]))
    assert ("worker-exit", "the worker failed outside the program: KeyError: 'x'") == end_of(outcome)


@pytest.mark.parametrize("last", [b"", frame(b'[["log","x"]]')[:-3]], ids=["nothing", "half a frame"])
async def test_a_wire_that_closes_early_ends_the_run(last):
    async def script(peer):
        await peer.send(frame(b'[["log","kept"]]') + last)
        peer.end.close()

    outcome = await outcome_of(script)
    assert ("worker-exit", "worker exited with code 0 before completing") == end_of(outcome)
    assert ("kept",) == outcome.logs


async def test_a_worker_that_says_nothing_ends_at_the_wall(autojump_clock):
    async def silence(_):
        await trio.sleep_forever()

    outcome = await outcome_of(silence)
    assert "timeout" == outcome.failure.kind
    assert LIMITS.wall_seconds == pytest.approx(outcome.usage.wall_seconds)


@pytest.mark.parametrize(
    "message",
    [["log", ""], None],
    ids=["empty output", "empty frames"],
)
async def test_a_flood_of_nothing_ends_and_lets_other_tasks_run(message):
    data = frame(b"[]" if message is None else json.dumps([message]).encode()) * 1000
    # Small bounds, so that the flood comes to its end soon.
    limits = Limits(wall_seconds=200, max_output_bytes=1000, max_call_bytes=1000, max_run_bytes=2_000_000)

    async def script(peer):
        while True:
            await peer.send(data)

    lags = []

    async def beat():
        while True:
            # What this thread computes meanwhile, and not what else the machine is busy with.
            before = time.thread_time()
            await trio.lowlevel.checkpoint()
            lags.append(time.thread_time() - before)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        outcome = await outcome_of(script, limits=limits)
        nursery.cancel_scope.cancel()
    assert BROKEN == end_of(outcome)
    assert sorted(lags)[int(len(lags) * 0.99)] < 0.1


async def test_a_flood_of_output_ends_and_what_fits_is_kept():
    async def script(peer):
        while True:
            await peer.say(["log", "x" * 100 + "\n"])

    outcome = await outcome_of(script)
    assert "output-limit" == outcome.failure.kind
    assert 9_000 < outcome.usage.output_bytes <= 10_000


async def test_a_worker_that_never_reads_does_not_make_the_host_keep_results_without_end():
    async def large(call):
        return "x" * 9_000

    space = Namespace("host", {"echo": "echo()"}, large)
    limits = Limits(wall_seconds=200, max_call_bytes=10_000, max_run_bytes=5_000_000)

    async def script(peer):
        number = 0
        while True:
            number += 1
            await peer.say(["call", number, "host", "echo", {}, None])

    before = psutil.Process().memory_info().rss
    outcome = await outcome_of(script, namespaces=(space,), limits=limits)
    assert (
        "call-limit",
        "calls and results of this run passed 5000000 bytes; the limit is max_run_bytes",
    ) == end_of(outcome)
    assert psutil.Process().memory_info().rss - before < 50_000_000


async def test_a_flood_of_refused_calls_ends_at_the_call_limit():
    limits = Limits(wall_seconds=200, max_calls=100)
    calls = [["call", number, "nobody", "x", {}, None] for number in range(1, 200)]
    outcome = await outcome_of(says(*calls), limits=limits)
    assert "call-limit" == outcome.failure.kind


async def test_a_deeply_nested_value_does_not_overflow_the_host():
    depth = 3000
    outcome = await outcome_of(sends(frame(b'[["done",{"value":' + b"[" * depth + b"]" * depth + b"}]]")))
    value, levels = outcome.value, 0
    while value:
        (value,) = value
        levels += 1
    assert depth == levels + 1


@pytest.mark.parametrize("count", [1, 50], ids=["one number", "many numbers"])
async def test_integers_that_would_take_long_to_read_are_refused(count):
    limits = Limits(wall_seconds=200, max_output_bytes=8_000_000)
    numbers = b",".join([b"9" * (4_000_000 // count)] * count)
    # To read them would take minutes of the processor.
    with trio.fail_after(60):
        outcome = await outcome_of(sends(frame(b'[["done",{"value":[' + numbers + b"]}]]")), limits=limits)
    assert "invalid-output" == outcome.failure.kind
    assert "4000000 digits together; the limit is 200000 digits" in outcome.failure.message


async def test_digits_in_a_text_are_no_integers():
    limits = Limits(wall_seconds=200, max_output_bytes=8_000_000)
    text = '\\"' + "9" * 1_000_000 + ",\\\\"
    data = b'[["done",{"value":"' + text.encode() + b'"}]]'
    outcome = await outcome_of(sends(frame(data)), limits=limits)
    assert json.loads(data)[0][1]["value"] == outcome.value


async def test_a_long_integer_below_the_bound_is_exact():
    limits = Limits(wall_seconds=200, max_output_bytes=8_000_000)
    data = b'[["done",{"value":[' + b"7" * 150_000 + b',"' + b"x" * 300_000 + b'"]}]]'
    outcome = await outcome_of(sends(frame(data)), limits=limits)
    assert (10**150_000 - 1) // 9 * 7 == outcome.value[0]


async def test_a_large_frame_does_not_stop_other_tasks(monkeypatch):
    threads = set()

    def decode(payload):
        threads.add(threading.current_thread())
        return decode_payload(payload)

    decode_payload = wire.decode_payload
    monkeypatch.setattr(wire, "decode_payload", decode)
    limits = Limits(wall_seconds=200, max_output_bytes=8_000_000)
    data = frame(json.dumps([["done", {"value": ["x" * 1000] * 4000}]]).encode())
    outcome = await outcome_of(sends(data), limits=limits)
    assert 4000 == len(outcome.value)
    assert 1 == len(threads)
    assert threading.current_thread() not in threads


# ---- what is there when the host begins to listen


async def outcome_of_said(*pieces, namespaces=(SPACE,), on_log=None, end=True):
    """Settle an only run whose worker has said these bytes before anybody listened, and then ended."""
    peer = Peer()
    for piece in pieces:
        await peer.send(piece)
    if end:
        peer.end.shutdown(socket.SHUT_WR)
    run = run_with(peer, namespaces, on_log=on_log, is_alone=True)
    with trio.fail_after(300):
        outcome = await settled(run)
    assert peer.killed.is_set()
    peer.close()
    return outcome


def said(*messages):
    return frame(json.dumps(messages).encode())


DONE = ["done", {"value": 1}]


@pytest.mark.parametrize(
    "pieces",
    [
        [said(["log", "a\n"], ["log", "b\n"], DONE)],
        [said(["log", "a\n"]) + said(["log", "b\n"], DONE)],
        [said(["log", "a\n"], ["log", "b\n"])[:7], said(["log", "a\n"], ["log", "b\n"])[7:], said(DONE)],
        [said(["log", "a\n"], CALL, ["log", "b\n"]), said(DONE)],
    ],
    ids=["one frame", "two frames", "half a frame", "a call between"],
)
async def test_what_was_said_before_anybody_listened_is_heard_once_and_in_order(pieces):
    heard = []
    outcome = await outcome_of_said(*pieces, on_log=heard.append)
    assert (["a\n", "b\n"], ("a", "b"), 1) == (heard, outcome.logs, outcome.value)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (frame(b"[NaN]"), BROKEN),
        (said(["log"]), BROKEN),
        (said(["log", "x"], ["run", {}]), BROKEN),
        (b"", ("worker-exit", "worker exited with code 0 before completing")),
        (b"\x01", ("worker-exit", "worker exited with code 0 before completing")),
        (
            said(["log", "x" * 12_000]),
            ("output-limit", "outer output exceeded 10000 bytes; the limit is max_output_bytes"),
        ),
    ],
    ids=["not JSON", "no message", "not all messages", "nothing", "too little", "too much"],
)
async def test_what_is_wrong_with_it_ends_the_run_as_at_any_other_time(data, end):
    assert end == end_of(await outcome_of_said(data))


async def test_a_flood_at_the_beginning_does_not_stop_other_tasks():
    turns = 0
    peer = Peer()
    run = run_with(peer, (), Limits(wall_seconds=200, max_output_bytes=200_000), is_alone=True)
    stopped = threading.Event()

    def flood():
        peer.end.setblocking(True)
        try:
            while not stopped.is_set():
                peer.end.sendall(said(["log", "x"]))
        except OSError:
            pass  # The host has had enough.

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            outcome = await settled(run)
            nursery.cancel_scope.cancel()
    finally:
        stopped.set()
        peer.close()
        thread.join()
    assert "output-limit" == outcome.failure.kind
    assert turns > 10


async def test_a_quick_worker_that_falls_silent_does_not_keep_other_tasks_waiting():
    peer = Peer()
    run = run_with(peer, is_alone=True)
    # It has answered at once until now, and so often that others have to have their turn first.
    run._is_quick, run._units = True, 10**6
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run._next_payload)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    peer.close()
