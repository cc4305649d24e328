"""Large results in parts: what was taken apart is put together, and its text is no longer than was said."""

from __future__ import annotations

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import packed
from sandbox.frozen import FrozenDict, FrozenList
from sandbox.values import encode, freeze

HEADER_BYTES = 4
MANY = packed._MANY

text = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None), max_size=5)
finite = st.floats(allow_nan=False, allow_infinity=False)
atoms = st.none() | st.booleans() | st.integers() | finite | text
any_value = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=5
)


@st.composite
def rows(draw):
    """Draw objects with the same names, each with values of a kind of its own."""
    kinds = st.sampled_from(
        [st.integers(), st.floats(allow_nan=False, allow_infinity=False), text, any_value]
    )
    columns = draw(st.dictionaries(text, kinds, min_size=1, max_size=3))
    return draw(st.lists(st.fixed_dictionaries(columns), max_size=6))


lists = st.lists(st.integers()) | st.lists(text) | st.lists(any_value, max_size=6) | rows()
large_values = lists | st.dictionaries(text, lists | st.dictionaries(text, lists, max_size=2), max_size=3)


def is_frozen(value):
    if isinstance(value, dict):
        return type(value) is FrozenDict and all(map(is_frozen, value.values()))
    if isinstance(value, list):
        return type(value) is FrozenList and all(map(is_frozen, value))
    return True


def parts_of(value):
    return list(packed.pack("result", 7, freeze(value)) or ())


def put_together(parts, unpacker=None):
    """Return the messages."""
    unpacker = unpacker or packed.Unpacker()
    answers = [unpacker.add(memoryview(part.frame)[HEADER_BYTES:]) for part in parts]
    assert [None] * (len(answers) - 1) == answers[:-1]
    return answers[-1]


def assert_comes_back(value, parts):
    name, number, result = put_together(parts)
    assert ("result", 7) == (name, number)
    assert encode(value) == encode(result)
    assert is_frozen(result)
    assert len(encode(value)) <= sum(part.most_json_bytes for part in parts)


@given(large_values)
def test_every_value_comes_back_frozen_and_with_the_same_text(value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "_MANY", 1)
        patch.setattr(packed, "_ITEMS_PER_PART", 2)
        parts = parts_of(value)
        if parts:
            assert_comes_back(value, parts)


@pytest.mark.parametrize(
    "item",
    [
        {"id": 1, "name": "n", "score": 0.1},
        {"nested": {"a": [1, {"b": None}]}, "maybe": None},
        {"edge": -0.0, "long": 10**5000, "least": -(2**63), "most": 2**63},
        {"zero": "a\0b", "half": "\ud83d", "other half": "\ude00", "": "é🎉"},
        1.5,
        7,
        "text",
        "\0",
        2**100,
    ],
)
@pytest.mark.parametrize("count", [MANY, packed._ITEMS_PER_PART, packed._ITEMS_PER_PART + 1])
@pytest.mark.parametrize(
    "place", [lambda items: items, lambda items: {"k": {"l": items, "m": 1}, "n": items}]
)
def test_long_lists_of_one_kind_are_taken_out_wherever_they_are(item, count, place):
    value = place([item] * count)
    parts = parts_of(value)
    assert_comes_back(value, parts)
    # Each list makes one part per thousand.
    assert math.ceil(count / packed._ITEMS_PER_PART) * (1 if isinstance(value, list) else 2) == len(parts)


@pytest.mark.parametrize(
    "value",
    [
        1,
        "x" * 10_000,
        [{"a": 1}] * (MANY - 1),
        [{}] * MANY,
        [1, "a"] * MANY,
        [None] * MANY,
        [[1]] * MANY,
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}] * MANY,
        [{"a": 1}, {"a": 1, "b": 2}] * MANY,
        [{"a": 1, "b": 2}, {"c": 1}, {"a": 1, "b": 2, "c": 3}] * MANY,
        {"a": {"b": {"c": {"d": {"e": [1] * MANY}}}}},
    ],
)
def test_what_gains_nothing_stays_text(value):
    assert [] == parts_of(value)


def test_names_are_not_repeated_for_rows_that_do_not_have_them():
    wide = {str(number): number for number in range(2_000)}
    value = freeze([wide] + [{}] * 5_000)
    tracemalloc.start()
    try:
        assert packed.pack("result", 7, value) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Two thousand names for each of five thousand rows would be ten million references.
    assert peak < 10_000_000


def test_a_message_that_was_given_up_leaves_nothing_behind():
    unpacker = packed.Unpacker()
    given_up = parts_of({"a": ["old"] * 3_000, "b": [1] * MANY})
    for part in given_up[:2]:
        unpacker.add(memoryview(part.frame)[HEADER_BYTES:])
    assert ["result", 7, {"a": ["new"] * MANY}] == put_together(parts_of({"a": ["new"] * MANY}), unpacker)


def test_values_that_are_not_frozen_stay_text():
    assert packed.pack("result", 7, [{"a": 1}] * MANY) is None
