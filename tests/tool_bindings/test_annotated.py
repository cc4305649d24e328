"""The annotated envelope beyond its vectors: the Python object, errors, depth, what operations keep apart."""

import itertools
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.values import FrozenDict, encode, freeze
from tool_bindings.annotated import (
    CODES,
    MCP_ANNOTATION,
    MISSING,
    SCHEMA,
    AnnotatedOutcome,
    AnnotatedToolResult,
    AnnotationError,
    ProjectionPolicy,
    answer_annotation,
    apply_boundary,
    apply_intercept,
    from_mcp,
    project,
    same_json,
    to_mcp,
    wrap_declared,
    wrap_error,
    wrap_raw,
)
from tool_bindings.errors import HarnessError, InvalidArgumentsError

DEPTH = 20_000

ENVELOPE = {
    "schema": SCHEMA,
    "status": "failed",
    "isError": True,
    "content": [{"type": "text", "text": "no such table"}],
    "dataSchema": {"name": "acme.rows", "version": "7"},
    "correlation": {"toolCallId": "call_9"},
    "error": {"message": "no such table", "code": "not_found"},
    "vendor": {"kept": [1, 1.0, True, -0.0]},
    "raw": {"relation": "adjacent"},
}


def deep(levels=DEPTH, leaf=1):
    value = leaf
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


# --- the object ---------------------------------------------------------------------------------------


def test_members_are_read_as_attributes():
    annotation = AnnotatedToolResult.from_json(ENVELOPE)
    assert (
        "failed",
        ENVELOPE["content"],
        MISSING,
        ENVELOPE["dataSchema"],
        ENVELOPE["correlation"],
        ENVELOPE["error"],
        "adjacent",
        ENVELOPE["vendor"],
    ) == (
        annotation.status,
        annotation.content,
        annotation.structured_content,
        annotation.data_schema,
        annotation.correlation,
        annotation.error,
        annotation.relation,
        annotation.members["vendor"],
    )


def test_absent_members_are_missing_and_null_is_not():
    bare = AnnotatedToolResult.from_json(wrap_raw(1)["annotation"])
    null = AnnotatedToolResult.from_json(wrap_declared(None)["annotation"])
    assert (MISSING, MISSING, {}, None) == (
        bare.structured_content,
        bare.data_schema,
        bare.correlation,
        bare.error,
    )
    assert null.structured_content is None
    assert repr(MISSING) == "MISSING"


def test_an_annotation_shares_nothing_with_what_it_was_read_from_or_gave_out():
    source = {**ENVELOPE, "metadata": {"a": [1]}}
    annotation = AnnotatedToolResult.from_json(source)
    source["metadata"]["a"].append(2)
    annotation.to_json()["metadata"]["a"].append(3)
    assert [1] == annotation.to_json()["metadata"]["a"]
    with pytest.raises(TypeError, match="read-only"):
        annotation.members["metadata"]["a"].append(4)


def test_a_restored_result_is_a_copy_of_ones_own():
    annotation = AnnotatedToolResult.from_json(wrap_declared({"a": [1]})["annotation"])
    annotation.restore()["a"].append(2)
    assert {"a": [1]} == annotation.restore()


def test_the_class_cannot_be_called():
    with pytest.raises(TypeError, match="from_json"):
        AnnotatedToolResult()


def test_a_frozen_envelope_is_read_like_a_plain_one():
    frozen = freeze(ENVELOPE)
    assert isinstance(frozen, FrozenDict)
    assert AnnotatedToolResult.from_json(frozen) == AnnotatedToolResult.from_json(ENVELOPE)


def test_equality_ignores_member_order_and_sees_types():
    reversed_members = dict(reversed(ENVELOPE.items()))
    assert AnnotatedToolResult.from_json(reversed_members) == AnnotatedToolResult.from_json(ENVELOPE)
    other = {**ENVELOPE, "vendor": {"kept": [1, 1.0, 1, -0.0]}}
    assert AnnotatedToolResult.from_json(other) != AnnotatedToolResult.from_json(ENVELOPE)
    assert AnnotatedToolResult.from_json(ENVELOPE) != ENVELOPE


def test_a_repr_shows_no_payload():
    assert repr(AnnotatedToolResult.from_json(ENVELOPE)) == "<AnnotatedToolResult failed, raw adjacent>"


def test_replace_changes_members_in_place_and_adds_and_removes_others():
    annotation = AnnotatedToolResult.from_json(ENVELOPE)
    changed = annotation.replace(error=MISSING, vendor=2, metadata={"m": 1}).to_json()
    assert [*(name for name in ENVELOPE if name != "error"), "metadata"] == list(changed)
    assert (2, {"m": 1}) == (changed["vendor"], changed["metadata"])
    assert ENVELOPE == annotation.to_json()


def test_replace_obeys_the_rules():
    with pytest.raises(AnnotationError) as caught:
        AnnotatedToolResult.from_json(ENVELOPE).replace(status="succeeded")
    assert ("status_conflict", "/isError") == (caught.value.code, caught.value.pointer)


# --- errors -------------------------------------------------------------------------------------------


def test_an_error_has_code_pointer_and_words():
    with pytest.raises(AnnotationError) as caught:
        AnnotatedToolResult.from_json({**ENVELOPE, "content": [{"type": "text", "text": 5}]})
    error = caught.value
    assert ("invalid_block", "/content/0/text") == (error.code, error.pointer)
    assert 'annotated tool result, "/content/0/text": must be a string, not a number' == str(error)
    assert isinstance(error, (HarnessError, ValueError))


def test_every_code_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "annotated-results.md").read_text("utf-8")
    assert [] == [code for code in CODES if f"`{code}`" not in text]


@pytest.mark.parametrize(
    "value", [None, "text", 1, [ENVELOPE], (1,), object(), type("D", (dict,), {})(ENVELOPE)]
)
def test_only_a_json_object_can_be_an_annotation(value):
    with pytest.raises(AnnotationError) as caught:
        AnnotatedToolResult.from_json(value)
    assert ("invalid_type", "") == (caught.value.code, caught.value.pointer)


@pytest.mark.parametrize("extra", [float("nan"), {1: 2}, (1, 2), {"a": {2}}])
def test_an_annotation_is_lossless_json_throughout(extra):
    with pytest.raises(AnnotationError, match="annotation") as caught:
        AnnotatedToolResult.from_json({**ENVELOPE, "metadata": {"m": extra}})
    assert "not_lossless_json" == caught.value.code


def test_the_place_of_what_is_not_json_is_in_the_message():
    with pytest.raises(AnnotationError, match=r"value\.rows\[1\]"):
        wrap_raw({"rows": [1, float("inf")]})


def test_identifiers_come_as_an_object():
    with pytest.raises(AnnotationError, match="toolCallId") as caught:
        wrap_raw(1, "call_9")
    assert ("invalid_correlation", "/correlation") == (caught.value.code, caught.value.pointer)


def test_a_rejected_annotation_names_its_cause():
    with pytest.raises(AnnotationError, match="must be a string") as caught:
        apply_boundary({"result": 1, "annotation": {**ENVELOPE, "status": 1}}, "reject")
    cause = caught.value.__cause__
    assert isinstance(cause, AnnotationError)
    assert ("invalid_type", "/status") == (cause.code, cause.pointer)


def test_an_unknown_boundary_policy_is_the_callers_error():
    with pytest.raises(ValueError, match="reject"):
        apply_boundary({"result": 1}, "ignore")


FAULTS = [
    ("missing_field", "/schema", {"schema": MISSING}),
    ("unsupported_schema", "/schema", {"schema": "codemode.annotated-tool-result/2"}),
    ("missing_field", "/status", {"status": MISSING}),
    ("missing_field", "/content", {"content": MISSING}),
    ("missing_field", "/raw", {"raw": MISSING}),
    ("invalid_type", "/status", {"status": 1}),
    ("invalid_type", "/content", {"content": "text"}),
    ("invalid_type", "/raw", {"raw": "adjacent"}),
    ("invalid_status", "/status", {"status": "ok"}),
    ("status_conflict", "/isError", {"isError": False}),
    ("missing_field", "/error/message", {"error": {}}),
    ("invalid_block", "/content/0", {"content": [1, 2]}),
    ("invalid_block", "/content/1/type", {"content": [{"type": "x"}, {}]}),
    ("invalid_data_schema", "/dataSchema", {"dataSchema": 5}),
    ("invalid_correlation", "/correlation/runId", {"correlation": {"runId": ""}}),
    ("raw_relation", "/raw/relation", {"raw": {"relation": "elsewhere"}}),
]
"""One fault for each step of the contract's order, in that order."""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first[0]} {first[1]}, {second[0]} {second[1]}")
        for first, second in itertools.combinations(FAULTS, 2)
        if not set(first[2]) & set(second[2])
    ],
)
def test_of_two_faults_the_one_that_is_judged_first_is_reported(first, second):
    faults = {**second[2], **first[2]}
    envelope = {**ENVELOPE, **faults}
    with pytest.raises(AnnotationError) as caught:
        AnnotatedToolResult.from_json(
            {name: value for name, value in envelope.items() if value is not MISSING}
        )
    assert first[:2] == (caught.value.code, caught.value.pointer)


# --- depth --------------------------------------------------------------------------------------------


def test_no_walk_is_bounded_by_depth():
    value = deep()
    envelope = {**ENVELOPE, "metadata": {"m": value}, "vendor": value}
    annotation = AnnotatedToolResult.from_json(envelope)
    assert same_json(envelope, annotation.to_json())
    assert annotation == AnnotatedToolResult.from_json(envelope)
    assert annotation != AnnotatedToolResult.from_json({**envelope, "vendor": deep(leaf=True)})


def test_deep_results_go_through_every_operation():
    value = deep()
    assert same_json(value, wrap_raw(value)["result"])
    declared = wrap_declared(value)
    assert same_json(value, AnnotatedToolResult.from_json(declared["annotation"]).restore())
    assert declared["annotation"]["status"] == apply_intercept(declared, deep())["annotation"]["status"]
    assert "unknown" == apply_intercept(declared, deep(leaf=1.0))["annotation"]["status"]
    assert same_json(declared, apply_boundary(declared, "reject"))
    answer = {"content": [], "structuredContent": value, "x": value}
    taken = from_mcp(answer)
    assert same_json(answer, taken["result"])
    assert same_json(value, to_mcp(taken)["structuredContent"])
    shown = project(declared, ProjectionPolicy(keep=["structuredContent"], redact=lambda shown: shown))
    assert same_json(value, shown["event"]["tool_result_annotation"]["structuredContent"])
    # A malformed annotation of any depth is put aside whole.
    aside = apply_boundary({"result": 1, "annotation": [value]}, "degrade")["annotation"]
    assert same_json([value], aside["metadata"]["malformedAnnotation"])


# --- type-exact equality --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True), (0, False), (1, 1.0), (0.0, -0.0), (0, -0.0), ("1", 1), (None, False), ([], {}), ("", []),
        ([1, 2], [2, 1]), ([1], [1, 1]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": [1]}, {"a": [True]}), (2**70, float(2**70)), ("\ud800", "\udfff"),
    ],
)  # fmt: skip
def test_values_of_other_types_are_other_values(left, right):
    assert not same_json(left, right)
    assert not same_json(right, left)
    assert same_json(left, left)
    assert same_json(freeze(right), right)


def test_the_order_of_members_is_no_part_of_a_value():
    assert same_json({"a": 1, "b": [2]}, {"b": [2], "a": 1})


# --- operations -----------------------------------------------------------------------------------------


def test_an_annotating_intercept_may_return_the_object():
    before = wrap_declared({"n": 1}, call={"toolCallId": "t"})
    failed = AnnotatedToolResult.from_json({**before["annotation"], "status": "failed", "isError": True})
    assert {"result": {"n": 1}, "annotation": failed.to_json()} == apply_intercept(
        before, AnnotatedOutcome({"n": 1}, failed)
    )


def test_a_copy_of_the_record_is_a_value_and_no_forwarding():
    """Only the very record forwards: a tool may well return something that looks the same."""
    before = wrap_declared({"n": 1})
    assert {"result": before, "annotation": wrap_raw(before)["annotation"]} == apply_intercept(
        before, dict(before)
    )


def test_an_annotation_that_is_not_json_is_described_in_its_place():
    kept = apply_boundary({"result": 1, "annotation": {"schema": {1}}}, "degrade")["annotation"]
    assert "is a set" in kept["metadata"]["malformedAnnotation"]


def test_a_degraded_record_keeps_the_identifiers_of_its_call():
    kept = apply_boundary({"result": 1, "annotation": 5}, "degrade", {"toolCallId": "t"})["annotation"]
    assert {"toolCallId": "t"} == kept["correlation"]


def test_a_coded_failure_is_recorded_as_the_contract_names_it():
    error = wrap_error(InvalidArgumentsError("no"))["annotation"]["error"]
    assert {"message": "no", "name": "ToolArgsError", "code": "INVALID_ARGS"} == error


def test_the_one_member_of_a_group_is_what_failed():
    group = ExceptionGroup("several", [ExceptionGroup("inner", [KeyError("k")])])
    assert {"message": "'k'", "name": "KeyError"} == wrap_error(group)["annotation"]["error"]


def test_a_hostile_exception_still_ends_in_an_envelope():
    class HostileError(Exception):
        @property
        def code(self):
            raise RuntimeError

        def __str__(self):
            raise RuntimeError

    error = wrap_error(HostileError())["annotation"]["error"]
    assert {"message": "<unprintable exception>", "name": "HostileError"} == error


def test_mcp_out_and_in_keeps_all_but_an_unknown_status():
    """Known loss: MCP has no third status; what it was stays readable in `_meta`."""
    record = wrap_raw("12", {"toolCallId": "t"})
    back = from_mcp(to_mcp(record))["annotation"]
    assert "succeeded" == back["status"]
    assert "unknown" == back["_meta"][MCP_ANNOTATION]["status"]


def test_an_odd_mcp_answer_costs_its_annotation_only():
    assert answer_annotation({"content": [{"type": "text"}]}) is None
    assert answer_annotation("text") is None
    assert answer_annotation({"content": [object()]}) is None
    annotation = answer_annotation({"content": [], "isError": True})
    assert annotation is not None
    assert "failed" == annotation.status


# --- projection -----------------------------------------------------------------------------------------

RECORD = {"result": 1, "annotation": ENVELOPE}


def test_a_projection_hands_back_the_very_record():
    before = encode(RECORD)
    assert project(RECORD)["record"] is RECORD
    assert before == encode(RECORD)


def test_a_redactor_gets_a_copy_of_what_is_allowed_and_decides_what_is_shown():
    def redact(shown):
        shown["correlation"]["toolCallId"] = "hidden"
        del shown["schema"]
        return shown

    shown = project(RECORD, ProjectionPolicy(keep=["schema", "correlation"], redact=redact))
    assert {"tool_result_annotation": {"correlation": {"toolCallId": "hidden"}}} == shown["event"]
    assert "call_9" == ENVELOPE["correlation"]["toolCallId"]


@pytest.mark.parametrize(
    "redact",
    [
        lambda shown: {}[shown["correlation"]["toolCallId"]],
        lambda shown: None,
        lambda shown: [shown],
        lambda shown: "text",
        lambda shown: {"a": float("nan")},
        lambda shown: {"a": object()},
        type("Shown", (dict,), {}),
        lambda: {"needs": "an argument"},
    ],
)
def test_a_failing_redactor_clears_the_projection_and_nothing_else(redact, caplog):
    with caplog.at_level(logging.WARNING, "tool_bindings"):
        shown = project(RECORD, ProjectionPolicy(redact=redact))
    assert {} == shown["event"]
    assert shown["record"] is RECORD
    assert "is not shown" in caplog.text
    assert "call_9" not in caplog.text


def test_a_redactor_cannot_swallow_an_interrupt():
    def redact(shown):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project(RECORD, ProjectionPolicy(redact=redact))


def test_a_member_with_a_dot_in_its_name_is_kept_by_a_tuple():
    record = {"result": 1, "annotation": {**ENVELOPE, "_meta": {"a.b/c": 1, "a": {"b/c": 2}}}}
    shown = project(record, ProjectionPolicy(keep=[("_meta", "a.b/c")]))
    assert {"tool_result_annotation": {"_meta": {"a.b/c": 1}}} == shown["event"]


@pytest.mark.parametrize("keep", ["status", [1], [()], [("a", 1)], None])
def test_a_policy_with_a_bad_allow_list_is_refused(keep):
    with pytest.raises(TypeError):
        ProjectionPolicy(keep=keep)
    assert {} == project(RECORD, {"keep": keep})["event"]


def test_a_policy_with_a_bad_redactor_is_refused():
    with pytest.raises(TypeError, match="redact"):
        ProjectionPolicy(redact="mask")


@pytest.mark.parametrize("record", [{"annotation": ENVELOPE}, {"result": 1, "annotation": "text"}, 5])
def test_what_is_no_sound_record_shows_nothing(record):
    assert {} == project(record)["event"]


def test_the_package_loads_neither_mcp_nor_an_exporter():
    program = (
        "import sys, tool_bindings.annotated; "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('mcp', 'opentelemetry', 'nemo_relay', 'jsonschema', 'pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout
