"""Freezing one's own values gives what freezing anybody's does."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.freezing import freeze_own
from sandbox.frozen import FrozenDict, FrozenList, frozen_rows
from sandbox.values import encode, freeze

atoms = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
json_values = st.recursive(
    atoms, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


def shape(value):
    """Return the types of all containers."""
    if isinstance(value, dict):
        return [type(value), [shape(item) for item in value.values()]]
    return [type(value), [shape(item) for item in value]] if isinstance(value, list) else None


@given(json_values)
def test_every_container_is_frozen_and_the_text_stays_the_same(value):
    frozen = freeze_own(copy.deepcopy(value))
    assert encode(value) == encode(frozen)
    assert shape(freeze(value)) == shape(frozen)


@pytest.mark.parametrize(
    "value",
    [
        [{"a": 1}, {"b": [2]}],
        [{"a": 1}, [2]],
        [[], {}],
        {"a": {"b": [{"c": []}]}},
    ],
)
def test_containers_inside_rows_are_frozen_too(value):
    assert shape(freeze(value)) == shape(freeze_own(copy.deepcopy(value)))


def test_a_value_of_any_depth_is_frozen():
    value: object = 1
    for level in range(20_000):
        value = [value] if level % 2 else {"k": value}
    frozen = freeze_own(value)
    depth = 0
    while isinstance(frozen, list | dict):
        assert type(frozen) in (FrozenList, FrozenDict)
        frozen = frozen["k"] if isinstance(frozen, dict) else frozen[0]
        depth += 1
    assert 20_000 == depth


def test_rows_from_columns_have_the_names_in_order():
    rows = frozen_rows(["b", "a"], [[1, 2], ["x", "y"]])
    assert ['{"b":1,"a":"x"}', '{"b":2,"a":"y"}'] == [encode(row).decode() for row in rows]
    assert [FrozenDict, FrozenDict] == [type(row) for row in rows]
