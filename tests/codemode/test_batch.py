"""Many calls without a program: order, overlap, records (spec fact 155)."""

from __future__ import annotations

import corpus
import pytest
import trio
import trio.testing

from codemode import ABSENT, AbortSignal, SessionLog, ToolCall
from codemode.batch import WINDOW_PER_LANE, BatchResult, run_batch
from codemode.events import EventSink
from tool_bindings import Deny


async def batch(registry, calls, *, events=None, log=None, max_parallel=10, abort=None, watcher=None):
    results = []
    sink = EventSink(log, None if events is None else events.append)
    await run_batch(
        registry,
        calls,
        sink=sink,
        max_parallel=max_parallel,
        on_result=results.append,
        abort=abort,
        watcher=watcher,
    )
    return results


@pytest.fixture
def registry():
    return corpus.fixture_registry()


async def test_results_are_in_input_order_whatever_ends_first(registry, autojump_clock):
    calls = [ToolCall("slow", {"ms": ms}, f"wait {ms}") for ms in (300, 10, 200, 0)]
    results = await batch(registry, calls)
    assert [300, 10, 200, 0] == [result.value["sleptMs"] for result in results]
    assert ["wait 300", "wait 10", "wait 200", "wait 0"] == [result.record.id for result in results]


async def test_parallel_safe_calls_overlap_and_an_exclusive_one_runs_alone(registry, autojump_clock):
    live, most = 0, []

    async def count(call, proceed):
        nonlocal live
        live += 1
        most.append((call.name, live))
        try:
            return await proceed()
        finally:
            live -= 1

    registry.around(count)
    calls = (
        [ToolCall("slow", {"ms": 50})] * 3
        + [ToolCall("flaky", {"key": "k"})]
        + [ToolCall("slow", {"ms": 5})] * 2
    )
    results = await batch(registry, calls)
    assert [("slow", 1), ("slow", 2), ("slow", 3), ("flaky", 1), ("slow", 1), ("slow", 2)] == most
    assert [True, True, True, False, True, True] == [result.ok for result in results]


async def test_failures_are_records_and_do_not_stop_the_rest(registry):
    calls = [
        ToolCall("add", {"a": 1, "b": 2}),
        ToolCall("add", {"a": "one", "b": 2}),
        ToolCall("nope", {}),
        ToolCall("add", {"a": {1, 2}, "b": 2}),
        ToolCall("add", {"a": 3, "b": 4}),
    ]
    results = await batch(registry, calls)
    assert [3, ABSENT, ABSENT, ABSENT, 7] == [result.value for result in results]
    assert [None, "INVALID_ARGS", "UNKNOWN_TOOL", None, None] == [
        result.record.error_code for result in results
    ]
    assert [True, False, False, False, True] == [result.record.executed for result in results]
    assert {"status": "succeeded", "value": 3}.items() <= results[0].to_json().items()


async def test_policies_see_a_batch_as_such(registry):
    seen = []

    async def watch(call, proceed):
        seen.append((call.provenance, call.arguments["a"]))
        return Deny("not two") if call.arguments["a"] == 2 else await proceed()

    registry.on_pre_execute(watch)
    results = await batch(registry, [ToolCall("add", {"a": a, "b": 0}) for a in (1, 2, 3)])
    assert [("batch", 1), ("batch", 2), ("batch", 3)] == seen
    assert [1, ABSENT, 3] == [result.value for result in results]
    assert "not two" == results[1].record.error_message


async def test_an_abort_stops_what_runs_and_records_the_rest_as_not_started(registry):
    abort = AbortSignal()
    started = trio.Event()

    @registry.tool
    async def hang() -> None:
        started.set()
        await trio.sleep_forever()

    results = []
    async with trio.open_nursery() as nursery:

        async def run():
            results.extend(
                await batch(registry, [ToolCall("hang", {}), ToolCall("add", {"a": 1, "b": 2})], abort=abort)
            )

        nursery.start_soon(run)
        await started.wait()
        abort.abort("enough")
    assert [("failed", "ABORTED", True), ("not_started", "ABORTED_BEFORE_DISPATCH", False)] == [
        (result.record.status, result.record.error_code, result.record.executed) for result in results
    ]


async def test_only_a_window_of_endless_input_is_taken(registry):
    taken = 0
    release = trio.Event()

    @registry.tool(concurrency_safe=True)
    async def wait(n: int) -> int:
        await release.wait()
        return n

    async def endless():
        nonlocal taken
        while not release.is_set():
            taken += 1
            yield ToolCall("wait", {"n": taken})
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: batch(registry, endless(), max_parallel=2))
        await trio.testing.wait_all_tasks_blocked()
        assert taken <= 2 * WINDOW_PER_LANE + 1
        release.set()


async def test_each_call_is_one_turn_with_its_call_and_result(registry):
    events = []
    await batch(registry, [ToolCall("add", {"a": 1, "b": 2}, "mine")], events=events)
    assert [
        "turn/start",
        "step/start",
        "assistant/message",
        "tool/call",
        "tool/result",
        "step/end",
        "turn/end",
    ] == [event["type"] for event in events]
    assert "mine" == events[3]["data"]["callId"]


class Watcher:
    def __init__(self, at_start=lambda number: None):
        self.heard = []
        self._at_start = at_start

    def starting(self, number):
        self.heard.append(("starting", number))
        self._at_start(number)

    def waiting(self, number, result):
        self.heard.append(("waiting", number, result.value))


async def test_a_watcher_hears_of_a_call_before_its_body_runs_and_of_results_that_have_to_wait(
    registry, autojump_clock
):
    watcher = Watcher()

    async def note(call, proceed):
        watcher.heard.append(("body", call.arguments["ms"]))
        return await proceed()

    registry.around(note)
    calls = [ToolCall("slow", {"ms": ms}) for ms in (300, 10, 400)]
    await batch(registry, calls, watcher=watcher)
    started = [("starting", 0), ("body", 300), ("starting", 1), ("body", 10), ("starting", 2), ("body", 400)]
    assert [*started, ("waiting", 1, {"sleptMs": 10})] == watcher.heard


async def test_a_call_whose_watcher_fires_the_abort_does_not_run(registry):
    abort = AbortSignal()
    watcher = Watcher(lambda number: abort.abort("full") if number == 1 else None)
    calls = [ToolCall("flaky", {"key": "k"}), ToolCall("add", {"a": 1, "b": 2}), ToolCall("add", {"a": 1})]
    results = await batch(registry, calls, abort=abort, watcher=watcher, max_parallel=1)
    assert [True, False, False] == [result.record.executed for result in results]
    assert ["ABORTED_BEFORE_DISPATCH"] * 2 == [result.record.error_code for result in results[1:]]
    assert [("starting", 0), ("starting", 1)] == watcher.heard


async def test_a_result_among_the_calls_is_handed_on_in_its_place(registry, autojump_clock):
    (known,) = await batch(registry, [ToolCall("add", {"a": 1, "b": 2}, "known")])
    calls = [ToolCall("slow", {"ms": 50}), known, ToolCall("add", {"a": 2, "b": 2})]
    results = await batch(registry, calls)
    assert [{"sleptMs": 50}, 3, 4] == [result.value for result in results]
    assert results[1] is known


async def test_a_result_read_back_from_json_is_written_the_same(registry):
    calls = [
        ToolCall("add", {"a": 1, "b": 2}, 7),
        ToolCall("add", {"a": "x", "b": 2}, "mine"),
        ToolCall("echo", {"value": None}),
        ToolCall("nope", {}),
    ]
    for result in await batch(registry, calls):
        assert result.to_json() == BatchResult.from_json(result.to_json()).to_json()


async def test_ids_need_not_differ_and_the_log_stays_in_order(registry, autojump_clock):
    log = SessionLog.in_memory()
    results = await batch(registry, [ToolCall("slow", {"ms": ms}, "same") for ms in (30, 20, 10)], log=log)
    assert ["same"] * 3 == [result.record.id for result in results]
    calls = [event["data"]["callId"] for event in log.events() if event["type"] == "tool/call"]
    assert ("same", 3) == (calls[0], len(set(calls)))
    assert 3 == len(log.replay().results)


async def test_a_batch_that_is_cancelled_closes_the_turns_it_has_opened(registry, autojump_clock):
    log = SessionLog.in_memory()

    @registry.tool(concurrency_safe=True)
    async def hang() -> None:
        await trio.sleep_forever()

    with trio.move_on_after(1):
        await batch(registry, [ToolCall("hang", {}), ToolCall("slow", {"ms": 1})], log=log)
    ends = [event["data"]["reason"]["kind"] for event in log.events() if event["type"] == "turn/end"]
    assert ["completed", "aborted"] == ends
    assert [False, True] == [result.is_error for result in log.replay().results]
