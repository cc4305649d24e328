"""The schema vocabulary in both spellings: what is refused, and in which words."""

from __future__ import annotations

import datetime as dt

import pytest

from sandbox.values import encode
from tool_bindings.errors import UnsupportedSchemaError
from tool_bindings.schema import (
    assert_json_schema,
    assert_object_schema,
    is_full_schema,
    json_text,
    parameters_schema,
    schema_violations,
    value_schema,
)
from tool_bindings.validation import compile_schema, validate_value

SUBSET = (
    "type, oneOf, properties, required, additionalProperties, items, enum, const, "
    "description, title, default, examples"
)


class TestRawSpelling:
    @pytest.mark.parametrize(
        ("schema", "expected"),
        [
            ([], ["schema must be a schema object"]),
            (
                {"type": "string", "pattern": "x"},
                [f"schema.pattern is not a supported keyword (subset: {SUBSET})"],
            ),
            ({"anyOf": []}, [f"schema.anyOf is not a supported keyword (subset: {SUBSET})"]),
            ({"default": float("nan")}, ["schema.default annotation must be lossless JSON data"]),
            ({"examples": [dt.date(2024, 1, 1)]}, ["schema.examples annotation must be lossless JSON data"]),
            ({"description": 1}, ["schema.description must be a string"]),
            ({"title": []}, ["schema.title must be a string"]),
            ({"type": "string", "oneOf": []}, ["schema cannot declare both type and oneOf"]),
            ({"enum": [1]}, ["schema.enum requires type or oneOf"]),
            ({"oneOf": [{}]}, ["schema.oneOf must be an array of at least two schemas"]),
            ({"oneOf": {}}, ["schema.oneOf must be an array of at least two schemas"]),
            ({"oneOf": [{}, {}], "items": {}}, ["schema.items is not supported beside oneOf"]),
            ({"type": ["string", "null"]}, ["schema.type must name one type; write a union as oneOf"]),
            (
                {"type": "text"},
                ["schema.type must be one of object/array/string/number/integer/boolean/null"],
            ),
            ({"type": "string", "items": {}}, ['schema.items is not supported on type "string"']),
            ({"type": "array", "enum": [[]]}, ['schema.enum is not supported on type "array"']),
            ({"type": "object", "required": "a"}, ["schema.required must be an array of strings"]),
            (
                {"type": "object", "properties": {}, "required": ["toString"]},
                ['schema.required names "toString" which is not in properties'],
            ),
            (
                {"type": "object", "additionalProperties": {}},
                ["schema.additionalProperties must be a boolean"],
            ),
            ({"type": "object", "properties": []}, ["schema.properties must be an object of schemas"]),
            ({"type": "string", "enum": []}, ["schema.enum must be a non-empty array of string values"]),
            ({"type": "number", "enum": ["1"]}, ["schema.enum must be a non-empty array of number values"]),
            ({"type": "string", "enum": ("a",)}, ["schema.enum must be a non-empty array of string values"]),
            ({"type": "integer", "const": 1.5}, ["schema.const must be a integer value"]),
            ({"type": "boolean", "const": 1}, ["schema.const must be a boolean value"]),
            ({"type": "null", "enum": [None, 0]}, ["schema.enum must be a non-empty array of null values"]),
            (
                {"type": "integer", "enum": [1, 2], "const": 3},
                ["schema.const must be one of schema.enum when both are declared"],
            ),
            (
                {"type": "object", "properties": {"x": {"type": "array", "items": {"oneOf": [{}, 1]}}}},
                ["schema.properties.x.items.oneOf[1] must be a schema object"],
            ),
        ],
    )
    def test_each_rule_has_its_text(self, schema, expected):
        """spec/tests 11, 12, 16, 18, 19; spec/contract 1.2."""
        assert expected == schema_violations(schema)

    def test_all_violations_are_listed_not_only_the_first(self):
        """spec/tests 15."""
        schema = {
            "type": "object",
            "properties": {"a": {"type": "nope"}, "b": {"enum": [1]}},
            "required": ["c"],
            "additionalProperties": 1,
        }
        with pytest.raises(UnsupportedSchemaError) as caught:
            assert_json_schema(schema)
        assert [
            'schema.required names "c" which is not in properties',
            "schema.additionalProperties must be a boolean",
            "schema.properties.a.type must be one of object/array/string/number/integer/boolean/null",
            "schema.properties.b.enum requires type or oneOf",
        ] == caught.value.violations
        assert "unsupported JSON schema: " + "; ".join(caught.value.violations) == str(caught.value)
        assert ("JsonSchemaError", "UNSUPPORTED_SCHEMA") == (caught.value.recorded_name, caught.value.code)

    def test_a_list_with_an_extra_attribute_is_no_enum(self):
        """spec/tests 11."""

        class Tagged(list):
            note = "x"

        assert ["schema.enum must be a non-empty array of string values"] == schema_violations(
            {"type": "string", "enum": Tagged(["a"])}
        )

    def test_sharing_a_node_is_fine_and_an_ancestor_cycle_is_not(self):
        """spec/tests 17."""
        shared = {"type": "string"}
        assert [] == schema_violations({"oneOf": [shared, {"type": "array", "items": shared}]})
        cycle: dict = {"type": "array"}
        cycle["items"] = {"type": "array", "items": cycle}
        assert ["schema.items.items is circular"] == schema_violations(cycle)

    def test_deep_unions_and_arrays_need_no_recursion(self):
        """spec/tests 20: unions of depth 5 000 and arrays of depth 20 000 are asserted and applied."""
        union: dict = {"type": "string"}
        for _ in range(5_000):
            union = {"oneOf": [{"type": "integer"}, union]}
        assert [] == schema_violations(union)
        assert "x" == compile_schema(union).freeze("x")
        assert ['"value" must match exactly one oneOf branch (matched 0)'] == validate_value(union, True)
        array: dict = {"type": "string"}
        value: object = "x"
        for _ in range(20_000):
            array = {"type": "array", "items": array}
            value = [value]
        compiled = compile_schema(array)
        assert encode(compiled.freeze(value)) == encode(value)
        assert [] == validate_value(array, value)

    def test_integral_floats_are_integer_literals(self):
        assert [] == schema_violations({"type": "integer", "const": 1.0})

    def test_an_object_root_is_demanded_only_when_nothing_else_is_wrong(self):
        assert_object_schema({"type": "object"})
        with pytest.raises(UnsupportedSchemaError) as caught:
            assert_object_schema({"type": "array"})
        assert ['schema.type must be "object"'] == caught.value.violations
        with pytest.raises(UnsupportedSchemaError) as caught:
            assert_object_schema({"type": "array", "items": 1})
        assert ["schema.items must be a schema object"] == caught.value.violations


class TestAuthorSpelling:
    def test_an_object_must_say_whether_it_is_open(self):
        """spec/tests 8."""
        with pytest.raises(UnsupportedSchemaError, match=r"additionalProperties must be an explicit boolean"):
            value_schema({"type": "object", "properties": {}})

    def test_required_false_is_refused(self):
        """spec/tests 9."""
        with pytest.raises(UnsupportedSchemaError, match=r"schema.properties.a.required must be true"):
            parameters_schema({"a": {"type": "string", "required": False}})

    @pytest.mark.parametrize(
        "spec",
        [
            {"type": "array", "items": {"type": "string", "required": True}},
            {"type": "string", "required": True},
            {"oneOf": [{"type": "string", "required": True}, {"type": "null"}]},
        ],
    )
    def test_required_belongs_on_properties_only(self, spec):
        """spec/tests 10."""
        with pytest.raises(UnsupportedSchemaError, match=r"required is allowed only on a property"):
            value_schema(spec)

    def test_json_becomes_an_annotation_only_node(self):
        """spec/tests 13."""
        assert {"description": "anything"} == value_schema({"type": "json", "description": "anything"})
        assert {"type": "array", "items": {}} == value_schema({"type": "array", "items": {"type": "json"}})

    def test_the_parameter_root_is_open_and_required_keeps_declaration_order(self):
        """spec/tests 14."""
        compiled = parameters_schema(
            {
                "b": {"type": "string", "required": True, "description": "second letter"},
                "c": {"type": "integer", "enum": [1, 2], "default": 1},
                "a": {"type": "json", "required": True},
            }
        )
        assert {
            "type": "object",
            "properties": {
                "b": {"type": "string", "description": "second letter"},
                "c": {"type": "integer", "enum": [1, 2], "default": 1},
                "a": {},
            },
            "required": ["b", "a"],
        } == compiled
        assert ["b", "c", "a"] == list(compiled["properties"])

    def test_no_required_key_when_nothing_is_required(self):
        assert {"type": "object", "properties": {"a": {"type": "null"}}} == parameters_schema(
            {"a": {"type": "null"}}
        )

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"type": "string", "oneOf": []}, "schema cannot declare both type and oneOf"),
            ({}, "schema.type must be one of"),
            ({"type": "any"}, "schema.type must be one of"),
            ({"type": "string", "minLength": 1}, "schema.minLength is not supported here"),
            ({"type": "array", "properties": {}}, "schema.properties is not supported here"),
            ({"type": "string", "enum": ("a",)}, "schema.enum must be a non-empty array of string values"),
            ({"type": "string", "enum": ["a"], "const": "b"}, "schema.const must be one of schema.enum"),
            ({"type": "integer", "const": 1.5}, "schema.const must be a integer value"),
            ({"oneOf": [{"type": "null"}]}, "schema.oneOf must be an array of at least two schemas"),
            ([], "schema must be a schema object"),
        ],
    )
    def test_slips_are_refused(self, spec, message):
        """spec/tests 11, 12, 19."""
        with pytest.raises(UnsupportedSchemaError) as caught:
            value_schema(spec)
        assert message in str(caught.value)

    def test_cycles_are_refused_and_deep_specs_compile(self):
        cycle: dict = {"type": "array"}
        cycle["items"] = cycle
        with pytest.raises(UnsupportedSchemaError, match=r"schema.items is circular"):
            value_schema(cycle)
        deep: dict = {"type": "string"}
        for _ in range(20_000):
            deep = {"type": "array", "items": deep}
        assert [] == schema_violations(value_schema(deep))

    def test_compiling_copies_what_the_author_keeps(self):
        examples = [["a"]]
        compiled = value_schema({"type": "array", "examples": examples})
        examples[0].append("b")
        assert [["a"]] == compiled["examples"]

    def test_a_property_called_proto_survives(self):
        """spec/tests 21."""
        compiled = parameters_schema({"__proto__": {"type": "string", "required": True}})
        assert ["__proto__"] == list(compiled["properties"]) == compiled["required"]
        assert ['missing required property "__proto__"'] == validate_value(compiled, {}, "")
        assert {"__proto__": "x"} == compile_schema(compiled).freeze({"__proto__": "x"})


class TestDialects:
    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "string", "pattern": "x"},
            {"type": ["string", "null"]},
            {"$schema": "https://json-schema.org/draft/2020-12/schema"},
            {"type": "object", "properties": {"a": True}},
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"oneOf": [{}, {"type": "integer", "minimum": 0}]},
        ],
    )
    def test_words_beyond_the_vocabulary_make_a_full_schema(self, schema):
        assert is_full_schema(schema)

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "object", "required": ["a"]},
            {"type": "string", "enum": [1]},
            {"oneOf": [{}]},
            {"type": "x"},
        ],
    )
    def test_a_broken_rule_of_the_vocabulary_is_a_mistake_not_a_dialect(self, schema):
        """Decision 0103: such a schema is refused although JSON Schema would allow it."""
        assert not is_full_schema(schema)
        with pytest.raises(UnsupportedSchemaError):
            compile_schema(schema)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ("[4, 1.5, -0]", [4.0, 1.5, -0.0]),
        ("1e+21", 1e21),
        ('["a", null, true]', ["a", None, True]),
        (str(2**70), 2**70),
    ],
)
def test_literals_in_messages_are_written_as_results_are(expected, value):
    assert expected == json_text(value)
