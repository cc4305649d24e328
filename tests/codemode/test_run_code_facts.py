"""Facts about `run_code` and its nested calls, one test each; the numbers are lines of the contract's list.

Others of the same list are elsewhere:
89 to 95 in `test_lane`; 86, 100, 105, 106, 109 and 154 in `test_service`; 107 and 111 in `test_session_log*`;
87 in `tests/tool_bindings/test_content`; 112 to 122 and 124 in `tests/sandbox` (`test_limits`, `test_ledger`,
`test_hostile_peer`, `test_supervisor`); 123 in `tests/sandbox/test_vocabulary`;
126 to 133 in `tests/tool_bindings/test_stubs`. 125 is a decision (0100).
"""

from __future__ import annotations

import corpus
import pytest
import trio

from codemode import AbortSignal, SessionLog, Settings, SettingsError, open_service
from tool_bindings import Accept, Deny, ToolRunContext, text_block


@pytest.fixture
def registry():
    return corpus.fixture_registry()


def dispatch_events(events):
    return [
        (event["type"].removeprefix("tool/code-dispatch"), event["data"]["name"])
        for event in events
        if event["type"].startswith("tool/code-dispatch")
    ]


async def test_a_blank_description_is_an_error(registry):
    """Line 85."""
    async with open_service(registry) as service:
        with pytest.raises(SettingsError, match="description"):
            await service.run_code("return 1", description=" \n")


async def test_a_failed_run_is_recorded_by_name_and_code(registry):
    """Line 88."""
    events = []
    async with open_service(registry, on_event=events.append) as service:
        await service.run_code("print('x')\nraise ValueError('boom')")
    (result,) = [event["data"] for event in events if event["type"] == "tool/result"]
    assert {"name": "CodeRunFailedError", "code": "CODE_RUN_FAILED"} == result["error"]
    text = result["message"]["content"][0]["content"][0]["text"]
    assert text.startswith("Error: code run failed (exception): ValueError: boom")
    assert text.endswith("Captured output:\nx")


@pytest.mark.parametrize(("cap", "most"), [(10, 3), (2, 2)])
async def test_gathered_safe_calls_overlap_up_to_the_cap(registry, cap, most):
    """Line 90."""
    live, peak = 0, 0
    everyone = trio.Event()

    @registry.tool(concurrency_safe=True)
    async def meet(n: int) -> int:
        nonlocal live, peak
        live += 1
        peak = max(peak, live)
        if live == min(cap, 3):
            everyone.set()
        await everyone.wait()
        live -= 1
        return n

    source = "import asyncio\nreturn await asyncio.gather(*[tools.meet(n=n) for n in range(3)])"
    async with open_service(registry, settings=Settings(max_parallel_sub_calls=cap)) as service:
        outcome = await service.run_code(source)
    assert [0, 1, 2] == outcome.result
    assert most == peak


async def test_a_call_still_queued_when_the_program_ends_leaves_no_events(registry):
    """Line 95."""
    events = []
    started = trio.Event()

    @registry.tool(concurrency_safe=True)
    async def first() -> None:
        started.set()
        await trio.sleep_forever()

    @registry.tool(concurrency_safe=True)
    async def ready() -> None:
        await started.wait()

    @registry.tool
    async def signal_started() -> None:
        raise AssertionError("never started")

    source = (
        "import asyncio\na = asyncio.create_task(tools.first())\n"
        "ready = asyncio.create_task(tools.ready())\n"
        "b = asyncio.create_task(tools.signal_started())\n"
        "await ready\nreturn 'done'"
    )
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(source)
    assert "done" == outcome.result
    assert [("-start", "first"), ("-start", "ready"), ("", "ready"), ("", "first")] == dispatch_events(events)
    assert [("first", "failed"), ("ready", "succeeded"), ("signal_started", "not_started")] == [
        (call.tool, call.status) for call in outcome.calls
    ]
    assert "abandoned" in outcome.calls[2].error_message


async def test_a_commit_in_flight_when_the_program_ends_is_recorded_as_aborted(registry):
    """Line 96."""
    events = []
    posting = trio.Event()

    @registry.tool(concurrency_safe=True)
    async def quick() -> int:
        return 1

    @registry.tool(concurrency_safe=True)
    async def ready() -> None:
        await posting.wait()

    async def slow_post(call, result, proceed):
        decision = await proceed()
        if call.name == "quick":
            posting.set()
            await call.abort.wait()
        return decision

    registry.on_post_execute(slow_post)
    source = "import asyncio\nt = asyncio.create_task(tools.quick())\nawait tools.ready()\nreturn 'done'"
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(source)
    ends = [event["data"] for event in events if event["type"] == "tool/code-dispatch"]
    assert "done" == outcome.result
    assert [("ready", False), ("quick", True)] == [(end["name"], end["isError"]) for end in ends]
    # The program awaits before its task has had a turn, so the call it awaits is the first.
    assert [None, "ABORTED"] == [call.error_code for call in outcome.calls]


async def test_a_run_that_dies_with_a_call_open_still_drains_it(registry, movable_clock):
    """Line 97."""
    events, cleaned = [], []

    @registry.tool(concurrency_safe=True)
    async def hang() -> None:
        movable_clock.jump(20)
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(True)

    source = (
        "import asyncio\nt = asyncio.create_task(tools.hang())\n"
        "await asyncio.sleep(0.02)\nwhile True:\n    pass"
    )
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(source, wall_seconds=20)
    assert "timeout" == outcome.failure.kind
    assert [True] == cleaned
    assert [("-start", "hang"), ("", "hang")] == dispatch_events(events)


@pytest.mark.parametrize("argument", ["{1, 2}", "float('nan')", "object()", "b'x'"])
async def test_arguments_that_are_not_json_take_no_number_and_leave_no_events(registry, argument):
    """Line 98."""
    events = []
    source = (
        f"try:\n    await tools.echo(value={argument})\nexcept ToolCallError as error:\n    print(error)\n"
        "return await tools.add(a=1, b=2)"
    )
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(source)
    assert 3 == outcome.result
    assert "arguments" in outcome.logs[0]
    assert [f"{outcome.run_id}:code:1"] == [call.id for call in outcome.calls]
    assert [("-start", "add"), ("", "add")] == dispatch_events(events)


async def test_a_tool_gets_frozen_arguments_that_the_log_does_not_share(registry):
    """Line 99."""
    events, refused = [], []

    @registry.tool
    async def greedy(items: list[int]) -> int:
        return len(items)

    async def meddle(call, proceed):
        if call.name == "greedy":
            with pytest.raises(TypeError, match="read-only") as error:
                call.arguments["items"].append(4)
            refused.append(error)
        return await proceed()

    registry.around(meddle)
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code("return await tools.greedy(items=[1, 2, 3])")
    assert (3, 1) == (outcome.result, len(refused))
    starts = [event["data"] for event in events if event["type"] == "tool/code-dispatch-start"]
    assert [{"items": [1, 2, 3]}] == [start["arguments"] for start in starts]


async def test_a_denied_call_rejects_with_the_reason_and_a_broken_policy_settles_it(registry):
    """Line 101."""
    judged = []

    async def decide(call, proceed):
        if call.name == "add":
            return Deny("no sums today")
        if call.name == "echo":
            raise RuntimeError("the policy broke")
        return await proceed()

    async def judge(call, result, proceed):
        judged.append(call.name)
        return await proceed()

    registry.on_pre_execute(decide)
    registry.on_post_execute(judge)
    source = (
        "texts = []\nfor call in (tools.add(a=1, b=2), tools.echo(value=1)):\n    try:\n        await call\n"
        "    except ToolCallError as error:\n        texts.append(str(error))\nreturn texts"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert ["no sums today", "the policy broke"] == outcome.result
    assert ["add", "run_code"] == judged
    assert [False, False] == [call.executed for call in outcome.calls]


async def test_contexts_of_nested_calls_reach_the_conversation_also_when_the_program_fails(registry):
    """Line 102."""
    events = []

    @registry.tool
    async def remember(note: str, context: ToolRunContext) -> None:
        context.defer_context(
            {"id": note, "role": "user", "content": [text_block(note)], "source": {"kind": "tool"}}
        )

    source = "await tools.remember(note='one')\nawait tools.remember(note='two')\nraise ValueError('boom')"
    async with open_service(registry, on_event=events.append) as service:
        await service.run_code(source)
    order = [event["type"] for event in events]
    messages = [event["data"]["id"] for event in events if event["type"] == "user/message"]
    assert ["one", "two"] == messages
    assert order.index("tool/result") < order.index("user/message")


async def test_a_picture_taken_out_by_post_execute_does_not_reach_the_conversation(registry):
    """Line 103."""
    events = []

    async def take_out(call, result, proceed):
        return Accept(content=[text_block("no picture")]) if call.name == "image" else await proceed()

    registry.on_post_execute(take_out)
    async with open_service(registry, on_event=events.append) as service:
        await service.run_code("await tools.image()")
    assert [] == [event for event in events if event["type"] == "user/message"]


@pytest.mark.parametrize(("end", "concludes"), [("return 1", True), ("raise ValueError('x')", False)])
async def test_a_nested_conclusion_is_forwarded_only_by_a_run_that_succeeds(registry, end, concludes):
    """Line 104."""
    seen = []

    @registry.tool
    async def finish(context: ToolRunContext) -> None:
        context.conclude_turn()

    registry.on_result(
        lambda call, result: (
            seen.append(getattr(result, "concludes_turn", False)) if call.name == "run_code" else None
        )
    )
    async with open_service(registry) as service:
        await service.run_code(f"await tools.finish()\n{end}")
    assert [concludes] == seen


async def test_nested_calls_add_nothing_to_the_messages_of_a_model(registry):
    """Line 107."""
    with SessionLog.in_memory() as log:
        async with open_service(registry, session_log=log) as service:
            await service.run_code("await tools.add(a=1, b=2)\nawait tools.echo(value='nested')\nreturn 3")
        messages = log.replay().messages
    assert ["assistant", "user"] == [message["role"] for message in messages]
    assert "nested" not in str(messages[1])


async def test_without_a_log_and_a_listener_everything_works_and_nothing_is_recorded(registry):
    """Line 108."""
    async with open_service(registry) as service:
        outcome = await service.run_code("return await tools.add(a=1, b=2)")
    assert (3, ["succeeded"]) == (outcome.result, [call.status for call in outcome.calls])


async def test_an_abort_that_comes_after_the_program_completed_still_aborts(registry):
    """Line 110."""
    signal = AbortSignal()

    async def too_late(call, result, proceed):
        if call.name == "run_code":
            signal.abort("too late")
        return await proceed()

    registry.on_post_execute(too_late)
    async with open_service(registry) as service:
        outcome = await service.run_code("return 1", abort=signal)
    assert ("abort", "tool call aborted") == (outcome.failure.kind, outcome.failure.message)
