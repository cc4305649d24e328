"""Many values at once: never another verdict than one by one, and really at once."""

from __future__ import annotations

import copy
import gc
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vocabulary_values import schemas, some_values

from sandbox.values import GIVE_UP, FrozenDict, FrozenList, NotJsonError, encode, freeze
from tool_bindings import acceptance
from tool_bindings.columns import compile_many
from tool_bindings.validation import InvalidValueError, compile_schema

LEVELS = 40
MANY = acceptance._MANY

ROW = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "score": {"type": "number"}},
    "required": ["id", "name", "score"],
    "additionalProperties": False,
}
STRING_OR_NULL = {"oneOf": [{"type": "string"}, {"type": "null"}]}
POINTS = {
    "type": "object",
    "properties": {
        "points": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "at": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "note": STRING_OR_NULL,
        "any": {},
        "maybe": {"type": "boolean"},
    },
    "required": ["points"],
}


def shape(value):
    """Return the types of all parts."""
    if isinstance(value, dict):
        return [type(value), [(type(key), shape(item)) for key, item in value.items()]]
    return [type(value), [shape(item) for item in value]] if isinstance(value, list) else type(value)


def is_same(left, right):
    return encode(left) == encode(right) and shape(left) == shape(right)


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(schemas, st.lists(some_values, min_size=1, max_size=6))
def test_what_is_accepted_at_once_is_what_is_accepted_one_by_one(schema, values):
    accept = compile_schema(schema).accept
    at_once = compile_many(schema, LEVELS)(copy.deepcopy(values))
    if at_once is not GIVE_UP:
        assert is_same([accept(value) for value in values], at_once)
    frozen = [freeze(value) for value in values]
    at_once = compile_many(schema, LEVELS)(list(frozen))
    if at_once is not GIVE_UP:
        assert all(left is right or left == right for left, right in zip(frozen, at_once, strict=True))
        assert is_same([accept(value) for value in frozen], at_once)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (ROW, [{"id": 1, "name": "a", "score": 0.5}, {"score": 1, "name": "b", "id": 2}]),
        (ROW, [freeze({"id": 1, "name": "a", "score": 0.5})]),
        ({"type": "object"}, [{"a": 1}, {"b": 1.5, "c": None}]),
        ({"type": "object", "properties": {}, "additionalProperties": True}, [{"a": True}]),
        (POINTS, [{"points": [[1, 2.5], []], "at": {"x": 1}, "kind": "a", "note": None, "any": 1}]),
        (POINTS, [{"points": []}, {"points": [[1]], "note": "x", "maybe": True}]),
        (POINTS, [freeze({"points": [[1]], "at": {"x": 1}, "any": [1]})]),
        ({"type": "array", "items": {"type": "string"}}, [["a"], [], ["b", "c"]]),
        ({"type": "array", "items": {"type": "object"}}, [[{"a": 1}], [{}]]),
        ({"type": "array"}, [[1], ["a", None]]),
        ({"type": "number", "enum": [1, 2.5]}, [1, 2.5, 1.0]),
        ({"type": "string", "const": "a", "enum": ["a", "b"]}, ["a"]),
        ({"oneOf": [{"type": "number"}, {"type": "null"}]}, [1, None, 2.5]),
        ({}, [1, "a", None, 2.5, freeze([1])]),
        ({}, [{"a": 1}, {"b": "c"}]),
    ],
)
def test_ordinary_rows_and_lists_are_accepted_at_once(schema, values):
    accept = compile_schema(schema).accept
    assert is_same([accept(value) for value in values], compile_many(schema, LEVELS)(list(values)))


class Key(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"id": 1, "name": "a"}, 'missing required property "value[0].score"'),
        ({"id": True, "name": "a", "score": 1}, '"value[0].id" must be an integer'),
        ({"id": 1.5, "name": "a", "score": 1}, '"value[0].id" must be an integer'),
        ({"id": 1, "name": None, "score": 1}, '"value[0].name" must be a string'),
        ({"id": 1, "name": "a", "score": math.nan}, '"value[0].score" is NaN'),
        ({"id": 1, "name": "a", "score": math.inf}, '"value[0].score" is infinite'),
        ({"id": 1, "name": "a", "score": 1, "more": 2}, '"value[0].more" is not a declared property'),
        ({"id": 1, "name": "a", Key("score"): 1}, '"value[0]" has the key'),
        ({"id": 1, "name": "a", 5: 1}, '"value[0]" has the key 5 (int)'),
    ],
)
def test_one_bad_row_among_many_is_refused_as_it_is_alone(row, expected):
    good = {"id": 1, "name": "a", "score": 0.5}
    compiled = compile_schema({"type": "array", "items": ROW})
    for rows in ([row], [row] + [good] * MANY):
        with pytest.raises((InvalidValueError, NotJsonError)) as caught:
            compiled.freeze(rows)
        assert expected in str(caught.value)


def test_many_rows_are_frozen_and_the_tools_own_stay_as_they_are():
    rows = [{"points": [[number]], "at": {"x": number}} for number in range(MANY)]
    before = copy.deepcopy(rows)
    frozen = compile_schema({"type": "array", "items": POINTS}).freeze(rows)
    assert FrozenList is type(frozen)
    assert FrozenDict is type(frozen[0]) is type(frozen[0]["at"])
    assert FrozenList is type(frozen[0]["points"]) is type(frozen[0]["points"][0])
    assert before == rows
    rows[0]["points"][0].append(5)
    rows[0]["at"]["x"] = 5
    assert before == frozen


def test_a_frozen_list_of_many_is_kept():
    compiled = compile_schema({"type": "array", "items": ROW})
    rows = freeze([{"id": 1, "name": "a", "score": 0.5}] * MANY)
    assert rows is compiled.accept(rows)
    assert GIVE_UP is compiled.accept(freeze([{"id": "1", "name": "a", "score": 0.5}] * MANY))


def test_floats_that_are_whole_are_integers_among_many_too():
    compiled = compile_schema({"type": "array", "items": {"type": "integer"}})
    values = [1, 2.0] * MANY
    assert is_same(freeze(values), compiled.accept(values))


def test_rows_that_contain_themselves_are_refused():
    row: dict = {"id": 1}
    row["self"] = [row] * MANY
    with pytest.raises(NotJsonError, match="contains itself"):
        compile_schema({"type": "array"}).freeze([row] * MANY)


def test_the_collector_is_as_before_after_very_many(monkeypatch):
    monkeypatch.setattr(acceptance, "MANY_CONTAINERS", MANY)
    compiled = compile_schema({"type": "array", "items": ROW})
    assert gc.isenabled()
    compiled.accept([{"id": 1, "name": "a", "score": 0.5}] * MANY)
    compiled.accept([{"id": 1}] * MANY)
    assert gc.isenabled()
