"""Every keyword of full JSON Schemas has a sentence of ours, and jsonschema's messages reach nobody."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from tool_bindings import UnsupportedSchemaError
from tool_bindings.validation import compile_schema

NO_BRANCH = '"value" must match at least one anyOf branch (matched 0)'
OBJECT = {"properties": {"a": {"type": "integer"}}, "minProperties": 0}

# By keyword: a schema, a value, and what is said of it.
CASES = [
    ("type", {"type": ["string", "null"]}, 1, '"value" must be a string or null'),
    ("enum", {"enum": ["a", 4.0], "minimum": 0}, "b", '"value" must be one of ["a", 4]'),
    ("const", {"const": {"a": [1]}, "minimum": 0}, 1, '"value" must be {"a":[1]}'),
    ("minimum", {"minimum": 3}, 1, '"value" must be at least 3'),
    ("maximum", {"maximum": 3.0}, 4, '"value" must be at most 3'),
    ("exclusiveMinimum", {"exclusiveMinimum": 3}, 3, '"value" must be more than 3'),
    ("exclusiveMaximum", {"exclusiveMaximum": 3}, 3, '"value" must be less than 3'),
    ("multipleOf", {"multipleOf": 0.5}, 0.7, '"value" must be a multiple of 0.5'),
    ("minLength", {"minLength": 1}, "", '"value" must have at least 1 character'),
    ("maxLength", {"maxLength": 2}, "abc", '"value" must have at most 2 characters'),
    ("pattern", {"pattern": "^[a-z]$"}, "A", '"value" must match the regular expression "^[a-z]$"'),
    ("minItems", {"minItems": 2}, [1], '"value" must have at least 2 items'),
    ("maxItems", {"maxItems": 1}, [1, 2], '"value" must have at most 1 item'),
    ("uniqueItems", {"uniqueItems": True}, [1, 1], '"value" must not have the same item twice'),
    ("items", {"items": False}, [1], '"value" must have at most 0 items'),
    ("items", {"items": {"minimum": 2}}, [2, 1], '"value[1]" must be at least 2'),
    ("prefixItems", {"prefixItems": [{"minimum": 2}], "items": False}, [1], '"value[0]" must be at least 2'),
    ("prefixItems", {"prefixItems": [True], "items": False}, [1, 2], '"value" must have at most 1 item'),
    (
        "unevaluatedItems",
        {"prefixItems": [True], "unevaluatedItems": False},
        [1, 2],
        '"value" must not have items that its schema does not describe (unevaluatedItems)',
    ),
    (
        "contains",
        {"contains": {"type": "null"}},
        [1],
        '"value" must have at least 1 item of {"type":"null"} (contains)',
    ),
    (
        "minContains",
        {"contains": {"type": "null"}, "minContains": 2},
        [None],
        '"value" must have at least 2 items of {"type":"null"} (contains)',
    ),
    (
        "maxContains",
        {"contains": {"type": "null"}, "maxContains": 1},
        [None, None],
        '"value" must have at most 1 item of {"type":"null"} (contains)',
    ),
    ("minProperties", {"minProperties": 1}, {}, '"value" must have at least 1 property'),
    (
        "maxProperties",
        {"maxProperties": 2},
        {"a": 1, "b": 2, "c": 3},
        '"value" must have at most 2 properties',
    ),
    ("required", {**OBJECT, "required": ["b", "a"]}, {"a": 1}, 'missing required property "value.b"'),
    (
        "required",
        {**OBJECT, "required": ["b", "c"]},
        {},
        'missing required property "value.b"; missing required property "value.c"',
    ),
    (
        "dependentRequired",
        {"dependentRequired": {"a": ["b"], "x": ["y"]}},
        {"a": 1},
        'missing required property "value.b", which must be there beside "a"',
    ),
    (
        "dependentSchemas",
        {"dependentSchemas": {"a": {"minProperties": 2}}},
        {"a": 1},
        "at least 2 properties",
    ),
    (
        "additionalProperties",
        {**OBJECT, "additionalProperties": False},
        {"a": 1, "it's": 1, "c d": 2},
        "; ".join(
            f'"value.{name}" is not a declared property (additionalProperties: false)'
            for name in ("it's", "c d")
        ),
    ),
    (
        "additionalProperties",
        {"patternProperties": {"^x": True}, "additionalProperties": False},
        {"y": 1, "x1": 1},
        '"value.y" is not a declared property (additionalProperties: false) and does not match "^x"',
    ),
    (
        "additionalProperties",
        {"additionalProperties": {"minimum": 2}},
        {"b": 1},
        '"value.b" must be at least 2',
    ),
    ("properties", {"properties": {"a": {"minimum": 2}}}, {"a": 1}, '"value.a" must be at least 2'),
    ("properties", {"properties": {"a": False}}, {"a": 1}, '"value.a" is not allowed'),
    (
        "patternProperties",
        {"patternProperties": {"^n": {"minimum": 2}}},
        {"n": 1},
        '"value.n" must be at least 2',
    ),
    (
        "propertyNames",
        {"propertyNames": {"maxLength": 1}},
        {"ab": 1},
        '"value" has a property "ab", whose name must have at most 1 character',
    ),
    (
        "unevaluatedProperties",
        {"properties": {"a": True}, "unevaluatedProperties": False},
        {"a": 1, "b": 1},
        '"value.b" is not a declared property (unevaluatedProperties: false)',
    ),
    (
        "unevaluatedProperties",
        {"unevaluatedProperties": {"type": "null"}},
        {"b": 1},
        '"value.b" must match {"type":"null"} (unevaluatedProperties)',
    ),
    (
        "allOf",
        {"allOf": [{"minimum": 2}, {"maximum": 0}]},
        1,
        '"value" must be at least 2; "value" must be at most 0',
    ),
    ("anyOf", {"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, '"value" must be a string or null'),
    (
        "anyOf",
        {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]},
        {},
        f'{NO_BRANCH}; the nearest: missing required property "value.a"',
    ),
    (
        "anyOf",
        {
            "anyOf": [
                {"properties": {"kind": {"const": "x"}, "n": {"type": "null"}}},
                {"properties": {"kind": {"const": "y"}, "n": {"minimum": 5}}},
            ]
        },
        {"kind": "y", "n": 1},
        f'{NO_BRANCH}; the nearest: "value.n" must be at least 5',
    ),
    (
        "oneOf",
        {"oneOf": [{"minimum": 1}, {"maximum": 5}]},
        3,
        '"value" must match exactly one oneOf branch (matched several)',
    ),
    (
        "oneOf",
        {"oneOf": [{"minimum": 9}, {"maximum": 0}]},
        3,
        '"value" must match exactly one oneOf branch (matched 0); the nearest: "value" must be at least 9',
    ),
    ("not", {"not": {"type": "integer"}}, 3, '"value" must not match {"type":"integer"} (not)'),
    ("if", {"if": {"minimum": 0}, "then": {"maximum": 5}}, 9, '"value" must be at most 5'),
    ("if", {"if": {"minimum": 10}, "else": {"maximum": 5}}, 9, '"value" must be at most 5'),
    ("$ref", {"$ref": "#/$defs/n", "$defs": {"n": {"minimum": 2}}}, 1, '"value" must be at least 2'),
    (
        "$dynamicRef",
        {"$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", "minimum": 2}}},
        1,
        '"value" must be at least 2',
    ),
]
NEVER_REPORTED = {"format"}
"""An annotation here, as draft 2020-12 has it."""


@pytest.mark.parametrize(("keyword", "schema", "value", "expected"), CASES)
def test_each_keyword_has_a_sentence_of_ours(keyword, schema, value, expected):
    assert keyword in str(schema)
    texts = "; ".join(violation.text for violation in compile_schema(schema).violations(value))
    assert expected == texts or (not expected.startswith(('"', "missing")) and expected in texts)


def test_no_keyword_that_can_be_reported_is_left_out():
    assert set(Draft202012Validator.VALIDATORS) - NEVER_REPORTED <= {case[0] for case in CASES}
    assert [] == compile_schema({"format": "date", "minimum": 0}).violations("no date")


def test_a_property_that_is_not_declared_is_known_by_its_name():
    schema = {"properties": {"name": {"minLength": 1}}, "additionalProperties": False}
    (violation,) = compile_schema(schema).violations({"naem": "x"})
    assert ((), "naem") == (violation.keys, violation.undeclared)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"a": False}}, {"a": 1, "b": 1}, '"value" has a part that is not allowed'),
        ({"prefixItems": [True, False]}, [1, {}], '"value[1]" is not allowed'),
        ({"allOf": [False]}, {"a": 1}, '"value" is not allowed'),
        ({"propertyNames": False}, {"a": 1}, '"value" has a property "a", whose name is not allowed'),
    ],
)
def test_what_a_false_schema_is_for_is_named_where_that_is_known(schema, value, expected):
    (violation,) = compile_schema({"minimum": 0, **schema}).violations(value)
    assert expected == violation.text


def test_long_parts_of_schemas_are_cut():
    (violation,) = compile_schema({"enum": ["x" * 1000, 1], "minimum": 0}).violations("y")
    assert len(violation.text) < 300
    assert violation.text.endswith("…")


def test_among_many_alternatives_none_is_nearest():
    schema = {"anyOf": [{"properties": {"kind": {"const": number}}} for number in range(9)]}
    (violation,) = compile_schema(schema).violations({"kind": "other"})
    assert NO_BRANCH == violation.text


def test_what_is_wrong_with_a_schema_is_said_in_the_same_words():
    with pytest.raises(UnsupportedSchemaError) as caught:
        compile_schema({"properties": {"a": {"minLength": -1}}})
    assert '"schema.properties.a.minLength" must be at least 0' in str(caught.value)
    with pytest.raises(UnsupportedSchemaError) as caught:
        compile_schema({"type": ["string", "text"]})
    assert 'the nearest: "schema.type[1]" must be one of ["array", "boolean"' in str(caught.value)
