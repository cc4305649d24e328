"""Spans of calls: the tree, the statuses, and what a broken exporter may not do."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
from collections import Counter

import pytest
import trio
from exported_calls import PARTIAL, exported_registry, scripted_run
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from codemode import open_service
from codemode.exporters import otel_exporter
from codemode.exporters.calls import watch_calls
from tool_bindings import AbortSignal, Deny, Output, ToolDefinition
from tool_bindings.annotated import SCHEMA, ProjectionPolicy

RUNS = 50


@pytest.fixture
def registry():
    return exported_registry()


@pytest.fixture
def memory():
    return InMemorySpanExporter()


@pytest.fixture
def provider(memory):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    yield provider
    provider.shutdown()


def by_call(memory):
    return {span.attributes["gen_ai.tool.call.id"]: span for span in memory.get_finished_spans()}


def parent_of(span):
    return None if span.parent is None else span.parent.span_id


async def test_a_span_says_what_the_conventions_ask_and_no_payload(registry, provider, memory):
    with otel_exporter(registry, tracer_provider=provider):
        await registry.dispatch("broken", {"password": "secret detail"}, call_id="c")
    (span,) = memory.get_finished_spans()
    assert "execute_tool broken" == span.name
    assert trace.SpanKind.INTERNAL == span.kind
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "broken",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c",
        "error.type": "_OTHER",
    } == dict(span.attributes)
    assert "secret" not in span.to_json()


@pytest.mark.parametrize(
    ("name", "status", "error_type"),
    [
        ("plain", StatusCode.OK, None),
        ("broken", StatusCode.ERROR, "_OTHER"),
        ("partial", StatusCode.ERROR, "partial"),
        ("foreign", StatusCode.UNSET, None),
        ("nowhere", StatusCode.ERROR, "UNKNOWN_TOOL"),
    ],
)
async def test_the_status_is_that_of_the_annotation(registry, provider, memory, name, status, error_type):
    with otel_exporter(registry, tracer_provider=provider):
        await registry.dispatch(name, {})
    (span,) = memory.get_finished_spans()
    assert (status, error_type) == (span.status.status_code, span.attributes.get("error.type"))


async def test_calls_that_never_reach_a_body_have_spans_too(registry, provider, memory):
    aborted = AbortSignal()
    aborted.abort()
    with otel_exporter(registry, tracer_provider=provider) as watch:
        registry.on_pre_execute(lambda call, proceed: Deny("no") if call.name == "plain" else proceed())
        await registry.dispatch("plain", {}, call_id="denied")
        await registry.dispatch("partial", {}, call_id="aborted", abort=aborted)
        assert 0 == watch.open_calls
    spans = by_call(memory)
    assert {"denied", "aborted"} == set(spans)
    assert "ABORTED_BEFORE_DISPATCH" == spans["aborted"].attributes["error.type"]


@pytest.mark.parametrize("kind", ["on_pre_execute", "around"])
async def test_a_call_that_a_policy_fails_has_one_span_of_status_error(registry, provider, memory, kind):
    def failing(_call, _proceed):
        raise RuntimeError("secret detail")

    with otel_exporter(registry, tracer_provider=provider):
        getattr(registry, kind)(failing)
        await registry.dispatch("plain", {})
    (span,) = memory.get_finished_spans()
    assert StatusCode.ERROR == span.status.status_code


async def test_attributes_of_the_annotation_are_opt_in_and_follow_the_policy(registry, provider, memory):
    policy = ProjectionPolicy(keep=("status", "content", "error.message"), redact=_without_secrets)
    for attributes in (True, policy):
        with otel_exporter(registry, tracer_provider=provider, attributes=attributes):
            await registry.dispatch("partial", {}, call_id="c")
    by_default, chosen = (
        {name: value for name, value in span.attributes.items() if name.startswith("codemode.")}
        for span in memory.get_finished_spans()
    )
    assert {
        "codemode.annotation.schema": SCHEMA,
        "codemode.annotation.status": "failed",
        "codemode.annotation.error.code": "partial",
        "codemode.annotation.correlation.toolCallId": "c",
    } == by_default
    assert {
        "codemode.annotation.status": "failed",
        "codemode.annotation.content": '[{"type":"text","text":"*** detail"}]',
        "codemode.annotation.error.message": "*** detail",
    } == chosen


def _without_secrets(shown):
    return json.loads(json.dumps(shown).replace("secret", "***"))


async def test_a_failing_redactor_hides_everything_but_the_status(registry, provider, memory):
    policy = ProjectionPolicy(redact=lambda shown: shown["not there"])
    with otel_exporter(registry, tracer_provider=provider, attributes=policy):
        result = await registry.dispatch("partial", {})
    (span,) = memory.get_finished_spans()
    assert {"done": 2} == result.value
    assert (StatusCode.ERROR, "_OTHER") == (span.status.status_code, span.attributes["error.type"])
    assert not [name for name in span.attributes if name.startswith("codemode.")]


async def test_attributes_are_bounded_and_of_types_that_attributes_have(registry, provider, memory):
    members = {
        "text": "x" * 100_000,
        "many": {f"n{n}": n for n in range(500)},
        "mixed": [2**70, 2.5, True, None],
    }

    async def large(_arguments, context):
        mixed = dict(zip("abcd", members["mixed"], strict=True))
        context.annotate({**PARTIAL, **members, "mixed": mixed})
        return 1

    registry.register(ToolDefinition("large", "A tool.", {"type": "object"}, Output({}), large))
    shown = []
    for name in members:
        with otel_exporter(registry, tracer_provider=provider, attributes=ProjectionPolicy(keep=[name])):
            await registry.dispatch("large", {})
        span = memory.get_finished_spans()[-1]
        shown.append([value for key, value in span.attributes.items() if key.startswith("codemode.")])
    text, many, mixed = shown
    assert [4_096] == [len(value) for value in text]
    assert list(range(64)) == many
    assert ["1180591620717411303424", 2.5, True, "null"] == mixed


async def test_calls_of_a_real_run_are_children_of_its_span(registry, provider, memory):
    async with open_service(registry) as service:
        with otel_exporter(registry, tracer_provider=provider) as watch:
            with provider.get_tracer("application").start_as_current_span("turn") as turn:
                outcome = await service.run_code(
                    "import asyncio\n"
                    "await asyncio.gather(tools.plain(), tools.foreign(), tools.partial())\n"
                    "await tools.broken()"
                )
            assert (False, 0) == (outcome.ok, watch.open_calls)
    spans = {span.name: span for span in memory.get_finished_spans()}
    run = spans["execute_tool run_code"]
    assert turn.get_span_context().span_id == parent_of(run)
    assert outcome.run_id == run.attributes["gen_ai.tool.call.id"]
    assert (StatusCode.ERROR, "CODE_RUN_FAILED") == (run.status.status_code, run.attributes["error.type"])
    nested = {f"execute_tool {call.tool}": call for call in outcome.calls}
    assert {"turn", "execute_tool run_code", *nested} == set(spans)
    assert 4 == len(nested)
    for name, call in nested.items():
        assert run.context.span_id == parent_of(spans[name])
        assert call.id == spans[name].attributes["gen_ai.tool.call.id"]


async def test_fifty_runs_at_a_time_have_the_right_parents(registry, provider, memory):
    nested = ("plain", "broken", "foreign", "partial")
    with otel_exporter(registry, tracer_provider=provider):
        async with trio.open_nursery() as nursery:
            for number in range(RUNS):
                nursery.start_soon(scripted_run, registry, number, nested)
    spans = by_call(memory)
    assert RUNS * 5 == len(spans)
    for call_id, span in spans.items():
        run, _, inner = call_id.partition(":")
        expected = spans[run].context.span_id if inner else None
        assert expected == parent_of(span)
        assert spans[run].context.trace_id == span.context.trace_id
    assert RUNS == len({span.context.trace_id for span in spans.values()})
    assert {StatusCode.OK: 2 * RUNS, StatusCode.ERROR: 2 * RUNS, StatusCode.UNSET: RUNS} == Counter(
        span.status.status_code for span in spans.values()
    )


async def test_the_span_is_current_while_the_body_runs(registry, provider, memory):
    async def instrumented(_arguments, _context):
        with provider.get_tracer("library").start_as_current_span("query"):
            return 1

    registry.register(ToolDefinition("instrumented", "A tool.", {"type": "object"}, Output({}), instrumented))
    with otel_exporter(registry, tracer_provider=provider):
        await registry.dispatch("instrumented", {})
        assert trace.INVALID_SPAN is trace.get_current_span()
    query, call = memory.get_finished_spans()
    assert ("query", call.context.span_id) == (query.name, parent_of(query))


async def test_a_cancelled_call_leaves_a_span_of_unset_status(registry, provider, memory, autojump_clock):
    with otel_exporter(registry, tracer_provider=provider) as watch:
        with trio.move_on_after(1):
            await registry.dispatch("wait", {})
        assert 0 == watch.open_calls
    (span,) = memory.get_finished_spans()
    assert StatusCode.UNSET == span.status.status_code


async def test_leaving_the_block_closes_what_is_open_and_watches_no_more(registry, provider, memory):
    with otel_exporter(registry, tracer_provider=provider):
        call = registry.begin("plain", {})
        await call.prepare()
    await call.execute()
    assert 1 == (await call.finish()).value
    await registry.dispatch("plain", {})
    (span,) = memory.get_finished_spans()
    assert StatusCode.UNSET == span.status.status_code
    assert ((), (), ()) == tuple(
        getattr(registry.policies(None), kind) for kind in ("pre", "post", "observers")
    )


class Broken:
    """An exporter all of whose methods raise, but those named."""

    def __init__(self, *working):
        self.working = working

    def begin(self, call, parent):
        return self._do("begin")

    def within(self, span):
        return self._do("within", contextlib.nullcontext())

    def end(self, span, call, result):
        self._do("end")

    def give_up(self, span):
        self._do("give_up")

    def _do(self, name, answer="span"):
        if name not in self.working:
            raise RuntimeError("secret detail")
        return answer


class Stuck(contextlib.AbstractContextManager):
    def __exit__(self, *_):
        raise RuntimeError("cannot be left")


@pytest.mark.parametrize("working", [(), ("begin",), ("begin", "within"), ("begin", "end")])
async def test_a_broken_exporter_changes_no_result_and_is_logged_once(registry, working, caplog):
    with watch_calls(registry, "broken", Broken(*working)) as watch:
        for _ in range(3):
            assert 1 == (await registry.dispatch("plain", {})).value
            assert "secret detail" == (await registry.dispatch("broken", {})).error.message
    assert watch.failures >= 6
    (record,) = caplog.records
    assert logging.WARNING == record.levelno
    assert "secret" not in record.getMessage()


async def test_a_surrounding_that_cannot_be_left_changes_no_result(registry):
    writer = Broken("begin", "end")
    writer.within = lambda _span: Stuck()
    with watch_calls(registry, "stuck", writer) as watch:
        assert 1 == (await registry.dispatch("plain", {})).value
    assert 1 == watch.failures


async def test_an_sdk_whose_exporter_raises_changes_no_result(registry):
    class Failing(SpanExporter):
        def export(self, spans):
            raise OSError("collector is down")

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Failing()))
    with otel_exporter(registry, tracer_provider=provider):
        assert 1 == (await registry.dispatch("plain", {})).value


async def test_more_open_calls_than_the_bound_close_the_oldest(registry):
    closed = []
    writer = Broken("begin", "within", "end", "give_up")
    writer.begin = lambda call, _parent: call.call_id
    writer.give_up = closed.append
    with watch_calls(registry, "bounded", writer, max_open=2) as watch:
        for call_id in ("a", "b", "c"):
            await registry.begin("plain", {}, call_id=call_id).prepare()
        assert (["a"], 2) == (closed, watch.open_calls)
    assert ["a", "c", "b"] == closed


async def test_calls_inside_one_that_was_left_out_are_left_out(registry):
    begun = []
    writer = Broken("within", "end", "give_up")

    def begin(call, _parent):
        begun.append(call.call_id)
        return None if call.call_id == "run-0" else "span"

    writer.begin = begin
    with watch_calls(registry, "choosy", writer):
        await scripted_run(registry, 0, ["plain"])
        await scripted_run(registry, 1, ["plain"])
    assert ["run-0", "run-1", "run-1:code:0"] == begun


async def test_without_the_library_calls_go_on_and_a_warning_says_what_to_install(
    registry, caplog, monkeypatch
):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with otel_exporter(registry) as watch:
        assert 1 == (await registry.dispatch("plain", {})).value
    assert None is watch
    assert "pip install 'codemode[otel]'" in caplog.text


def test_naming_the_exporters_imports_neither_library():
    program = (
        "import sys, codemode.exporters; print(sorted({'opentelemetry', 'nemo_relay'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ("[]\n", "") == (done.stdout, done.stderr)
