"""The conformance vectors of the annotated tool-result contract, and more of the same kinds.

`annotated-vectors.jsonl` comes with the contract; `annotated-vectors-more.jsonl` is written from its
text. Each line is one operation with its input and what the contract says about it.
"""

from pathlib import Path

import jsonschema
import pytest

from sandbox.values import decode, encode
from tool_bindings.annotated import (
    AnnotatedOutcome,
    AnnotatedToolResult,
    AnnotationError,
    ProjectionPolicy,
    apply_boundary,
    apply_intercept,
    envelope_schema,
    from_mcp,
    project,
    to_mcp,
    wrap_declared,
    wrap_error,
    wrap_raw,
)

DATA = Path(__file__).parent.parent / "data"
VECTORS = [
    decode(line)
    for name in ("annotated-vectors.jsonl", "annotated-vectors-more.jsonl")
    for line in (DATA / name).read_text("utf-8").splitlines()
]


def value_of(given):
    """Return `input.value`, or what `input.python` writes; only Python can write it."""
    if "python" in given:
        return eval(given["python"], {"__builtins__": {}}, {"float": float})
    return given["value"]


def fail(_shown):
    raise RuntimeError


def run_wrap_error(given):
    error = type(given["name"], (Exception,), {})(given["message"])
    if "code" in given:
        error.code = given["code"]
    return wrap_error(error, given.get("call"))


def run_intercept(given):
    before, action = given["record"], given["action"]
    if "forward" in action:
        return apply_intercept(before, before)
    if "remove" in action:
        return apply_intercept(before, AnnotatedOutcome(before["result"], None))
    if "record" in action:
        after = action["record"]
        return apply_intercept(before, AnnotatedOutcome(after["result"], after["annotation"]))
    return apply_intercept(before, action["raw"])


def run_restore(given):
    annotation = AnnotatedToolResult.from_json(given["annotation"])
    return annotation.restore(given["result"]) if "result" in given else annotation.restore()


def run_project(given):
    policy = dict(given.get("policy") or {})
    if policy.pop("raises", False):
        policy["redact"] = fail
    return project(given["record"], policy)


OPERATIONS = {
    "parse": lambda given: AnnotatedToolResult.from_json(given).to_json(),
    "wrap_raw": lambda given: wrap_raw(value_of(given), given.get("call")),
    "wrap_declared": lambda given: wrap_declared(
        value_of(given),
        given.get("content"),
        given.get("dataSchema", given.get("data_schema")),
        given.get("call"),
    ),
    "wrap_error": run_wrap_error,
    "intercept": run_intercept,
    "boundary": lambda given: apply_boundary(given["record"], given["policy"], given.get("call")),
    "from_mcp": lambda given: from_mcp(value_of(given), given.get("call")),
    "to_mcp": lambda given: to_mcp(given["record"]),
    "restore": run_restore,
    "project": run_project,
}

every_vector = pytest.mark.parametrize(
    "vector", VECTORS, ids=[f"{vector['id']} {vector['title']}" for vector in VECTORS]
)


@every_vector
def test_vector_gives_what_the_contract_says(vector):
    # Compared as text: the order of members, 1 against 1.0 and the sign of zero all count.
    expected = vector["expect"]
    before = encode(vector["input"])
    if "error" in expected:
        with pytest.raises(AnnotationError) as caught:
            OPERATIONS[vector["op"]](vector["input"])
        assert (expected["error"]["code"], expected["error"]["path"]) == (
            caught.value.code,
            caught.value.pointer,
        )
    else:
        assert encode(expected["ok"]) == encode(OPERATIONS[vector["op"]](vector["input"]))
    assert before == encode(vector["input"]), "an operation must not change what it is given"


@pytest.mark.parametrize(
    "vector",
    [vector for vector in VECTORS if vector["op"] == "parse"],
    ids=lambda vector: vector["id"],
)
def test_the_published_schema_agrees_with_the_vector(vector):
    valid = jsonschema.Draft202012Validator(envelope_schema()).is_valid(vector["input"])
    assert ("ok" in vector["expect"]) == valid


MAKE_RECORDS = ("wrap_raw", "wrap_declared", "wrap_error", "intercept", "boundary", "from_mcp")


@pytest.mark.parametrize(
    "vector",
    [vector for vector in VECTORS if vector["op"] in MAKE_RECORDS and "ok" in vector["expect"]],
    ids=lambda vector: vector["id"],
)
def test_every_record_an_operation_makes_fits_the_published_schema(vector):
    made = OPERATIONS[vector["op"]](vector["input"])
    schema = {**envelope_schema(), "$ref": "#/$defs/record"}
    jsonschema.Draft202012Validator(schema).validate(made)
    assert made["annotation"] == AnnotatedToolResult.from_json(made["annotation"]).to_json()


def test_there_are_vectors_for_every_operation_and_code():
    assert set(OPERATIONS) == {vector["op"] for vector in VECTORS}
    codes = {vector["expect"]["error"]["code"] for vector in VECTORS if "error" in vector["expect"]}
    assert len(codes) == 13
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)


def test_a_policy_object_projects_like_its_members():
    record = wrap_raw("x", {"toolCallId": "t"})
    assert project(record, {"keep": ["content"]}) == project(record, ProjectionPolicy(keep=["content"]))
