"""The service with real workers: outcomes, events, receipts, stopping."""

from __future__ import annotations

import asyncio
import json

import corpus
import psutil
import pytest
import trio
import trio.testing

from codemode import ABSENT, AbortSignal, SessionLog, Settings, SettingsError, open_service
from codemode.errors import ServiceClosedError
from sandbox.supervisor import Sandbox
from tool_bindings import Accept, Ask, Block, Deny, Output, ToolDefinition, ToolRegistry, text_block
from tool_bindings.redaction import SecretMasker
from tool_bindings.spill import SpillStore


@pytest.fixture
def registry():
    return corpus.fixture_registry()


def types_of(events):
    return [event["type"] for event in events]


async def test_a_program_gets_canonical_values_and_leaves_rendered_content_only(registry):
    events = []
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code("r = await tools.read(path='notes.txt')\nreturn r['totalLines']")
    assert (5, True) == (outcome.result, outcome.ok)
    assert [
        "turn/start",
        "step/start",
        "assistant/message",
        "tool/call",
        "tool/code-dispatch-start",
        "tool/code-dispatch",
        "tool/result",
        "step/end",
        "turn/end",
    ] == types_of(events)
    (end,) = [event for event in events if event["type"] == "tool/code-dispatch"]
    assert (f"{outcome.run_id}:code:1", "read", False) == (
        end["data"]["subCallId"],
        end["data"]["name"],
        end["data"]["isError"],
    )
    assert "value" not in end["data"]


async def test_null_is_a_result_and_nothing_is_none(registry):
    async with open_service(registry) as service:
        null = await service.run_code("return None")
        nothing = await service.run_code("x = await tools.add(a=1, b=2)\nreturn")
    assert None is null.result
    assert ABSENT is nothing.result
    assert "null" == null.content[0]["text"]
    assert "(run_code completed with no output)" == nothing.content[0]["text"]


async def test_calls_start_in_the_order_the_program_made_them(registry):
    source = "import asyncio\nreturn await asyncio.gather(*[tools.add(a=i, b=0) for i in range(20)])"
    events = []
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(source)
    assert list(range(20)) == outcome.result
    starts = [event["data"] for event in events if event["type"] == "tool/code-dispatch-start"]
    assert [f"{outcome.run_id}:code:{number}" for number in range(1, 21)] == [
        start["subCallId"] for start in starts
    ]
    assert list(range(20)) == [start["arguments"]["a"] for start in starts]


async def test_a_failed_run_keeps_its_receipt_and_its_logs(registry):
    source = (
        "print('first')\nawait tools.add(a=1, b=2)\n"
        "await tools.fail(message='boom')\nawait tools.add(a=3, b=4)"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert ("exception", "ToolCallError", 3) == (
        outcome.failure.kind,
        outcome.failure.error_type,
        outcome.failure.line,
    )
    assert ["first"] == outcome.logs
    assert [("add", "succeeded", True, 2), ("fail", "failed", True, 3)] == [
        (call.tool, call.status, call.executed, call.line) for call in outcome.calls
    ]
    text = outcome.content[0]["text"]
    assert text.startswith("Error: code run failed (exception): ToolCallError: boom")
    assert "Captured output:\nfirst\n" in text
    assert text.endswith('do not repeat these calls):\n- add({"a":1,"b":2}) (line 2)')


async def test_an_abort_ends_the_run_stops_its_calls_and_keeps_the_logs(registry):
    started, stopped = trio.Event(), trio.Event()

    @registry.tool(concurrency_safe=True)
    async def hang() -> None:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            stopped.set()

    signal = AbortSignal()
    async with open_service(registry) as service, trio.open_nursery() as nursery:
        outcomes = []

        async def run():
            outcomes.append(await service.run_code("print('before')\nawait tools.hang()", abort=signal))

        nursery.start_soon(run)
        await started.wait()
        signal.abort("enough")
    assert stopped.is_set()
    (outcome,) = outcomes
    assert ("abort", "enough", ["before"]) == (outcome.failure.kind, outcome.failure.message, outcome.logs)
    assert ["failed"] == [call.status for call in outcome.calls]


async def test_an_abort_while_a_short_program_is_heard_keeps_what_it_printed(registry):
    signal = AbortSignal()
    async with open_service(registry) as service:
        outcome = await service.run_code(
            "print('heard')\nreturn 1", abort=signal, on_log=lambda _: signal.abort("enough")
        )
    assert ("abort", "enough", ["heard"]) == (outcome.failure.kind, outcome.failure.message, outcome.logs)


async def test_a_worker_is_roused_while_the_host_gets_a_run_ready(registry, monkeypatch):
    happened = []
    for name in ("rouse", "start", "hear"):
        method = getattr(Sandbox, name)

        def noting(*arguments, name=name, method=method, **options):
            happened.append(name)
            return method(*arguments, **options)

        monkeypatch.setattr(Sandbox, name, noting)
    async with open_service(registry) as service:
        while not service.statistics().parked:  # noqa: ASYNC110  # nobody tells us
            await trio.sleep(0.005)
        await service.run_code("return 1")
    assert ["rouse", "start", "hear"] == happened


async def test_stopping_by_run_id_is_an_abort(registry):
    run_ids = []

    @registry.tool
    async def stop_me() -> None:
        run_ids.extend(service._stops)
        service.stop(run_ids[0], "stopped by id")
        await trio.sleep_forever()

    async with open_service(registry) as service:
        outcome = await service.run_code("await tools.stop_me()")
        assert not service.stop(outcome.run_id)
    assert ("abort", "stopped by id") == (outcome.failure.kind, outcome.failure.message)


async def test_a_signal_that_fired_before_starts_nothing(registry):
    signal = AbortSignal()
    signal.abort("too late")
    async with open_service(registry) as service:
        outcome = await service.run_code("return 1", abort=signal)
        assert 0 == service.statistics().completed
    assert "abort" == outcome.failure.kind


async def test_cancelling_the_caller_kills_the_worker_and_settles_every_event(registry):
    events = []
    started = trio.Event()

    @registry.tool
    async def hang() -> None:
        started.set()
        await trio.sleep_forever()

    async with open_service(registry, on_event=events.append, settings=Settings(parked_workers=1)) as service:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.run_code, "await tools.hang()")
            await started.wait()
            nursery.cancel_scope.cancel()
        assert types_of(events)[-4:] == ["tool/code-dispatch", "tool/result", "step/end", "turn/end"]
        assert 0 == service.statistics().running
    assert [] == psutil.Process().children(recursive=True)


@pytest.mark.parametrize("parked", [0, 1])
async def test_a_cancellation_goes_on_when_what_it_ended_is_recorded(registry, parked):
    events, returned = [], []
    async with open_service(
        registry, on_event=events.append, settings=Settings(parked_workers=parked)
    ) as service:
        with trio.CancelScope() as scope:
            await service.run_code("print('said')\nwhile True: pass", on_log=lambda _: scope.cancel())
            returned.append(1)
    assert (True, []) == (scope.cancelled_caught, returned)
    (result,) = [event for event in events if event["type"] == "tool/result"]
    ((block,),) = [each["content"] for each in result["data"]["message"]["content"]]
    assert block["text"].startswith("Error: code run failed (abort): cancelled")
    assert "said" in block["text"]


async def test_closing_the_service_aborts_what_runs(registry):
    outcomes = []
    started = trio.Event()

    @registry.tool
    async def hang() -> None:
        started.set()
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        async with open_service(registry) as service:

            async def run():
                outcomes.append(await service.run_code("await tools.hang()"))

            nursery.start_soon(run)
            await started.wait()
        with pytest.raises(ServiceClosedError):
            await service.run_code("return 1")
    assert ("abort", "runtime disposed") == (outcomes[0].failure.kind, outcomes[0].failure.message)


async def test_a_run_may_tighten_a_limit_and_not_loosen_it(registry):
    async with open_service(registry, settings=Settings(wall_seconds=5)) as service:
        outcome = await service.run_code("while True: pass", wall_seconds=0.2)
        assert "timeout" == outcome.failure.kind
        assert "wall_seconds=0.2" in outcome.failure.message
        with pytest.raises(SettingsError, match="looser"):
            await service.run_code("return 1", wall_seconds=6)
        with pytest.raises(SettingsError, match="unknown limit"):
            await service.run_code("return 1", walls=1)


async def test_a_run_can_be_narrowed_to_some_tools(registry):
    async with open_service(registry) as service:
        outcome = await service.run_code("return await tools.search(query='x')", tools=["add"])
        assert "unknown tool 'search'" in outcome.failure.message
        with pytest.raises(SettingsError, match="unknown tool 'nope'"):
            await service.run_code("return 1", tools=["nope"])


async def test_a_policy_reads_the_program_before_it_runs(registry):
    async def refuse(call, proceed):
        if call.name == "run_code" and "secret" in call.arguments["code"]:
            return Deny("programs must not say secret")
        return await proceed()

    registry.on_pre_execute(refuse)
    async with open_service(registry) as service:
        denied = await service.run_code("return 'secret'")
        allowed = await service.run_code("return 'open'")
        assert 1 == service.statistics().completed
    assert ("policy", "programs must not say secret") == (denied.failure.kind, denied.failure.message)
    assert "open" == allowed.result


async def test_a_policy_replaces_or_blocks_what_a_run_gave(registry):
    async def judge(call, result, proceed):
        if call.name != "run_code" or result.is_error:
            return await proceed()
        if result.value["result"] == "block":
            return Block([text_block("not this")])
        return Accept(value={"logs": ["redacted"], "result": "***"})

    registry.on_post_execute(judge)
    async with open_service(registry) as service:
        replaced = await service.run_code("return 'token'")
        blocked = await service.run_code("return 'block'")
    assert (["redacted"], "***") == (replaced.logs, replaced.result)
    assert "redacted\n***" == replaced.content[0]["text"]
    assert ("policy", "not this") == (blocked.failure.kind, blocked.failure.message)
    assert ABSENT is blocked.result


async def test_programs_cannot_call_run_code(registry):
    async with open_service(registry) as service:
        outcome = await service.run_code("return await tools.run_code(code='return 1', description='x')")
    assert "unknown tool 'run_code'" in outcome.failure.message


async def test_a_tool_that_vanishes_during_a_run_is_unknown_to_the_program():
    registry = ToolRegistry()
    dispose = []

    @registry.tool
    async def drop() -> None:
        dispose[0]()

    scoped = ToolRegistry()

    @scoped.tool
    async def gone() -> int:
        return 1

    dispose.append(registry.register(scoped.get("gone")))
    async with open_service(registry) as service:
        outcome = await service.run_code("await tools.drop()\nreturn await tools.gone()")
    assert "gone" in outcome.failure.message
    assert "unknown tool" in outcome.failure.message


async def test_a_direct_call_goes_through_the_same_pipeline_and_log(registry):
    events, seen = [], []
    registry.on_result(lambda call, result: seen.append((call.provenance, call.name)))
    async with open_service(registry, on_event=events.append) as service:
        result = await service.call("add", {"a": 1, "b": 2})
        await service.run_code("await tools.add(a=3, b=4)")
    assert 3 == result.value
    assert [("direct", "add"), ("code", "add"), ("direct", "run_code")] == seen
    call = next(event for event in events if event["type"] == "tool/call")
    assert {"a": 1, "b": 2} == json.loads(call["data"]["arguments"])


async def test_many_runs_at_once_never_mix(registry):
    outcomes = {}
    settings = Settings(max_concurrent_runs=4)
    async with open_service(registry, settings=settings) as service, trio.open_nursery() as nursery:

        async def run(number):
            source = f"print({number})\nreturn await tools.echo(value={number})"
            outcomes[number] = await service.run_code(source)

        for number in range(40):
            nursery.start_soon(run, number)
    assert {number: ([str(number)], number) for number in range(40)} == {
        number: (outcome.logs, outcome.result) for number, outcome in outcomes.items()
    }


async def test_pictures_of_nested_calls_join_the_conversation_in_order(registry):
    events = []

    def picture(name):
        return Output(
            schema={"type": "string"}, render=lambda _arguments, value: [{"type": "image", "data": value}]
        )

    async def draw(arguments, _context):
        return arguments["name"]

    for name in ("first", "second"):
        registry.register(
            ToolDefinition(
                name=name,
                description="Draw.",
                parameters={"type": "object", "properties": {"name": {"type": "string"}}},
                output=picture(name),
                execute=draw,
                concurrency_safe=True,
            )
        )
    source = "a = await tools.second(name='2')\nb = await tools.first(name='1')\nraise ValueError(a + b)"
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(source)
    assert "ValueError: 21" == outcome.failure.message
    messages = [event["data"] for event in events if event["type"] == "user/message"]
    assert ["2", "1"] == [message["content"][0]["data"] for message in messages]
    assert {"kind": "plugin", "plugin": "tools-code-mode"} == messages[0]["source"]


async def test_a_program_finds_and_reads_about_tools(registry):
    source = (
        "import codemode as same\n"
        "found = await codemode.search('add integers', limit=3)\n"
        "text = await same.describe(found[0]['name'])\n"
        "return [found[0], 'async def add(' in text]"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
        unknown = await service.run_code("await codemode.describe('ad')")
    entry = {"name": "add", "signature": "add(*, a: int, b: int) -> int", "description": "Add two integers."}
    assert [entry, True] == outcome.result
    assert "did you mean one of: add" in unknown.failure.message


async def test_many_calls_of_a_program_leave_in_one_batch(registry):
    source = (
        "results = await codemode.batch([tools.add(a=1, b=2), ('add', {'a': 3, 'b': 4}),"
        " {'tool': 'fail', 'arguments': {'message': 'no'}}, ('add', {'a': 'x', 'b': 1})])\n"
        "return [str(r) if isinstance(r, ToolCallError) else r for r in results]"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
        wrong = await service.run_code("await codemode.batch([1])")
    assert [3, 7, "no"] == outcome.result[:3]
    assert "integer" in outcome.result[3]
    assert "item 0" in wrong.failure.message


async def test_progress_is_heard_awaited_or_not_and_printing_as_it_happens(registry):
    heard, printed = [], []
    source = (
        "print('a', end='')\ncodemode.progress(1, 2, 'half')\nawait codemode.progress(done=2)\nprint('b')"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(
            source, on_progress=lambda *said: heard.append(said), on_log=printed.append
        )
    assert [(1, 2, "half"), (2, None, None)] == heard
    assert ("ab\n", ["ab"], None) == ("".join(printed), outcome.logs, outcome.hint)


async def test_a_listener_shapes_what_the_log_keeps_and_not_what_the_program_gets(registry):
    """Spec facts 105 and 106; the log's copy only."""
    events = []

    async def mask(entry):
        if entry.name == "fail":
            raise RuntimeError("a broken listener")
        return [text_block("masked")] if entry.name == "echo" else None

    source = (
        "v = await tools.echo(value='secret')\n"
        "try:\n    await tools.fail(message='kept')\nexcept ToolCallError:\n    pass\n"
        "await tools.add(a=1, b=2)\nreturn v"
    )
    async with open_service(registry, on_event=events.append) as service:
        remove = service.on_dispatch_log(mask)
        outcome = await service.run_code(source)
        remove()
    assert "secret" == outcome.result
    ends = [event["data"] for event in events if event["type"] == "tool/code-dispatch"]
    assert {"echo": "masked", "fail": "Error: kept", "add": "3"} == {
        end["name"]: end["content"][0]["text"] for end in ends
    }


async def test_a_slow_log_listener_delays_calls_only_when_too_many_wait(registry):
    """Spec fact 106."""
    release = trio.Event()
    settled = []

    async def slow(entry):
        await release.wait()

    @registry.tool
    async def note(n: int) -> int:
        settled.append(n)
        if n == 2:
            release.set()
        return n

    source = "for n in range(4):\n    await tools.note(n=n)"
    async with open_service(registry, settings=Settings(max_parallel_sub_calls=2)) as service:
        service.on_dispatch_log(slow)
        outcome = await service.run_code(source)
    assert outcome.ok
    assert [0, 1, 2, 3] == settled


async def test_a_long_result_is_shown_in_part_and_kept_whole(registry, tmp_path):
    """Spec fact 154: the value stays whole, the shown text and the log's copy do not."""
    store = SpillStore(tmp_path / "spill")
    source = "big = await tools.big(n=2000)\nreturn [row['text'] for row in big['rows']]"
    with SessionLog.open(tmp_path / "events.jsonl") as log:
        async with open_service(
            registry, session_log=log, spill=store, settings=Settings(max_inline_bytes=1000)
        ) as service:
            outcome = await service.run_code(source)
        shown = outcome.content[0]["text"]
        (locator,) = [word.rstrip(".") for word in shown.split() if word.startswith("spill:")]
        assert "row 1999" in store.find(log.id, locator).read_text()
    assert 2000 == len(outcome.result)
    assert len(shown.encode()) <= 1000
    assert len((tmp_path / "events.jsonl").read_bytes()) < 10_000


async def test_the_wall_clock_stands_while_a_person_is_asked(registry, movable_clock):
    class SlowPerson:
        async def request(self, _request):
            movable_clock.jump(25)
            # The deadline would be heard of before the answer.
            await trio.testing.wait_all_tasks_blocked()
            return "allowed-once"

    async def ask(call, proceed):
        return Ask("may it?") if call.name == "add" else await proceed()

    registry.on_pre_execute(ask)
    registry.approval_provider = SlowPerson()
    with SessionLog.in_memory() as log:
        async with open_service(registry, session_log=log) as service:
            patient = await service.run_code("return await tools.add(a=1, b=2)", wall_seconds=20)
            impatient = await service.run_code("await tools.slow(ms=600_000)", wall_seconds=0.2)
    assert 3 == patient.result
    assert "timeout" == impatient.failure.kind


async def test_configured_secrets_are_hidden_everywhere_but_in_the_result(registry):
    events = []
    secret = "hunter2-token"
    source = (
        f"print('the {secret}')\nv = await tools.echo(value='{secret}')\n"
        f"try:\n    await tools.fail(message='{secret}')\nexcept ToolCallError:\n    pass\n"
        "if v == 'x':\n    raise ValueError(v)\nreturn v"
    )
    async with open_service(registry, on_event=events.append, masker=SecretMasker([secret])) as service:
        outcome = await service.run_code(source)
        failed = await service.run_code(f"raise ValueError('{secret}')")
    assert secret == outcome.result
    assert ["the [secret]"] == outcome.logs
    assert "ValueError: [secret]" == failed.failure.message
    hidden = [event["data"] for event in events]
    hidden += [outcome.content, failed.content, [call.to_json() for call in outcome.calls]]
    assert secret not in json.dumps(hidden)
    assert "[secret]" in json.dumps(hidden)


async def test_a_declared_timeout_is_kept(registry):
    @registry.tool(timeout_seconds=0.05)
    async def dawdle() -> None:
        await trio.sleep_forever()

    async with open_service(registry) as service:
        outcome = await service.run_code("await tools.dawdle()")
    assert "tool call timed out after 50ms" in outcome.failure.message
    assert ["TOOL_TIMEOUT"] == [call.error_code for call in outcome.calls]


def test_under_asyncio_the_error_says_how_to_start_trio(registry):
    async def main():
        async with open_service(registry):
            pytest.fail("the body must not run")

    with pytest.raises(SettingsError, match=r"needs trio: .* trio\.run\(main\)"):
        asyncio.run(main())


@pytest.mark.parametrize("source", ["return 1", "print('a')", "return await tools.add(a=1, b=2)"])
async def test_nothing_is_run_for_a_caller_that_is_cancelled_already(source):
    registry = ToolRegistry()
    ran = []

    @registry.tool(concurrency_safe=True)
    async def add(a: int, b: int) -> int:
        """Add."""
        ran.append(a)
        return a + b

    for _ in range(5):
        # One that was just opened has a worker parked, and so a short program would be over within a moment.
        async with open_service(registry) as service:
            with trio.move_on_after(0) as scope:
                await service.run_code(source)
            assert scope.cancelled_caught
            assert 3 == (await service.run_code("return 3")).result
    assert [] == ran
