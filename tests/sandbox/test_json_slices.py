"""Reading in pieces gives what reading at once gives, for every text, and takes the same texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import json_slices
from sandbox.json_slices import decode_in_slices
from sandbox.json_text import decode, encode

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@pytest.fixture(params=[1, 7, 40, 32 * 1024], autouse=True)
def slice_chars(request, monkeypatch):
    monkeypatch.setattr(json_slices, "SLICE_CHARS", request.param)


@pytest.mark.parametrize("space", ["", " "])
def test_every_value_is_read_as_the_whole_text_is(slice_chars, space):
    @given(values)
    def check(value):
        text = json.dumps(value, separators=(space + "," + space, space + ":" + space))
        assert repr(decode(text)) == repr(decode_in_slices(text))

    check()


NOT_JSON = """
[ | [1 | [1, | [,1] | [ ,1] | [1,,2] | [1,2,] | [1]] | [1],[2] | { | {"a"} | {"a":1,} | [1 2] | [nul]
[NaN,1] | [1,NaN] | [1e999,1] | ["a,b] | [[1,2],[3,4] | [1} | {"a":[1,2} | 1,2
"""
SHAPES = {
    "empty lists": [[]] * 3000,
    "empty objects": [{}] * 3000,
    "integers": list(range(3000)),
    "floats": [1.5, -0.0] * 900,
    "texts that look like cuts": ["a],", '"', "\\", "},{", ","] * 300,
    "nested": [[1, [2, [3]]], {"a": [4, {"b": []}]}] * 200,
    "lists in objects": {"a": [[1, 2]] * 500, "b": {"c": list("xyz") * 300}},
    "an integer of many digits": [10**5000, 1],
}


@pytest.mark.parametrize(
    "text", ["", *(text for line in NOT_JSON.split("\n") for text in line.split(" | ") if text)]
)
def test_a_text_that_is_not_json_is_refused(text):
    for read in (decode, decode_in_slices):
        with pytest.raises(ValueError):  # noqa: PT011  # the words differ
            read(text)


@pytest.mark.parametrize("shape", SHAPES)
def test_large_values_of_each_shape_are_read_exactly(shape):
    text = encode(SHAPES[shape]).decode()
    assert SHAPES[shape] == decode_in_slices(text)


def test_depth_has_no_bound():
    depth = 20_000
    value = decode_in_slices("[" * depth + "1,2" + "]" * depth)
    for _ in range(depth - 1):
        (value,) = value
    assert [1, 2] == value
