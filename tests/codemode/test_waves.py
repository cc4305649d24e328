"""Calls that came together: the same calls, events and receipts as one by one, however they are served."""

from __future__ import annotations

import contextvars
import json

import pytest
import trio
import trio.testing

from codemode import SessionLog, Settings, open_service
from tool_bindings import Accept, Deny, ToolDefinition, ToolRegistry, ToolRunContext
from tool_bindings.definition import Output

NOTHING = {"type": "object", "properties": {}}


@pytest.fixture
def ran():
    """Give the list of numbers that bodies noted when they began."""
    return []


@pytest.fixture
def registry(ran):
    registry = ToolRegistry()

    @registry.tool(concurrency_safe=True)
    async def note(n: int) -> int:
        """Return at once."""
        ran.append(n)
        return n

    @registry.tool(concurrency_safe=True)
    async def wait(n: int) -> int:
        """Wait a little."""
        ran.append(n)
        await trio.sleep(0.01)
        return n

    @registry.tool(concurrency_safe=True)
    async def never(n: int) -> int:
        """Wait for ever."""
        ran.append(n)
        await trio.sleep_forever()

    @registry.tool(concurrency_safe=True)
    async def fail(n: int) -> int:
        """Fail."""
        raise ValueError(f"no {n}")

    @registry.tool
    async def alone(n: int) -> int:
        """Run alone."""
        ran.append(n)
        return n

    @registry.tool(concurrency_safe=True)
    def thread(n: int) -> int:
        """Run in a thread."""
        return n

    @registry.tool(concurrency_safe=True)
    async def rows(n: int) -> list[dict[str, int]]:
        """Return many rows."""
        return [{"n": each} for each in range(n)]

    return registry


async def recorded(registry, path, source, **settings):
    """Run a program and return its outcome and the events of its nested calls."""
    limits = {"wall_seconds": 100}
    with SessionLog.open(path) as log:
        async with open_service(registry, settings=Settings(**settings), session_log=log) as service:
            outcome = await service.run_code(source, **limits)
        events = [event for event in log.events() if event["type"].startswith("tool/code-dispatch")]
    SessionLog.load(path)
    return outcome, events


def happened(events):
    """Return what was started (+) and what ended (-), in order."""
    return [
        ("+" if event["type"].endswith("start") else "-") + str(event["data"]["arguments"]["n"])
        for event in events
    ]


def most_open(events):
    most = now = 0
    for event in events:
        now += 1 if event["type"].endswith("start") else -1
        most = max(most, now)
    assert 0 == now
    return most


def batch(*calls, way="batch"):
    return (
        "import asyncio\n"
        "async def one(call):\n    return await call\n"
        "async def kept(call):\n"
        "    try:\n        return await call\n    except ToolCallError as error:\n        return error\n"
        "async def group(calls):\n    async with asyncio.TaskGroup() as tasks:\n"
        "        tasks = [tasks.create_task(kept(call)) for call in calls]\n"
        "    return [task.result() for task in tasks]\n"
        f"calls = [{', '.join(calls)}]\n"
        "return [['error', r.toolName, str(r)] if isinstance(r, ToolCallError) else r"
        f" for r in await {WAYS[way]}]"
    )


WAYS = {
    "batch": "codemode.batch(calls)",
    "gather": "asyncio.gather(*calls, return_exceptions=True)",
    "group": "group(calls)",
    "tasks": "asyncio.gather(*[asyncio.create_task(one(c)) for c in calls], return_exceptions=True)",
}
"""Of making calls at the same time; served alike, whether or not they leave in one message."""
TOGETHER = pytest.mark.parametrize("way", WAYS)


MIXED = [
    *(f"tools.note(n={n})" for n in range(12)),
    "tools.fail(n=12)",
    "tools.note(n='x')",
    "tools.wait(n=14)",
    "tools.thread(n=15)",
    "tools.alone(n=16)",
    *(f"tools.note(n={n})" for n in range(17, 30)),
    "tools.rows(n=2000)",
    "tools.rows(n=2)",
    "tools.note(n=object())",
    "tools.wait(n=33)",
]
ONE_BY_ONE = (
    "results = []\nfor call in [{calls}]:\n    try:\n        results.append(await call)\n"
    "    except ToolCallError as e:\n        results.append(['error', e.toolName, str(e)])\nreturn results"
)


@TOGETHER
async def test_a_batch_gives_what_the_same_calls_give_one_by_one(registry, tmp_path, way):
    together, events = await recorded(registry, tmp_path / "a", batch(*MIXED, way=way))
    apart, expected = await recorded(registry, tmp_path / "b", ONE_BY_ONE.format(calls=", ".join(MIXED)))
    assert apart.result == together.result
    assert len(MIXED) == len(together.result)

    def comparable(events, outer):
        data = sorted(
            (json.dumps([event["type"], event["data"]]).replace(outer, "run") for event in events), key=str
        )
        assert len(data) == 2 * (len(MIXED) - 1)
        return data

    outer = [events[0]["data"]["rootCallId"], expected[0]["data"]["rootCallId"]]
    assert comparable(expected, outer[1]) == comparable(events, outer[0])
    facts = [
        [(call.tool, call.arguments, call.status, call.executed, call.error_message) for call in each.calls]
        for each in (apart, together)
    ]
    assert facts[0] == facts[1]


@TOGETHER
async def test_a_wave_starts_together_in_order_and_ends_before_the_next(registry, tmp_path, way):
    calls = [f"tools.note(n={n})" for n in range(7)]
    outcome, events = await recorded(
        registry, tmp_path / "a", batch(*calls, way=way), max_parallel_sub_calls=3
    )
    assert [*range(7)] == outcome.result
    waves = [[0, 1, 2], [3, 4, 5], [6]]
    assert [f"{sign}{n}" for wave in waves for sign in "+-" for n in wave] == happened(events)


@TOGETHER
async def test_a_body_that_waits_does_not_hold_up_the_others(registry, ran, tmp_path, way):
    others_are_done = trio.Event()

    @registry.tool(concurrency_safe=True)
    async def hold(n: int) -> int:
        """Wait for the others."""
        ran.append(n)
        await others_are_done.wait()
        return n

    @registry.tool(concurrency_safe=True)
    async def release(n: int) -> int:
        """End the waiting."""
        ran.append(n)
        others_are_done.set()
        return n

    calls = ["tools.note(n=0)", "tools.hold(n=1)", *(f"tools.note(n={n})" for n in range(2, 29))]
    calls.append("tools.release(n=29)")
    outcome, events = await recorded(
        registry, tmp_path / "a", batch(*calls, way=way), max_parallel_sub_calls=4
    )
    assert [*range(30)] == outcome.result
    assert [*range(30)] == ran
    assert "-1" == happened(events)[-1]
    assert most_open(events) <= 4


@TOGETHER
async def test_bodies_that_wait_overlap_up_to_the_bound(registry, tmp_path, way):
    calls = [f"tools.wait(n={n})" for n in range(40)]
    outcome, events = await recorded(
        registry, tmp_path / "a", batch(*calls, way=way), max_parallel_sub_calls=4
    )
    assert [*range(40)] == outcome.result
    assert 4 == most_open(events)
    starts = [each for each in happened(events) if each.startswith("+")]
    assert [f"+{n}" for n in range(40)] == starts


@TOGETHER
async def test_an_exclusive_call_in_the_middle_runs_alone(registry, tmp_path, way):
    calls = ["tools.wait(n=0)", "tools.note(n=1)", "tools.alone(n=2)", "tools.note(n=3)"]
    outcome, events = await recorded(registry, tmp_path / "a", batch(*calls, way=way))
    assert [0, 1, 2, 3] == outcome.result
    order = happened(events)
    assert order.index("-0") < order.index("+2") < order.index("-2") < order.index("+3")


@TOGETHER
async def test_policies_see_every_call_of_a_batch(registry, ran, way):
    seen = []

    def before(call, proceed):
        if call.name != "note":
            return proceed()
        seen.append(call.arguments["n"])
        return Deny("not 3") if call.arguments["n"] == 3 else proceed()

    def after(call, result, proceed):
        return proceed() if call.name != "note" or result.is_error else Accept(value=result.value * 10)

    registry.on_pre_execute(before)
    registry.on_post_execute(after)
    async with open_service(registry) as service:
        outcome = await service.run_code(batch(*(f"tools.note(n={n})" for n in range(5)), way=way))
    assert [0, 10, 20, ["error", "note", "not 3"], 40] == outcome.result
    assert ([*range(5)], [0, 1, 2, 4]) == (seen, ran)


@TOGETHER
async def test_a_policy_that_a_body_registers_is_asked_for_the_calls_after_it(registry, way):
    async def forbid(arguments, context):
        registry.on_pre_execute(lambda call, proceed: Deny("from now on"))

    registry.register(ToolDefinition("forbid", "Forbid.", NOTHING, Output({}), forbid, concurrency_safe=True))
    async with open_service(registry) as service:
        outcome = await service.run_code(
            batch("tools.note(n=0)", "tools.forbid()", "tools.note(n=2)", way=way)
        )
    assert [0, None, ["error", "note", "from now on"]] == outcome.result


@TOGETHER
async def test_a_listener_hears_of_every_call_of_a_batch(registry, way):
    heard = []
    async with open_service(registry, on_event=heard.append) as service:
        await service.run_code(batch(*(f"tools.note(n={n})" for n in range(5)), way=way))
    events = [event for event in heard if event["type"].startswith("tool/code-dispatch")]
    assert [f"{sign}{n}" for n in range(5) for sign in "+-"] == happened(events)


@TOGETHER
async def test_an_observer_that_comes_in_the_middle_of_a_wave_hears_the_ends(registry, tmp_path, way):
    heard = []
    with SessionLog.open(tmp_path / "a") as log:

        async def watch(arguments, context):
            log.subscribe(heard.append)

        registry.register(
            ToolDefinition("watch", "Watch.", NOTHING, Output({}), watch, concurrency_safe=True)
        )
        async with open_service(registry, session_log=log) as service:
            outcome = await service.run_code(
                batch("tools.note(n=0)", "tools.watch()", "tools.note(n=2)", way=way)
            )
    assert [0, None, 2] == outcome.result
    assert ["note", "watch", "note"] == [
        event["data"]["name"] for event in heard if event["type"] == "tool/code-dispatch"
    ]
    assert [call.status for call in outcome.calls] == ["succeeded"] * 3


@pytest.mark.parametrize("count", [1, 128, 129, 1500, 10_000])
async def test_a_batch_may_have_any_number_of_calls(registry, ran, count):
    source = f"r = await codemode.batch([tools.note(n=i) for i in range({count})])\nreturn [len(r), sum(r)]"
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert [count, sum(range(count))] == outcome.result
    assert [*range(count)] == ran
    assert {"succeeded"} == {call.status for call in outcome.calls}


@TOGETHER
async def test_a_batch_ends_at_the_limit_of_calls_with_what_ran_on_the_receipt(registry, ran, tmp_path, way):
    source = batch("*[tools.note(n=i) for i in range(500)]", way=way)
    with SessionLog.open(tmp_path / "a") as log:
        async with open_service(registry, session_log=log) as service:
            outcome = await service.run_code(source, max_calls=203)
        root = outcome.calls[0].id.partition(":code:")[0]
        assert [call.id for call in outcome.calls] == [call.id for call in log.receipt(root)]
    assert "call-limit" == outcome.failure.kind
    assert [*range(203)] == ran
    assert ({"succeeded"}, 203) == ({call.status for call in outcome.calls}, len(outcome.calls))
    SessionLog.load(tmp_path / "a")


@TOGETHER
async def test_of_too_many_calls_that_wait_some_are_refused_as_for_single_calls(registry, way):
    all_are_there = trio.Event()

    async def hold(arguments, context):
        if not all_are_there.is_set():
            # They come in one message, so once nothing can go on every one of them has been looked at.
            await trio.testing.wait_all_tasks_blocked(0.02)
            all_are_there.set()

    registry.register(ToolDefinition("hold", "Hold.", NOTHING, Output({}), hold, concurrency_safe=True))
    async with open_service(registry, settings=Settings(max_parallel_sub_calls=2)) as service:
        outcome = await service.run_code(
            batch("*[tools.hold() for _ in range(30)]", way=way), max_pending_calls=20
        )
    refused = [each for each in outcome.result if isinstance(each, list)]
    assert 10 == len(refused)
    assert all("max_pending_calls" in text for _, _, text in refused)


@TOGETHER
async def test_a_wave_is_no_larger_than_the_calls_that_may_wait(registry, way):
    waiting = most = 0

    @registry.tool(concurrency_safe=True)
    async def hold(n: int) -> int:
        """Wait with the others."""
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await trio.sleep(0.01)
        waiting -= 1
        return n

    async with open_service(registry, settings=Settings(max_parallel_sub_calls=20)) as service:
        outcome = await service.run_code(
            batch("*[tools.hold(n=n) for n in range(10)]", way=way), max_pending_calls=3
        )
        quick = await service.run_code(
            batch("*[tools.note(n=n) for n in range(10)]", way=way), max_pending_calls=3
        )
    assert [0, 1, 2] == outcome.result[:3]
    assert {("error", "hold")} == {tuple(each[:2]) for each in outcome.result[3:]}
    assert "max_pending_calls" in outcome.result[3][2]
    assert 3 == most
    assert [*range(10)] == quick.result


@TOGETHER
async def test_no_body_begins_when_the_results_before_it_were_too_much(registry, ran, way):
    @registry.tool(concurrency_safe=True)
    async def much(n: int) -> dict[str, str]:
        """Return much."""
        ran.append(n)
        return {"text": "x" * 100_000}

    async with open_service(registry) as service:
        outcome = await service.run_code(
            batch("*[tools.much(n=n) for n in range(10)]", way=way), max_run_bytes=150_000
        )
    assert ("call-limit", [0, 1]) == (outcome.failure.kind, ran)
    assert ["succeeded"] * 2 == [call.status for call in outcome.calls if call.executed]


@TOGETHER
async def test_long_arguments_travel_in_as_many_messages_as_they_need(registry, way):
    @registry.tool(concurrency_safe=True)
    async def length(text: str) -> int:
        """Measure a text."""
        return len(text)

    calls = [f"tools.length(text='x' * {900 + n})" for n in range(8)]
    calls[3] = "tools.length(text=object())"
    async with open_service(registry) as service:
        outcome = await service.run_code(batch(*calls, way=way), max_call_bytes=2000)
    assert [900, 901, 902, 904, 905, 906, 907] == [each for each in outcome.result if type(each) is int]
    assert ["error", "length"] == outcome.result[3][:2]


@TOGETHER
async def test_a_result_over_the_limit_fails_its_call_only(registry, way):
    async with open_service(registry) as service:
        outcome = await service.run_code(
            batch("tools.note(n=0)", "tools.rows(n=300)", "tools.note(n=2)", way=way), max_call_bytes=1000
        )
    first, second, third = outcome.result
    assert (0, 2) == (first, third)
    assert "max_call_bytes" in second[2]


@TOGETHER
async def test_arguments_over_the_limit_fail_their_call_only(registry, ran, way):
    async with open_service(registry) as service:
        outcome = await service.run_code(
            batch("tools.note(n=0)", "tools.note(n='x' * 2000)", "tools.note(n=2)", way=way),
            max_call_bytes=1000,
        )
    assert (0, 2) == (outcome.result[0], outcome.result[2])
    assert "max_call_bytes" in outcome.result[1][2]
    assert [0, 2] == ran
    assert 2 == len(outcome.calls)


async def test_a_cancelled_batch_gives_up_what_waits_and_the_calls_can_be_awaited_no_more(registry):
    source = (
        "import asyncio\ncalls = [tools.note(n=0), tools.never(n=1), tools.never(n=2)]\n"
        "try:\n    async with asyncio.timeout(0.05):\n        await codemode.batch(calls)\n"
        "except TimeoutError:\n    pass\n"
        "try:\n    await calls[1]\nexcept asyncio.CancelledError:\n    pass\n"
        "return [await calls[0], await tools.alone(n=9)]"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert [0, 9] == outcome.result
    assert ["succeeded", "failed", "failed", "succeeded"] == [call.status for call in outcome.calls]


async def test_a_call_of_a_batch_may_be_awaited_elsewhere_meanwhile_and_again(registry, ran):
    source = (
        "import asyncio\nc = tools.wait(n=1)\nd = tools.fail(n=2)\n"
        "async def other():\n    await asyncio.sleep(0)\n    return await c\n"
        "t = asyncio.create_task(other())\n"
        "r = await codemode.batch([c, d, c, tools.note(n=3)])\n"
        "try:\n    await d\nexcept ToolCallError as e:\n    again = e is r[1]\n"
        "return [r[0], r[2], r[3], await t, await c, again, await codemode.batch([c])]"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert [1, 1, 3, 1, 1, True, [1]] == outcome.result
    assert [1, 3] == sorted(ran)


@TOGETHER
@pytest.mark.parametrize("waits", [False, True])
async def test_a_stop_in_the_middle_of_a_wave_ends_what_has_started(registry, ran, tmp_path, waits, way):
    with SessionLog.open(tmp_path / "a") as log:
        async with open_service(registry, session_log=log) as service:

            async def stop(arguments, context: ToolRunContext):
                service.stop(context.root_call_id)
                if waits:
                    await trio.sleep_forever()

            registry.register(
                ToolDefinition("stop", "Stop.", NOTHING, Output({}), stop, concurrency_safe=True)
            )
            outcome = await service.run_code(
                batch(
                    "tools.note(n=0)", "tools.stop()", *(f"tools.note(n={n})" for n in range(2, 30)), way=way
                )
            )
        events = [event for event in log.events() if event["type"].startswith("tool/code-dispatch")]
    assert "abort" == outcome.failure.kind
    assert [0] == ran
    assert len(events) == 2 * len({event["data"]["subCallId"] for event in events})
    assert ["failed"] * 8 == [call.status for call in outcome.calls[2:]]
    assert {False} == {call.executed for call in outcome.calls[2:]}


@TOGETHER
async def test_what_a_call_of_a_batch_sets_in_its_context_the_next_does_not_see(registry, way):
    seen = contextvars.ContextVar("seen", default=None)

    async def set_it(arguments, context):
        seen.set(1)
        await trio.lowlevel.checkpoint()
        return seen.get()

    async def get_it(arguments, context):
        return seen.get()

    for execute in (set_it, get_it):
        registry.register(
            ToolDefinition(execute.__name__, "x", NOTHING, Output({}), execute, concurrency_safe=True)
        )
    async with open_service(registry) as service:
        outcome = await service.run_code(batch("tools.get_it()", "tools.set_it()", "tools.get_it()", way=way))
    assert [None, 1, None] == outcome.result


async def test_helpers_and_tools_may_be_in_one_batch(registry):
    async with open_service(registry) as service:
        outcome = await service.run_code(
            "r = await codemode.batch([tools.note(n=0), codemode.describe('note'), tools.note(n=2)])\n"
            "return [r[0], 'def note(' in r[1], r[2]]"
        )
    assert [0, True, 2] == outcome.result


@TOGETHER
async def test_a_call_of_a_batch_that_aborts_itself_is_an_aborted_call_and_no_more(registry, way):
    async def give_up(arguments, context):
        context.abort.abort("no")
        return 1

    registry.register(ToolDefinition("give_up", "x", NOTHING, Output({}), give_up, concurrency_safe=True))
    async with open_service(registry) as service:
        outcome = await service.run_code(
            batch("tools.note(n=0)", "tools.give_up()", "tools.wait(n=2)", way=way)
        )
    assert [0, ["error", "give_up", "tool call aborted"], 2] == outcome.result


@TOGETHER
async def test_a_crash_in_a_wave_leaves_the_outcome_of_what_had_started_open(registry, tmp_path, way):
    copied = tmp_path / "crashed"
    with SessionLog.open(tmp_path / "a") as log:

        async def crash(arguments, context):
            copied.write_bytes((tmp_path / "a").read_bytes())

        registry.register(ToolDefinition("crash", "x", NOTHING, Output({}), crash, concurrency_safe=True))
        async with open_service(registry, session_log=log) as service:
            await service.run_code(batch("tools.note(n=0)", "tools.crash()", "tools.note(n=2)", way=way))
    root = next(
        event["data"]["rootCallId"]
        for event in SessionLog.load(copied).events()
        if event["type"] == "tool/code-dispatch-start"
    )
    assert ["unknown"] * 3 == [call.status for call in SessionLog.load(copied).receipt(root)]


async def test_events_that_could_not_be_written_are_counted_as_lost(registry, monkeypatch, tmp_path):
    with SessionLog.open(tmp_path / "a") as log:
        append = log._file.append

        def full(line):
            if b"tool/code-dispatch" in line:
                raise OSError(28, "No space left on device")
            append(line)

        monkeypatch.setattr(log._file, "append", full)
        async with open_service(
            registry, session_log=log, settings=Settings(max_parallel_sub_calls=4)
        ) as service:
            outcome = await service.run_code(batch(*(f"tools.note(n={n})" for n in range(6))))
    assert [*range(6)] == outcome.result
    # From the first failure on, one loss after the other is stated as soon as something can be written.
    assert 12 == sum(loss.count for loss in log.losses)
    assert {"succeeded"} == {call.status for call in outcome.calls}
    SessionLog.load(tmp_path / "a")


@pytest.mark.parametrize("way", ["codemode.batch([{}])", "asyncio.gather({})"])
async def test_what_ends_a_run_keeps_the_calls_after_it_from_beginning(registry, ran, way):
    async def huge(arguments, context):
        return "x" * 20_000

    registry.register(ToolDefinition("huge", "Huge.", NOTHING, Output({}), huge, concurrency_safe=True))
    calls = way.format("tools.huge(), tools.alone(n=1)")
    async with open_service(registry) as service:
        outcome = await service.run_code(f"import asyncio\nreturn await {calls}", max_run_bytes=10_000)
    assert ("call-limit", [], ["huge"]) == (
        outcome.failure.kind,
        ran,
        [call.tool for call in outcome.calls if call.executed],
    )
