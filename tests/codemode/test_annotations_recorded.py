"""What events, receipts and batch records say of annotations, and what programs never notice of them."""

from __future__ import annotations

import json

import pytest
from exported_calls import PARTIAL, exported_registry

from codemode import SessionLog, ToolCall, open_service
from tool_bindings.annotated import SCHEMA, ProjectionPolicy
from tool_bindings.results import ToolSuccess

SHOWN = {"schema": SCHEMA, "status": "failed", "error": {"code": "partial"}}


@pytest.fixture
def registry():
    return exported_registry()


def annotations(events, name):
    return [event["data"].get("tool_result_annotation") for event in events if event["type"] == name]


def correlated(shown, call_id, run_id, parent=None):
    correlation = {"toolCallId": call_id, "parentToolCallId": parent, "runId": run_id}
    return {**shown, "correlation": {name: value for name, value in correlation.items() if value is not None}}


async def test_events_of_nested_calls_carry_the_projection(registry):
    events = []
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code(
            "a = await tools.partial()\n"
            "try:\n    await tools.broken()\nexcept ToolCallError:\n    pass\n"
            "return [a, await tools.plain()]"
        )
    assert [{"done": 2}, 1] == outcome.result, "a program sees the values, whatever they are said to mean"
    run = outcome.run_id
    assert [
        correlated(SHOWN, f"{run}:code:1", run, run),
        correlated({"schema": SCHEMA, "status": "failed", "isError": True}, f"{run}:code:2", run, run),
        correlated({"schema": SCHEMA, "status": "succeeded", "isError": False}, f"{run}:code:3", run, run),
    ] == annotations(events, "tool/code-dispatch")
    assert [correlated({"schema": SCHEMA, "status": "succeeded", "isError": False}, run, run)] == annotations(
        events, "tool/result"
    )
    assert "secret detail" not in json.dumps(annotations(events, "tool/code-dispatch"))


async def test_a_receipt_says_what_a_result_says_of_itself_and_how_the_call_ended(registry):
    async with open_service(registry) as service:
        outcome = await service.run_code("await tools.partial()\nawait tools.plain()")
    partial, plain = [call.to_json() for call in outcome.calls]
    assert ("succeeded", correlated(SHOWN, partial["id"], outcome.run_id, outcome.run_id)) == (
        partial["status"],
        partial["annotation"],
    )
    assert "annotation" not in plain


async def test_a_value_that_a_policy_replaced_is_unknown_and_its_call_is_not(registry):
    events = []

    async def replace(_call, proceed):
        await proceed()
        return ToolSuccess(2, [])

    registry.around(replace)
    async with open_service(registry, on_event=events.append) as service:
        result = await service.call("plain", {})
        (record,) = await service.batch([ToolCall("plain", {}, "mine")])
    assert (2, 2, True) == (result.value, record.value, record.ok)
    assert ["unknown", "unknown"] == [shown["status"] for shown in annotations(events, "tool/result")]
    assert ("succeeded", "unknown") == (record.to_json()["status"], record.to_json()["annotation"]["status"])


async def test_batch_records_carry_the_projection_of_a_declared_annotation(registry):
    async with open_service(registry) as service:
        partial, plain = await service.batch([ToolCall("partial", {}, "p"), ToolCall("plain", {}, "q")])
    shown = partial.to_json()["annotation"]
    assert SHOWN == {name: item for name, item in shown.items() if name != "correlation"}
    assert "p" == shown["correlation"]["toolCallId"]
    assert "annotation" not in plain.to_json()


async def test_content_is_shown_only_when_asked_for(registry):
    events = []
    policy = ProjectionPolicy(keep=["status", "content"])
    async with open_service(registry, on_event=events.append, projection=policy) as service:
        await service.call("partial", {})
    assert [{"status": "failed", "content": PARTIAL["content"]}] == annotations(events, "tool/result")


async def test_a_failing_redactor_costs_the_fields_and_nothing_else(registry):
    events = []
    policy = ProjectionPolicy(redact=lambda shown: 1 / 0)
    async with open_service(registry, on_event=events.append, projection=policy) as service:
        outcome = await service.run_code("return await tools.partial()")
    assert {"done": 2} == outcome.result
    assert [None] == annotations(events, "tool/code-dispatch")
    assert "annotation" not in outcome.calls[0].to_json()


async def test_annotations_survive_in_a_session_log(registry, tmp_path):
    path = tmp_path / "session.jsonl"
    with SessionLog.open(path) as log:
        async with open_service(registry, session_log=log) as service:
            await service.run_code("await tools.partial()")
    with SessionLog.load(path) as log:
        recorded = annotations(log.events(), "tool/code-dispatch")
    assert ["failed"] == [shown["status"] for shown in recorded]
