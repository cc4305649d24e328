"""Batches of a worker that has fallen: each call is rebuilt and counted as one that came by itself."""

from __future__ import annotations

import pytest
import trio
from scripted_peer import BROKEN, end_of, frame, outcome_of, says, sends

from sandbox.limits import Limits
from sandbox.vocabulary import Namespace


@pytest.mark.parametrize(
    "data",
    [
        frame(b'[["batch",1]]'),
        frame(b'[["batch",1,[]]]'),
        frame(b'[["batch",1,{}]]'),
        frame(b'[["batch",1,[["host","echo",{},null]],1]]'),
        frame(b'[["batch",true,[["host","echo",{},null]]]]'),
        frame(b'[["batch","1",[["host","echo",{},null]]]]'),
        frame(b'[["batch",0,[["host","echo",{},null]]]]'),
        frame(b'[["batch",9007199254740992,[["host","echo",{},1],["host","echo",{},1]]]]'),
        frame(b'[["batch",1,[["host","echo",{},1],null]]]'),
        frame(b'[["batch",1,[["host","echo",{},1],["host","echo",{}]]]]'),
        frame(b'[["batch",1,[["host","echo",{},1],[1,"echo",{},1]]]]'),
        frame(b'[["batch",1,[["host","echo",{},1],["host",null,{},1]]]]'),
        frame(b'[["batch",1,[["host","echo",{},1],["host","echo",{},0]]]]'),
        frame(b'[["batch",1,[["host","echo",{},1],["host","echo",{},"1"]]]]'),
        frame(b'[["batch",1,[' + b",".join([b'["host","echo",{},1]'] * 129) + b"]]]"),
    ],
    ids=repr,
)
async def test_a_batch_that_no_worker_of_ours_sends_ends_the_run(data):
    assert BROKEN == end_of(await outcome_of(sends(data)))


BATCH = ["batch", 1, [["host", "echo", {"x": 1}, 3], ["host", "nothing", {}, None], ["host", "echo", {}, 4]]]


async def test_the_calls_of_a_batch_are_answered_each_by_its_number():
    async def script(peer):
        await peer.say(BATCH)
        answers = {message[1]: message for message in await peer.hear()}
        assert {
            1: ["result", 1, {"x": 1}],
            2: ["error", 2, 'unknown binding "host.nothing"'],
            3: ["result", 3, {}],
        } == answers
        await peer.say(["done", {"value": 5}])

    outcome = await outcome_of(script)
    assert (None, 5) == end_of(outcome)
    assert 2 == outcome.usage.calls


@pytest.mark.parametrize(
    "messages",
    [
        [BATCH, BATCH],
        [BATCH, ["call", 3, "host", "echo", {}, None]],
        [["call", 1, "host", "echo", {}, None], BATCH],
        [["call", 7, "host", "echo", {}, None], BATCH],
    ],
    ids=["the same batch again", "a number of the batch", "a number before the batch", "lower numbers"],
)
async def test_numbers_of_a_batch_are_answered_at_most_once(messages):
    asked = []

    async def note(call):
        asked.append(call.id)

    space = Namespace("host", {"echo": "echo()"}, note)
    assert BROKEN == end_of(await outcome_of(says(*messages), namespaces=(space,)))
    assert len(asked) == len(set(asked))


async def test_long_arguments_in_a_batch_end_the_run():
    message = ["batch", 1, [["host", "echo", {}, None], ["host", "echo", {"x": "y" * 10_001}, None]]]
    assert BROKEN == end_of(await outcome_of(says(message)))


async def test_a_flood_of_batches_ends_at_the_call_limit():
    limits = Limits(wall_seconds=200, max_calls=100)
    calls = [["nobody", "x", {}, None]] * 40
    outcome = await outcome_of(says(*(["batch", 1 + 40 * n, calls] for n in range(5))), limits=limits)
    assert "call-limit" == outcome.failure.kind


async def test_calls_of_a_batch_can_be_given_up_one_by_one():
    async def script(peer):
        await peer.say(["batch", 1, [["host", "never", {}, 1], ["host", "echo", {}, 2]]])
        assert [["result", 2, {}]] == await peer.hear()
        await peer.say(["cancel", 1])
        await peer.say(["done", {"value": 1}])

    async def answer(call):
        return call.arguments if call.member == "echo" else await trio.sleep_forever()

    space = Namespace("host", {"echo": "echo()", "never": "never()"}, answer)
    assert (None, 1) == end_of(await outcome_of(script, namespaces=(space,)))
