"""The two events of nested calls: what is joined from pieces says what is built and encoded as a whole."""

from __future__ import annotations

import pytest
from exported_calls import PARTIAL

from codemode import SessionLog
from codemode.dispatch_events import DispatchEvents
from codemode.events import EventSink
from tool_bindings import Output, ToolDefinition, ToolRegistry
from tool_bindings.annotated import ProjectionPolicy

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
OUTER_IDS = ["run-1", 'quoted "and\\ slashed', "späte Übung \u2028"]
POLICIES = [
    ProjectionPolicy(),
    ProjectionPolicy(keep=["status"]),
    ProjectionPolicy(keep=["status", "content"]),
    ProjectionPolicy(keep=[]),
]


def registry_of_all_kinds():
    registry = ToolRegistry()

    def tool(name, value, blocks=None, data_schema=None, annotation=None):
        async def execute(arguments, context):
            if annotation is not None:
                context.annotate(annotation)
            if isinstance(value, Exception):
                raise value
            return value

        registry.register(
            ToolDefinition(
                name=name,
                description="Give what it is made for.",
                parameters={"type": "object", "additionalProperties": True},
                output=Output(
                    schema={},
                    render=None if blocks is None else lambda _arguments, _value: blocks,
                    data_schema=data_schema,
                ),
                execute=execute,
            )
        )

    tool("number", 5)
    tool("text", 'tabs\t, "quotes", é and \ud800')
    tool("rows", [{"a": 1}, {"a": None}])
    tool("described", 1, data_schema={"name": "count", "version": "1"})
    tool("failing", ValueError("no such thing"))
    tool("partial", {"done": 2}, annotation=PARTIAL)
    tool("nothing", None, blocks=[])
    tool("picture", 1, blocks=[PICTURE])
    tool("two", 1, blocks=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    tool("turned", 1, blocks=[{"text": "keys the other way round", "type": "text"}])
    tool("marked", 1, blocks=[{"type": "text", "text": "a", "annotations": {"audience": ["user"]}}])
    tool("odd", 1, blocks=[{"type": "resource", "text": "not a text block"}])
    tool('name "quoted"', 1)
    return registry


async def recorded(log, outer_id, policy):
    """Record two calls of every tool, so that what is remembered of the first serves the second."""
    registry = registry_of_all_kinds()
    sink = EventSink(log, None, None, policy)
    events = DispatchEvents(sink, outer_id)
    turn = log.next_turn
    log.append("turn/start", {"turn": turn})
    log.append("step/start", {"turn": turn, "step": 0})
    log.append(
        "tool/call",
        {"turn": turn, "step": 0, "callId": outer_id, "name": "run_code", "arguments": "{}"},
    )
    numbers = iter(range(1, 1000))
    for name in 2 * registry.names():
        sub_id = f"{outer_id}:code:{next(numbers)}"
        arguments = {"text": 'a "b"', "deep": [{"x": [1.5, None, True]}], "id": sub_id}
        started = events.started(sub_id, name, arguments)
        dispatch = registry.begin(
            name, arguments, call_id=sub_id, root_call_id=outer_id, parent_call_id=outer_id, run_id="run-1"
        )
        await dispatch.prepare()
        await dispatch.execute()
        events.ended(started, sub_id, name, arguments, dispatch, await dispatch.finish())
    return [event["data"] for event in log.events() if event["type"].startswith("tool/code-dispatch")]


@pytest.mark.parametrize("outer_id", OUTER_IDS)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: "+".join(policy.keep) or "nothing")
async def test_events_written_as_text_are_those_built_as_values(tmp_path, outer_id, policy):
    expected = await recorded(SessionLog.in_memory(), outer_id, policy)
    with SessionLog.open(tmp_path / "events.jsonl") as log:
        assert log.only_writes
        assert expected == await recorded(log, outer_id, policy)
        assert [list(each) for each in expected] == [
            list(event["data"]) for event in log.events() if "subCallId" in event["data"]
        ], "members come in the same order"


async def test_a_log_that_somebody_observes_tells_of_every_event(tmp_path):
    seen = []
    with SessionLog.open(tmp_path / "events.jsonl") as log:
        remove = log.subscribe(seen.append)
        assert not log.only_writes
        told = await recorded(log, "run-1", ProjectionPolicy())
        remove()
        assert log.only_writes
    assert told == [event["data"] for event in seen if event["type"].startswith("tool/code-dispatch")]
