"""Schemas of servers: rewritten towards the vocabulary without refusing what they accept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tool_bindings import Output, ToolDefinition, render_stubs
from tool_bindings.mcp.schemas import output_schema, parameters_schema
from tool_bindings.schema import schema_violations
from tool_bindings.validation import compile_schema

PYDANTIC = {
    "$defs": {"Unit": {"enum": ["C", "F"], "title": "Unit", "type": "string"}},
    "properties": {
        "city": {"title": "City", "type": "string"},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Days"},
        "unit": {"$ref": "#/$defs/Unit", "default": "C"},
        "tags": {"items": {"type": "string", "format": "uuid"}, "type": "array"},
    },
    "required": ["city"],
    "title": "Arguments",
    "type": "object",
}
ZOD = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": ["string", "null"], "description": "Where\u202e"},
        "mode": {"const": "fast"},
        "deep": {"allOf": [{"type": "object", "properties": {"n": {"type": "number"}}}], "description": "d"},
    },
    "additionalProperties": False,
}


def stub(parameters, output=None):
    async def body(_arguments, _context):
        return None

    definition = ToolDefinition("t", "", parameters, Output({} if output is None else output), body)
    return render_stubs([definition])


@pytest.mark.parametrize("schema", [PYDANTIC, ZOD])
def test_what_pydantic_and_zod_write_reaches_the_vocabulary(schema):
    assert [] == schema_violations(parameters_schema(schema), maps=True)


def test_stubs_show_real_types():
    text = stub(parameters_schema(PYDANTIC))
    assert 'city: str, days: int | None = ..., unit: Literal["C", "F"] = ..., tags: list[str] = ...' in text
    text = stub(parameters_schema(ZOD))
    assert 'path: str | None = ...,  # Where\n      mode: Literal["fast"] = ...,\n' in text
    assert "\u202e" not in text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
near_values = st.dictionaries(
    st.sampled_from(["city", "days", "unit", "tags", "path", "mode", "deep", "other"]),
    json_values | st.sampled_from(["C", "fast", {"n": 1}, {"n": "x"}, ["a"]]),
)
EXACT = [
    PYDANTIC,
    ZOD,
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "number"}]}}},
    {"type": "object", "properties": {"city": {"oneOf": [{"enum": ["C"]}, {"enum": ["fast", "C"]}]}}},
    {"type": "object", "properties": {"days": {"type": ["integer", "number"]}}, "required": ["other"]},
    {"type": "object", "properties": {"days": {"minimum": 1}, "city": {"minLength": 2, "type": "string"}}},
    {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "array"}]}},
    {
        "type": "object",
        "$defs": {"T": {"properties": {"n": {"$ref": "#/$defs/T"}}}},
        "properties": {"deep": {"$ref": "#/$defs/T"}},
    },
]


PAIRS = [(Draft202012Validator(schema), compile_schema(parameters_schema(schema))) for schema in EXACT]


@pytest.mark.parametrize(("original", "rewritten"), PAIRS)
@settings(deadline=None, max_examples=40)  # Other work on the machine is no failure.
@given(value=near_values)
def test_exactly_the_same_arguments_are_accepted(original, rewritten, value):
    # The oracle has no `format` checks, and neither have we.
    assert original.is_valid(value) == (not rewritten.violations(value, ""))


def test_patterns_of_a_server_are_never_run():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(a+)+$"}},
        "patternProperties": {"^x": {"type": "integer"}},
        "additionalProperties": False,
    }
    fitted = parameters_schema(schema)
    assert "pattern" not in str(fitted)
    # What the patterns allowed stays allowed.
    assert [] == compile_schema(fitted).violations({"a": "a" * 50 + "!", "x1": 1}, "")


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        {"type": "string"},
        {"type": "object", "properties": 1},
        {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://example.invalid/schema"}}},
        {"type": "object", "description": "x" * 300_000},
        {"type": "object", "$dynamicAnchor": "a"},
    ],
)
def test_an_unusable_schema_leaves_the_checking_to_the_server(schema):
    assert {"type": "object"} == parameters_schema(schema)


def test_a_schema_that_doubles_at_every_reference_stays_small():
    defs = {f"D{n}": {"type": "array", "items": {"$ref": f"#/$defs/D{n + 1}"}} for n in range(30)}
    for n in range(30):
        defs[f"D{n}"] = {
            "type": "object",
            "properties": {"a": {"$ref": f"#/$defs/D{n + 1}"}, "b": {"$ref": f"#/$defs/D{n + 1}"}},
        }
    defs["D30"] = {"type": "string"}
    fitted = parameters_schema({"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/D0"}}})
    assert len(str(fitted)) < 10_000_000
    assert "object" == fitted["type"]


def test_an_advertised_schema_makes_structured_content_required():
    schema = output_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    compiled = compile_schema(schema)
    assert [] == compiled.violations({"content": [], "structuredContent": {"n": 1}})
    assert ['missing required property "value.structuredContent"'] == [
        violation.text for violation in compiled.violations({"content": []})
    ]
    assert compiled.violations({"content": [], "structuredContent": {"n": "x"}})
    assert compiled.violations({"content": [], "structuredContent": {"n": 1}, "more": 1})


@pytest.mark.parametrize("schema", [None, {"type": "nonsense"}, {"$ref": "https://example.invalid/x"}, 5])
def test_without_a_usable_schema_structured_content_may_be_anything_or_absent(schema):
    compiled = compile_schema(output_schema(schema))
    for value in ({"content": ["x"]}, {"content": [], "structuredContent": [1]}):
        assert [] == compiled.violations(value)
    assert compiled.violations({"structuredContent": 1})


def test_a_recursive_schema_still_checks_below_structured_content():
    tree = {
        "type": "object",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
                "required": ["title"],
                "additionalProperties": False,
            }
        },
        "properties": {"root": {"$ref": "#/$defs/Node"}},
    }
    compiled = compile_schema(output_schema(tree))
    good = {"root": {"title": "a", "next": {"title": "b", "next": {"title": "c"}}}}
    bad = {"root": {"title": "a", "next": {"title": "b", "next": {"title": 3}}}}
    assert [] == compiled.violations({"content": [], "structuredContent": good})
    assert compiled.violations({"content": [], "structuredContent": bad})
