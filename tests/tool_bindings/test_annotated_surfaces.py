"""Annotations on their way through the pipeline: bodies, listeners of every stage, observers, MCP."""

import dataclasses

import pytest

from sandbox.values import encode
from tool_bindings import Output
from tool_bindings.annotated import (
    FOREIGN_BLOCK,
    MISSING,
    SCHEMA,
    AnnotatedToolResult,
    ProjectionPolicy,
    annotation_of,
    apply_boundary,
    dispatches,
    from_mcp,
    observed,
    record_of,
    same_json,
    to_mcp,
)
from tool_bindings.content import text_block
from tool_bindings.errors import DefinitionError, HarnessError
from tool_bindings.policy import Accept, Block, Deny
from tool_bindings.results import ToolErrorRecord, ToolFailure, ToolSuccess


@pytest.fixture
def seen(registry):
    """Collect the records that an observer can make; each must be a sound one."""
    records = []

    def observe(call, result):
        record = record_of(call, result)
        assert same_json(record, apply_boundary(record, "reject"))
        records.append(record)

    registry.on_result(observe)
    return records


@pytest.fixture
def call(registry, define):
    """Register the echo tool, or a variant, and call it with `x`."""

    async def call(x=None, **options):
        registry.register(define(**options))
        return await registry.dispatch("echo", {"x": x}, call_id="call_9", run_id="run_1")

    return call


def annotation_with(**members):
    return {"schema": SCHEMA, "content": [], "raw": {"relation": "adjacent"}, **members}


def annotating(value, **members):
    """Make a body that annotates its result, then returns a value or raises an exception."""

    async def body(_arguments, context):
        context.annotate(annotation_with(**members))
        if isinstance(value, Exception):
            raise value
        return value

    return body


def returning(value):
    """Make an around listener that runs the body and returns another success."""

    async def listener(_call, proceed):
        await proceed()
        return ToolSuccess(value, [])

    return listener


# --- what counts as evidence --------------------------------------------------------------------------


async def test_a_declared_tool_that_returns_has_succeeded(call, seen):
    result = await call({"n": 1})
    assert [
        {
            "result": {"n": 1},
            "annotation": {
                "schema": SCHEMA,
                "status": "succeeded",
                "isError": False,
                "content": list(result.content),
                "structuredContent": {"n": 1},
                "correlation": {"toolCallId": "call_9", "runId": "run_1"},
                "raw": {"relation": "structuredContent"},
            },
        }
    ] == seen
    assert result.annotation is None


async def test_a_nested_call_names_its_parent(registry, define, seen):
    registry.register(define())
    await registry.dispatch("echo", {}, call_id="b", root_call_id="a", parent_call_id="a")
    assert {"toolCallId": "b", "parentToolCallId": "a"} == seen[0]["annotation"]["correlation"]


async def test_a_body_that_raises_has_failed(call, seen):
    async def body(_arguments, _context):
        raise HarnessError("gone", "FS_NOT_FOUND")

    await call(execute=body)
    assert seen[0]["result"] is None
    annotation = seen[0]["annotation"]
    assert ("failed", True, [text_block("Error: gone")]) == (
        annotation["status"],
        annotation["isError"],
        annotation["content"],
    )
    assert {"message": "gone", "name": "HarnessError", "code": "FS_NOT_FOUND"} == annotation["error"]


async def test_calls_that_never_reach_a_body_have_failed(registry, define, seen):
    registry.register(define(parameters={"type": "object", "properties": {"x": {"type": "string"}}}))
    await registry.dispatch("echo", {"x": 1})
    await registry.dispatch("nobody", {})
    registry.on_pre_execute(lambda _call, _proceed: Deny("not today"))
    await registry.dispatch("echo", {"x": "1"})
    assert [("failed", "INVALID_ARGS"), ("failed", "UNKNOWN_TOOL"), ("failed", None)] == [
        (record["annotation"]["status"], record["annotation"]["error"].get("code")) for record in seen
    ]


async def test_the_declared_schema_identifier_is_in_the_annotation(registry, define, seen):
    identifier = {"name": "acme.rows", "version": "7", "dialect": "x"}
    registry.register(dataclasses.replace(define(), output=Output({}, data_schema=identifier)))
    await registry.dispatch("echo", {"x": 1})
    assert identifier == seen[0]["annotation"]["dataSchema"]


@pytest.mark.parametrize("identifier", ["", 5, {}, {"name": ""}, {"name": {1}}])
def test_a_bad_schema_identifier_is_refused_when_it_is_declared(identifier):
    with pytest.raises(DefinitionError, match="data_schema"):
        Output({}, data_schema=identifier)


@pytest.mark.parametrize(
    "value",
    [
        annotation_with(status="failed"),
        encode(annotation_with(status="failed")).decode("ascii"),
        {"result": 1, "annotation": annotation_with(status="failed")},
        {"content": [], "isError": True},
    ],
    ids=["envelope", "envelope as text", "record", "MCP result"],
)
async def test_a_value_that_looks_like_an_envelope_is_a_value(call, seen, value):
    result = await call(value)
    assert value == result.value
    assert ("succeeded", value) == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["structuredContent"],
    )


# --- what a body declares -----------------------------------------------------------------------------


async def test_a_body_may_say_that_it_failed_and_still_return_a_value(call, seen):
    """What the application sees does not change: the call returned, so it is a success with a value."""
    body = annotating([1, 2], status="failed", error={"message": "2 of 3 rows"}, vendor=1)
    result = await call(execute=body)
    assert (False, [1, 2]) == (result.is_error, result.value)
    annotation = seen[0]["annotation"]
    assert ("failed", {"message": "2 of 3 rows"}, 1) == (
        annotation["status"],
        annotation["error"],
        annotation["vendor"],
    )
    assert {"toolCallId": "call_9", "runId": "run_1"} == annotation["correlation"]


async def test_what_a_body_says_about_its_identifiers_wins(call, seen):
    await call(execute=annotating(None, status="unknown", correlation={"toolCallId": "mine", "x": 1}))
    assert {"toolCallId": "mine", "runId": "run_1", "x": 1} == seen[0]["annotation"]["correlation"]


async def test_a_malformed_annotation_is_its_producers_error(call, seen):
    result = await call(execute=annotating(1, status="ok"))
    assert ("AnnotationError", "invalid_status") == (result.error.info.name, result.error.info.code)
    assert "failed" == seen[0]["annotation"]["status"]


async def test_an_annotation_of_another_value_than_the_returned_one_is_invalid_output(call):
    raw = {"relation": "structuredContent"}
    result = await call(execute=annotating(1.0, status="succeeded", structuredContent=1, raw=raw))
    assert "INVALID_TOOL_OUTPUT" == result.error.info.code


async def test_contexts_of_a_call_with_a_wrong_annotation_are_kept(call):
    async def body(_arguments, context):
        context.annotate(annotation_with(status="unknown", raw={"relation": "inline", "value": 1}))
        context.defer_context({"role": "user"})
        return 2

    result = await call(execute=body)
    assert (True, [{"role": "user"}]) == (result.is_error, list(result.additional_contexts))


async def test_what_is_raised_is_stronger_than_what_was_annotated(call, seen):
    await call(execute=annotating(ValueError("boom"), status="succeeded"))
    assert ("failed", {"message": "boom"}) == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["error"],
    )


async def test_a_body_that_raises_may_say_more_about_its_failure(call, seen):
    result = await call(execute=annotating(ValueError("boom"), status="failed", vendor={"retry": 3}))
    assert "boom" == result.error.message
    assert {"retry": 3} == seen[0]["annotation"]["vendor"]


async def test_a_plain_function_in_a_thread_may_annotate(call, seen):
    def body(_arguments, context):
        context.annotate(AnnotatedToolResult.from_json(annotation_with(status="unknown")))
        return 1

    await call(execute=body)
    assert "unknown" == seen[0]["annotation"]["status"]


# --- around listeners ---------------------------------------------------------------------------------


async def test_a_listener_reads_the_annotation_of_what_it_wraps(registry, call):
    read = []

    async def listener(call, proceed):
        result = await proceed()
        read.append(annotation_of(call, result).status)
        read.append(annotation_of(call, dataclasses.replace(result, value=2)).status)
        read.append(annotation_of(call, ToolSuccess(1, [])).status)
        return result

    registry.around(listener)
    await call(1)
    assert ["succeeded", "unknown", "unknown"] == read


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ({"n": [1, -0.0]}, {"n": [1, -0.0]}, "succeeded"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "succeeded"),
        (1, 1.0, "unknown"),
        (1, True, "unknown"),
        (0.0, -0.0, "unknown"),
        ("1", 1, "unknown"),
        ({"n": 1}, {"n": 1, "m": 2}, "unknown"),
    ],
)
async def test_only_the_same_value_keeps_the_annotation(registry, call, seen, before, after, status):
    registry.around(returning(after))
    result = await call(before)
    assert encode(after) == encode(result.value) == encode(seen[0]["result"])
    assert status == seen[0]["annotation"]["status"]
    assert list(result.content) == seen[0]["annotation"]["content"]


async def test_a_listener_that_answers_itself_vouches_for_nothing(registry, call, seen):
    registry.around(lambda _call, _proceed: ToolSuccess("cached", []))
    await call()
    assert ("unknown", {"relation": "text"}) == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["raw"],
    )


async def test_a_string_that_is_shown_otherwise_lies_beside_its_annotation(registry, call, seen):
    registry.around(returning("x"))
    await call(1, render=lambda _arguments, value: [text_block(f"shown: {value}")])
    assert ([text_block("shown: x")], {"relation": "adjacent"}) == (
        seen[0]["annotation"]["content"],
        seen[0]["annotation"]["raw"],
    )


async def test_a_success_in_place_of_a_failure_is_unknown(registry, call, seen):
    async def body(_arguments, _context):
        raise ValueError("boom")

    registry.around(returning("fallback"))
    await call(execute=body)
    assert "unknown" == seen[0]["annotation"]["status"]


async def test_a_listener_may_annotate_the_value_it_returns(registry, call, seen):
    async def listener(call, proceed):
        result = await proceed()
        annotation = annotation_of(call, result).replace(
            structuredContent=MISSING, vendor=[1], raw={"relation": "adjacent"}
        )
        return dataclasses.replace(result, value=result.value + 1, annotation=annotation)

    registry.around(listener)
    assert 2 == (await call(1)).value
    assert ("succeeded", [1], 2) == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["vendor"],
        seen[0]["result"],
    )


async def test_a_listeners_malformed_annotation_is_put_aside_and_the_result_is_not(registry, call, seen):
    async def listener(call, proceed):
        # Says that the raw result is 1, and returns 2.
        return ToolSuccess(2, [], annotation=annotation_of(call, await proceed()))

    registry.around(listener)
    assert 2 == (await call(1)).value
    annotation = seen[0]["annotation"]
    assert ("unknown", 1) == (
        annotation["status"],
        annotation["metadata"]["malformedAnnotation"]["structuredContent"],
    )
    assert [text_block("2")] == annotation["content"]


async def test_what_a_listener_annotates_without_the_type_is_put_aside(registry, call, seen):
    registry.around(lambda _call, _proceed: ToolSuccess(2, [], annotation="succeeded"))
    await call(1)
    assert {"malformedAnnotation": "succeeded"} == seen[0]["annotation"]["metadata"]


async def test_a_copy_with_another_value_does_not_take_the_annotation_along(registry, call, seen):
    async def listener(_call, proceed):
        return dataclasses.replace(await proceed(), value=2)

    registry.around(listener)
    await call(execute=annotating(1, status="succeeded", vendor=1))
    assert ("unknown", False) == (seen[0]["annotation"]["status"], "vendor" in seen[0]["annotation"])


async def test_a_copy_with_the_same_value_does(registry, call, seen):
    async def listener(_call, proceed):
        return dataclasses.replace(await proceed(), meta={"card": 1})

    registry.around(listener)
    await call(execute=annotating(1, status="failed", vendor=1))
    assert ("failed", 1) == (seen[0]["annotation"]["status"], seen[0]["annotation"]["vendor"])


@pytest.mark.parametrize("annotation", [None, "text", annotation_with(status="succeeded")])
async def test_a_listeners_failure_is_a_failure_whatever_it_annotates(registry, call, seen, annotation):
    if isinstance(annotation, dict):
        annotation = AnnotatedToolResult.from_json(annotation)
    failure = ToolFailure(ToolErrorRecord("no"), [text_block("no")], annotation=annotation)
    registry.around(lambda _call, _proceed: failure)
    await call()
    assert ("failed", {"message": "no"}) == (seen[0]["annotation"]["status"], seen[0]["annotation"]["error"])


# --- post-execute listeners and finalizers ------------------------------------------------------------


async def test_replaced_content_is_what_the_annotation_shows(registry, call, seen):
    content, raw = [text_block("secret")], {"relation": "text", "digest": "ab"}
    body = annotating("secret", status="succeeded", content=content, raw=raw)
    registry.on_post_execute(lambda _call, _result, _proceed: Accept(content=[text_block("***")]))
    result = await call(execute=body)
    assert "secret" == result.value
    assert ("succeeded", [text_block("***")], {"relation": "adjacent", "digest": "ab"}) == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["content"],
        seen[0]["annotation"]["raw"],
    )


async def test_replaced_content_leaves_an_ordinary_result_succeeded(registry, call, seen):
    registry.on_post_execute(lambda _call, _result, _proceed: Accept(content=[text_block("short")]))
    await call("long")
    assert ("succeeded", [text_block("short")], "long") == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["content"],
        seen[0]["annotation"]["structuredContent"],
    )


@pytest.mark.parametrize(("replacement", "status"), [(1, "succeeded"), (True, "unknown"), (None, "unknown")])
async def test_a_replaced_value_keeps_the_annotation_only_when_it_is_the_same(
    registry, call, seen, replacement, status
):
    registry.on_post_execute(lambda _call, _result, _proceed: Accept(value=replacement))
    await call(1)
    assert (status, replacement) == (seen[0]["annotation"]["status"], seen[0]["result"])


async def test_a_blocked_result_has_failed(registry, call, seen):
    registry.on_post_execute(lambda _call, _result, _proceed: Block([text_block("not for you")]))
    await call(execute=annotating(1, status="succeeded", vendor=1))
    assert ("failed", {"message": "not for you"}, False) == (
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["error"],
        "vendor" in seen[0]["annotation"],
    )


async def test_a_failures_annotation_survives_a_change_of_its_content(registry, call, seen):
    async def body(_arguments, context):
        context.annotate(annotation_with(status="failed", vendor=1))
        context.defer_context({"role": "user"})
        raise ValueError("boom")

    registry.on_post_execute(lambda _call, _result, _proceed: Accept(content=[text_block("short")]))
    result = await call(execute=body)
    assert [{"role": "user"}] == list(result.additional_contexts)
    assert (1, [text_block("short")]) == (
        seen[0]["annotation"]["vendor"],
        seen[0]["annotation"]["content"],
    )


async def test_a_post_execute_listener_reads_the_annotation(registry, call):
    read = []

    async def listener(call, result, proceed):
        read.append(annotation_of(call, result).status)
        return await proceed()

    registry.on_post_execute(listener)
    await call(1)
    assert ["succeeded"] == read


async def test_a_finalizer_reads_the_annotation_and_its_content_is_shown(call, seen):
    read = []

    def finalize(call, result):
        read.append(annotation_of(call, result).status)
        return [text_block("final")]

    async def body(_arguments, context):
        context.defer_context({"role": "user"})
        return 1

    await call(execute=body, finalize_content=finalize)
    assert (["succeeded"], "succeeded", [text_block("final")]) == (
        read,
        seen[0]["annotation"]["status"],
        seen[0]["annotation"]["content"],
    )


async def test_another_failure_does_not_take_the_annotation_along(call, seen):
    body = annotating(ValueError("boom"), status="failed", vendor=1)
    await call(execute=body, finalize_content=lambda _call, _result: 1 / 0)
    assert ("division by zero", False) == (
        seen[0]["annotation"]["error"]["message"],
        "vendor" in seen[0]["annotation"],
    )


async def test_content_that_is_not_json_fails_the_call_and_its_annotation_with_it(call, seen):
    body = annotating(1, status="unknown")
    result = await call(execute=body, finalize_content=lambda _call, _result: [{"type": object()}])
    assert result.is_error
    assert "failed" == seen[0]["annotation"]["status"]


# --- what is shown outside ----------------------------------------------------------------------------


async def test_a_block_that_mcp_would_not_understand_is_carried_whole(call, seen):
    image = {"type": "image", "attachment": {"id": "a1"}}
    await call(1, render=lambda _arguments, _value: [image, text_block("t")])
    assert [{"type": FOREIGN_BLOCK, "block": image}, text_block("t")] == seen[0]["annotation"]["content"]


async def test_events_get_the_projection_of_what_an_observer_sees(registry, call):
    shown = []

    def observe(call, result):
        shown.append(observed(call, result))
        shown.append(observed(call, result, ProjectionPolicy(keep=["content"])))
        shown.append(observed(call, result, ProjectionPolicy(redact=lambda shown: 1 / 0)))

    registry.on_result(observe)
    result = await call({"card": "4111"}, render=lambda _arguments, _value: [text_block("a card")])
    assert [
        {
            "tool_result_annotation": {
                "schema": SCHEMA,
                "status": "succeeded",
                "isError": False,
                "correlation": {"toolCallId": "call_9", "runId": "run_1"},
            }
        },
        {"tool_result_annotation": {"content": [text_block("a card")]}},
        {},
    ] == shown
    assert {"card": "4111"} == result.value


async def test_a_result_goes_out_to_mcp_with_its_content(call, registry, seen):
    registry.around(returning({"n": 2}))
    await call({"n": 1}, render=lambda _arguments, value: [text_block(f"n is {value['n']}")])
    written = to_mcp(seen[0])
    assert ([text_block("n is 2")], False) == (written["content"], "isError" in written)
    assert "unknown" == written["_meta"]["dev.codemode/annotation"]["status"]


async def test_an_mcp_answer_comes_in_as_the_annotation_of_its_call(call, seen):
    answer = {"content": [text_block("denied")], "isError": True, "_meta": {"a/b": 1}, "x": 2}

    async def body(_arguments, context):
        context.annotate(from_mcp(answer)["annotation"])
        raise ValueError("denied")

    await call(execute=body)
    assert ("failed", [text_block("denied")], {"a/b": 1}, 2) == tuple(
        seen[0]["annotation"][name] for name in ("status", "content", "_meta", "x")
    )


async def test_depth_is_no_obstacle(registry, call, seen):
    value = 1
    for _level in range(20_000):
        value = [value]

    async def body(_arguments, _context):
        return value

    registry.around(returning(value))
    await call(execute=body)
    assert "succeeded" == seen[0]["annotation"]["status"]
    assert same_json(value, seen[0]["annotation"]["structuredContent"])


async def test_no_envelope_is_made_when_nobody_asks(registry, call, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("an envelope was made")

    monkeypatch.setattr(dispatches, "build", refuse)
    monkeypatch.setattr(dispatches, "trusted", refuse)
    registry.around(lambda _call, proceed: proceed())
    registry.on_post_execute(lambda _call, _result, proceed: proceed())
    assert 1 == (await call(1)).value
