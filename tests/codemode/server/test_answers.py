"""Runs and tool results as a client gets them: within bounds, and the same in text and structure."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from codemode.outcome import RunOutcome
from codemode.receipts import CallRecord
from codemode.server.answers import RUN_OUTPUT, advertised_output, run_answer, tool_answer
from sandbox.vocabulary import ABSENT, Failure, TraceFrame
from tool_bindings import Output, ToolDefinition, ToolSuccess


def outcome(result=ABSENT, failure=None, calls=(), logs=(), hint=None):
    return RunOutcome("run-1", list(logs), result, failure, list(calls), [], ("language",), 1.0, hint)


def define(schema, name="t", parameters=None, description=""):
    async def body(_arguments, _context):
        return None

    return ToolDefinition(name, description, parameters or {"type": "object"}, Output(schema), body)


def texts(answer):
    return "\n".join(block["text"] for block in answer["content"])


@pytest.mark.parametrize("result", [ABSENT, None, 0, "text", [1, {"a": None}]])
def test_every_result_fits_the_advertised_schema(result):
    answer = run_answer(outcome(result, logs=["line"], hint="await it"))
    Draft202012Validator(RUN_OUTPUT).validate(answer["structuredContent"])
    assert (result is not ABSENT) == ("result" in answer["structuredContent"])
    assert "line" in texts(answer)
    assert "Hint: await it" in texts(answer)


def test_a_failure_with_everything_fits_the_advertised_schema():
    failure = Failure("exception", "E: x", "E", 3, "try this", (TraceFrame(3, "f", "x()"),))
    answer = run_answer(outcome(failure=failure, logs=["line"]))
    Draft202012Validator(RUN_OUTPUT).validate(answer["structuredContent"])
    assert answer["isError"] is True
    for fact in ("E: x", "line 3, in f: x()", "try this", "line"):
        assert fact in texts(answer)


def test_a_long_receipt_is_cut_in_the_middle_and_says_so():
    calls = [CallRecord(f"c{n}", "t", {"n": n}, "succeeded", True) for n in range(500)]
    answer = run_answer(outcome(1, calls=calls))
    shown = answer["structuredContent"]["calls"]
    assert ["c0", "c49", "c450", "c499"] == [shown[index]["id"] for index in (0, 49, 50, 99)]
    assert 400 == answer["_meta"]["dev.codemode/run"]["callsOmitted"]
    assert "... 400 more ..." in texts(answer)
    Draft202012Validator(RUN_OUTPUT).validate(answer["structuredContent"])


def test_a_value_that_is_no_object_stands_under_result():
    definition = define({"type": "array", "items": {"type": "integer"}})
    answer = tool_answer(definition, ToolSuccess([1, 2], [{"type": "text", "text": "1 2"}]))
    assert {"result": [1, 2]} == answer["structuredContent"]
    Draft202012Validator(advertised_output(definition)).validate(answer["structuredContent"])


def test_a_schema_with_references_is_not_moved():
    assert advertised_output(define({"$defs": {"A": {"type": "string"}}, "$ref": "#/$defs/A"})) is None


def test_a_value_too_large_for_a_direct_call_names_the_way_out():
    answer = tool_answer(define({}), ToolSuccess("x" * 2_000_000, []))
    assert answer["isError"] is True
    assert "2000002 bytes of JSON; a direct call gives at most 1048576: call the tool from run_code" in texts(
        answer
    )


def test_blocks_mcp_does_not_know_are_named_in_a_text():
    blocks = [
        {"type": "image", "data": "AAAA", "mimeType": "image/png", "x": 1},
        {"type": "image", "attachment": {"id": 1}},
    ]
    answer = tool_answer(define({}), ToolSuccess(1, blocks))
    assert [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "text", "text": "[image content]"},
    ] == answer["content"]
