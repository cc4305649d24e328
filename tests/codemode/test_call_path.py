"""Calls that a program could tell from those of plain asyncio, or that could reach beyond themselves."""

from __future__ import annotations

import contextvars

import pytest
import trio
import trio.lowlevel

from codemode import SessionLog, open_service
from codemode.bridge import Bridge
from codemode.events import EventSink
from sandbox.vocabulary import HostCall, HostFunctionError
from tool_bindings import ToolDefinition, ToolRegistry
from tool_bindings.caller import DispatchToken
from tool_bindings.definition import Output

SEEN = contextvars.ContextVar("SEEN", default=None)


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

    @registry.tool
    async def alone(n: int) -> int:
        """Run alone, and wait a little."""
        ran.append(n)
        await trio.sleep(0.01)
        return n

    @registry.tool(concurrency_safe=True)
    async def never(n: int) -> int:
        """Wait for ever."""
        ran.append(n)
        await trio.sleep_forever()

    return registry


def register(registry, name, execute):
    parameters = {"type": "object", "properties": {}}
    registry.register(ToolDefinition(name, name, parameters, Output({}), execute))


async def run(registry, source, **options):
    async with open_service(registry) as service:
        return await service.run_code(source, wall_seconds=60, **options)


async def test_a_call_that_aborts_itself_without_waiting_is_an_aborted_call_and_no_more(registry):
    async def give_up(arguments, context):
        context.abort.abort("no")
        return 1

    register(registry, "give_up", give_up)
    outcome = await run(
        registry,
        "try:\n    await tools.give_up()\nexcept ToolCallError as e:\n    text = str(e)\n"
        "return [text, await tools.note(n=2)]",
    )
    assert ["tool call aborted", 2] == outcome.result


async def test_a_batch_that_times_out_gives_up_the_calls_that_have_not_begun(registry, ran):
    outcome = await run(
        registry,
        "import asyncio\ntry:\n    async with asyncio.timeout(0.2):\n"
        "        await codemode.batch([tools.never(n=0), *[tools.alone(n=i) for i in range(1, 8)]])\n"
        "except TimeoutError:\n    pass\n"
        "return await tools.alone(n=9)",
    )
    assert 9 == outcome.result
    # The one that waits next may begin when the first is stopped, before its own end is heard of.
    assert ran in ([0, 9], [0, 1, 9])
    assert {"not_started"} == {call.status for call in outcome.calls[2:-1]}


async def test_what_is_left_of_a_frame_is_not_begun_once_the_run_was_stopped(registry, ran):
    async with open_service(registry) as service:

        async def stop(arguments, context):
            service.stop(context.root_call_id)

        parameters = {"type": "object", "properties": {}}
        registry.register(
            ToolDefinition("stop", "Stop.", parameters, Output({}), stop, concurrency_safe=True)
        )
        outcome = await service.run_code(
            "import asyncio\nawait asyncio.gather(tools.stop(), *[tools.note(n=i) for i in range(50)])"
        )
    assert "abort" == outcome.failure.kind
    assert [] == ran


async def test_what_a_call_sets_in_its_context_the_next_does_not_see(registry):
    async def set_at_once(arguments, context):
        SEEN.set("at once")

    async def set_and_wait(arguments, context):
        SEEN.set("before waiting")
        await trio.lowlevel.checkpoint()
        return SEEN.get()

    async def get(arguments, context):
        return SEEN.get()

    for execute in (set_at_once, set_and_wait, get):
        register(registry, execute.__name__, execute)
    outcome = await run(
        registry,
        "await tools.set_at_once()\na = await tools.get()\nb = await tools.set_and_wait()\n"
        "return [a, b, await tools.get()]",
    )
    assert [None, "before waiting", None] == outcome.result


async def test_a_task_that_was_cancelled_makes_no_more_calls(registry, ran):
    outcome = await run(
        registry,
        "import asyncio\nasyncio.current_task().cancel()\n"
        "try:\n    await tools.note(n=1)\nexcept asyncio.CancelledError:\n    return 'cancelled'",
    )
    assert "cancelled" == outcome.result


async def test_gathered_calls_nobody_awaits_are_never_made(registry, ran):
    outcome = await run(registry, "import asyncio\ng = asyncio.gather(tools.note(n=1), tools.note(n=2))")
    assert [] == ran
    assert "never awaited" in outcome.content[-1]["text"]


async def test_the_same_call_may_be_gathered_and_awaited_twice(registry, ran):
    outcome = await run(
        registry,
        "import asyncio\nc = tools.note(n=1)\nd = tools.note(n=2)\n"
        "r = await asyncio.gather(c, c)\ns = [await d, await d, await asyncio.gather(d, d)]\nreturn [r, s]",
    )
    assert [[1, 1], [2, 2, [2, 2]]] == outcome.result
    assert [1, 2] == ran


async def test_a_listener_without_a_log_cannot_change_the_call_it_hears_of(registry, ran):
    def meddle(event):
        with pytest.raises(TypeError):
            event["data"]["arguments"]["n"] = 99

    events = []

    def listen(event):
        if event["type"] == "tool/code-dispatch-start":
            meddle(event)
            events.append(event)

    async with open_service(registry, on_event=listen) as service:
        outcome = await service.run_code("return await tools.note(n=1)")
    assert (1, [1], 1) == (outcome.result, ran, len(events))


async def test_listeners_that_fail_do_not_reach_the_run(registry, caplog):
    def fail(*anything):
        raise LookupError("broken listener")

    outcome = await run(
        registry, "print('x')\nawait codemode.progress(done=1)\nreturn 1", on_log=fail, on_progress=fail
    )
    assert (1, ["x"]) == (outcome.result, outcome.logs)
    assert 2 == caplog.text.count("LookupError: broken listener")


def bridge_to(registry, log):
    return Bridge(
        registry,
        call_id="run",
        run_id="run",
        token=DispatchToken(),
        sink=EventSink(log, None),
        max_parallel=10,
        grace_seconds=5,
    )


class Halt(BaseException):
    """Stands for what ends a process at the worst moment."""


@pytest.mark.parametrize("dies", [False, True])
async def test_a_program_has_its_value_before_the_end_of_the_call_is_recorded(registry, tmp_path, dies):
    order = []

    def answer(_call, value):
        order.append(("value", value, [each["type"] for each in log.events()][1:]))
        if dies:
            raise Halt

    with SessionLog.open(tmp_path / "events.jsonl") as log:
        log.append("turn/start", {"turn": 1, "trigger": "user"})
        log.append("step/start", {"turn": 1, "step": 1})
        log.append(
            "tool/call", {"turn": 1, "step": 1, "callId": "run", "name": "run_code", "arguments": "{}"}
        )
        bridge = bridge_to(registry, log)
        call = HostCall(1, "tools", "note", {"n": 7}, 1, trio.CancelScope(), answer)
        if dies:
            with pytest.raises(Halt):
                await bridge._accept(call)
        else:
            assert 7 == await bridge._accept(call)
        receipt = log.receipt("run")
    started = ["turn/start", "step/start", "tool/call", "tool/code-dispatch-start"]
    assert [("value", 7, started)] == order
    assert ["unknown" if dies else "succeeded"] == [each.status for each in receipt]
    assert ["unknown" if dies else "succeeded"] == [each.status for each in bridge.records]


async def test_a_failed_call_is_recorded_before_its_error_is_given(registry):
    async def fail(arguments, context):
        raise ValueError("no")

    register(registry, "fail", fail)
    answers = []
    call = HostCall(1, "tools", "fail", {}, 1, trio.CancelScope(), lambda _call, value: answers.append(value))
    bridge = bridge_to(registry, None)
    with pytest.raises(HostFunctionError, match="no"):
        await bridge._accept(call)
    assert ([], ["failed"]) == (answers, [each.status for each in bridge.records])
