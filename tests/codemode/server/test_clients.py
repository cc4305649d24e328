"""Bounds of clients and the logs of their runs."""

from __future__ import annotations

import json

import pytest
import trio

from codemode.server.clients import Bounds, ClientBusyError, ClientKey, Clients, Journal, RunLogs


async def hold(client, release, entered):
    async with client.place():
        entered.append(1)
        await release.wait()


async def test_places_are_taken_in_turn_and_one_request_too_many_is_refused():
    client = Clients(Bounds(running=2, waiting=1)).of(ClientKey("a"))
    release, entered = trio.Event(), []
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(hold, client, release, entered)
        await trio.testing.wait_all_tasks_blocked()
        assert 2 == len(entered)
        with pytest.raises(ClientBusyError, match="3 unfinished requests; at most 3"):
            await hold(client, release, entered)
        release.set()
    await hold(client, release, entered)
    assert 4 == len(entered)


def test_sessions_of_one_owner_share_its_bounds():
    clients = Clients(Bounds())
    assert clients.of(ClientKey("a", "1")) is clients.of(ClientKey("a", "2"))
    assert clients.of(ClientKey("a")) is not clients.of(ClientKey("b"))


async def test_an_exclusive_call_runs_alone_and_in_order():
    client = Clients(Bounds()).of(ClientKey("a"))
    seen, releases = [], {name: trio.Event() for name in "abxc"}

    async def call(name):
        async with client.turn(exclusive=name == "x"):
            seen.append(name)
            await releases[name].wait()
            seen.append(name.upper())

    async with trio.open_nursery() as nursery:
        for name in "abxc":
            nursery.start_soon(call, name)
            await trio.testing.wait_all_tasks_blocked()
        assert ["a", "b"] == seen
        for name in "abxc":
            releases[name].set()
            await trio.testing.wait_all_tasks_blocked()
    assert ["a", "b", "A", "B", "x", "X", "c", "C"] == seen


async def test_a_cancelled_exclusive_call_lets_the_next_one_through():
    client = Clients(Bounds()).of(ClientKey("a"))
    with trio.CancelScope() as scope:
        async with client.turn(exclusive=False), trio.open_nursery() as nursery:
            scope_of_waiter = trio.CancelScope()

            async def wait():
                with scope_of_waiter:
                    async with client.turn(exclusive=True):
                        pytest.fail("the first call still runs")

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            scope_of_waiter.cancel()
    assert not scope.cancelled_caught
    async with client.turn(exclusive=True):
        pass


def event(kind, **data):
    return {"type": kind, "seq": 0, "time": 0, "data": data}


def a_run(turn, run_id):
    return [
        event("turn/start", turn=turn),
        event("step/start", turn=turn, step=0),
        event("assistant/message", turn=turn, step=0),
        event("tool/call", turn=turn, step=0, callId=run_id),
        event("tool/code-dispatch-start", rootCallId=run_id),
        event("tool/result", turn=turn, step=0),
        event("user/message", of=run_id),
        event("turn/end", turn=turn),
    ]


def kinds(text):
    return [json.loads(line)["type"] for line in text.splitlines()]


def test_events_of_overlapping_runs_are_told_apart():
    journal = Journal()
    one, two = a_run(0, "run-1"), a_run(1, "run-2")
    for each in (*one[:4], *two[:5], one[4], *one[5:], *two[5:]):
        journal.on_event(each)
    first, second = journal.take("run-1"), journal.take("run-2")
    assert [each["type"] for each in one] == kinds(first)
    assert [each["type"] for each in two] == kinds(second)
    assert "run-2" not in first
    assert journal.take("run-1") is None


def test_a_long_log_is_cut_and_says_by_how_much():
    journal = Journal()
    start, end = a_run(0, "run-1")[:4], a_run(0, "run-1")[-1:]
    chunks = [event("tool/code-dispatch", rootCallId="run-1", text="x" * 100_000) for _ in range(20)]
    for each in (*start, *chunks, *end):
        journal.on_event(each)
    text = journal.take("run-1")
    assert len(text) < 1_300_000
    last = json.loads(text.splitlines()[-1])
    assert ("note", 10) == (last["type"], last["data"]["droppedEvents"])


def test_logs_nobody_comes_for_are_forgotten():
    journal = Journal()
    for number in range(100):
        for each in a_run(number, f"call-{number}"):
            journal.on_event(each)
    assert journal.take("call-0") is None
    assert journal.take("call-99") is not None


def test_the_last_runs_of_a_session_are_kept_and_no_other_session_sees_them():
    logs, mine = RunLogs(), ClientKey("a", "1")
    for number in range(30):
        logs.keep(mine, f"run-{number}", "text")
    assert [f"run-{number}" for number in range(10, 30)] == list(logs.of(mine))
    assert {} == logs.of(ClientKey("a", "2"))
    for number in range(200):
        logs.keep(ClientKey("a", f"other-{number}"), "run", "text")
    assert {} == logs.of(mine)


def test_what_one_owner_does_pushes_out_no_run_of_another():
    logs, mine = RunLogs(), ClientKey("a")
    logs.keep(mine, "run", "text")
    for number in range(2000):
        logs.keep(ClientKey("b", str(number)), "run", "text")
    assert {"run": "text"} == logs.of(mine)


def test_all_logs_of_one_owner_have_a_bound_together():
    logs = RunLogs()
    for number in range(50):
        logs.keep(ClientKey("a", str(number // 10)), f"run-{number}", "x" * 1_000_000)
    kept = [len(logs.of(ClientKey("a", str(session)))) for session in range(5)]
    assert [0, 3, 10, 10, 10] == kept
