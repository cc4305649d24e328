"""Values against schemas: verdicts, messages, and agreement with jsonschema."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from vocabulary_values import schemas, some_values

from sandbox.values import GIVE_UP, FrozenDict, FrozenList, NotJsonError, freeze
from tool_bindings.explanation import explain
from tool_bindings.schema import schema_violations
from tool_bindings.validation import InvalidValueError, compile_schema, validate_value

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}


class TestMessages:
    @pytest.mark.parametrize(
        ("schema", "value", "expected"),
        [
            (STRING, 1, ['"value" must be a string']),
            (NUMBER, "1", ['"value" must be a number']),
            (NUMBER, math.nan, ['"value" must be a finite JSON number']),
            (NUMBER, True, ['"value" must be a number']),
            (INTEGER, 1.5, ['"value" must be an integer']),
            (INTEGER, True, ['"value" must be an integer']),
            ({"type": "boolean"}, 1, ['"value" must be a boolean']),
            ({"type": "null"}, 0, ['"value" must be null']),
            ({"type": "array"}, {}, ['"value" must be an array']),
            ({"type": "object"}, [], ['"value" must be an object']),
            (
                {"type": "string", "enum": ["a", "b"], "const": "b"},
                "c",
                ['"value" must be one of ["a", "b"]'],
            ),
            ({"type": "string", "enum": ["a", "b"], "const": "b"}, "a", ['"value" must be "b"']),
            ({"type": "boolean", "const": True}, False, ['"value" must be true']),
            ({"type": "null", "enum": [None]}, 0, ['"value" must be null']),
            ({"oneOf": [INTEGER, NUMBER]}, 1, ['"value" must match exactly one oneOf branch (matched 2)']),
            ({"oneOf": [INTEGER, NUMBER]}, 1.5, []),
            ({"oneOf": [INTEGER, STRING]}, None, ['"value" must match exactly one oneOf branch (matched 0)']),
            (
                {"type": "array", "items": STRING},
                ["a", 1, "b", 2],
                ['"value[1]" must be a string', '"value[3]" must be a string'],
            ),
        ],
    )
    def test_each_rule_has_its_text(self, schema, value, expected):
        """spec/tests 22, 23, 24, 27, 31; spec/contract 1.2."""
        assert expected == validate_value(schema, value)

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            (INTEGER, 2),
            (INTEGER, 2.0),
            (INTEGER, 10**400),
            (NUMBER, -0.0),
            ({"type": "integer", "const": 1}, 1.0),
        ],
    )
    def test_integers_may_be_written_as_floats_and_have_any_size(self, schema, value):
        """spec/tests 22, and decision 0100: -0.0 is a number like any other."""
        assert [] == validate_value(schema, value)
        assert value == compile_schema(schema).freeze(value)

    def test_missing_properties_come_first_then_children_in_order_then_undeclared_keys(self):
        """spec/tests 25, 26."""
        schema = {
            "type": "object",
            "properties": {
                "x": STRING,
                "y": {"type": "object", "properties": {"z": INTEGER, "w": STRING}, "required": ["w"]},
                "n": INTEGER,
            },
            "required": ["x", "n"],
            "additionalProperties": False,
        }
        assert [
            'missing required property "value.x"',
            'missing required property "value.y.w"',
            '"value.y.z" must be an integer',
            '"value.n" must be an integer',
            '"value.extra" is not a declared property (additionalProperties: false)',
        ] == validate_value(schema, {"extra": 1, "n": "1", "y": {"z": "1"}})

    def test_parameters_have_no_root_label(self):
        schema = {
            "type": "object",
            "properties": {"a": {"type": "array", "items": STRING}},
            "required": ["b"],
        }
        assert ['missing required property "b"', '"a[0]" must be a string'] == validate_value(
            schema, {"a": [1]}, ""
        )
        assert ['"arguments" must be an object'] == validate_value(schema, [], "")

    @pytest.mark.parametrize("value", [print, math.inf, math.nan, {1: 2}, {"a": object()}, (1,), {1}])
    def test_any_json_refuses_what_is_not_json(self, value):
        """spec/tests 28; -0.0 differs by decision 0100."""
        assert ['"value" must be a lossless JSON value'] == validate_value({}, value)

    def test_any_json_refuses_cycles(self):
        """spec/tests 28."""
        cycle: list = []
        cycle.append(cycle)
        assert ['"value" must be a lossless JSON value'] == validate_value({}, cycle)
        assert ['"value" must be a dense lossless JSON array'] == validate_value({"type": "array"}, cycle)
        assert ['"value" must be a lossless JSON object'] == validate_value({"type": "object"}, {"a": cycle})

    def test_a_hostile_object_is_one_violation_and_never_runs(self):
        """spec/tests 29."""

        class Hostile(dict):
            def __getattribute__(self, name):
                raise RuntimeError

            __iter__ = __len__ = __contains__ = __getitem__ = __eq__ = __hash__ = None

        schema = {"type": "object", "properties": {"a": {}, "b": STRING}}
        assert ['"value.a" must be a lossless JSON value'] == validate_value(
            schema, {"a": Hostile(), "b": ""}
        )
        assert ['"value" must be an object'] == validate_value(schema, Hostile())

    def test_literals_are_compared_by_json_type(self):
        assert [] == validate_value({"type": "number", "enum": [1]}, 1.0)
        assert ['"value" must be a number'] == validate_value({"type": "number", "enum": [1]}, True)
        assert GIVE_UP is compile_schema({"type": "number", "enum": [1]}).accept(True)


class TestCompiledPass:
    def test_it_freezes_while_it_checks(self):
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}}
        frozen = compile_schema(schema).accept({"a": [{"b": [1]}], "c": {"d": 1}})
        assert {"a": [{"b": [1]}], "c": {"d": 1}} == frozen
        assert FrozenDict is type(frozen) is type(frozen["a"][0]) is type(frozen["c"])
        assert FrozenList is type(frozen["a"]) is type(frozen["a"][0]["b"])

    def test_a_frozen_value_is_checked_and_kept(self):
        compiled = compile_schema(
            {"type": "array", "items": {"type": "object", "additionalProperties": False}}
        )
        frozen = freeze([{}])
        assert frozen is compiled.accept(frozen)
        assert GIVE_UP is compiled.accept(freeze([{"a": 1}]))

    def test_maps_are_checked_by_their_value_schema(self):
        """Decision 0104: dict[str, int] compiles to a schema as additionalProperties."""
        compiled = compile_schema({"type": "object", "additionalProperties": INTEGER})
        assert {"a": 1} == compiled.freeze({"a": 1})
        with pytest.raises(InvalidValueError, match=r'"value.a" must be an integer'):
            compiled.freeze({"a": "1"})

    def test_freeze_says_what_is_wrong(self):
        compiled = compile_schema({"type": "object", "properties": {"a": INTEGER}, "required": ["a"]})
        with pytest.raises(InvalidValueError) as caught:
            compiled.freeze({"a": "x"})
        assert ('"value.a" must be an integer', ("a",)) == caught.value.violations[0][:2]
        with pytest.raises(NotJsonError, match=r'"value.a" is a set'):
            compiled.freeze({"a": {1}})

    def test_a_huge_schema_is_not_compiled_to_nested_functions(self):
        schema: dict = INTEGER
        for _ in range(60):
            schema = {"type": "object", "properties": {"a": schema}}
        compiled = compile_schema(schema)
        value: object = 1
        for _ in range(60):
            value = {"a": value}
        assert GIVE_UP is compiled.accept(value)
        assert value == compiled.freeze(value)


# --- generated schemas of the vocabulary, and values that sometimes fit ---------------------------------


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(schemas, st.lists(some_values, min_size=1, max_size=6))
def test_compiled_pass_walk_and_jsonschema_agree(schema, candidates):
    """Issue 5: for generated schemas and values all three give the same verdict."""
    assert [] == schema_violations(schema, maps=True)
    compiled = compile_schema(schema)
    oracle = Draft202012Validator(schema)
    for value in candidates:
        valid = oracle.is_valid(value)
        accepted = compiled.accept(value)
        assert valid == (accepted is not GIVE_UP), (schema, value)
        assert valid == (not explain(schema, value, "value")), (schema, value)
        if valid:
            assert value == accepted == compiled.accept(accepted)
