"""Content blocks and the default rendering."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_bindings.content import blocks_text, render_json, render_value, text_block

simple = st.none() | st.booleans() | st.integers() | st.text('aé"\\\n', max_size=5)
shallow = st.recursive(
    simple, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text("ab"), x, max_size=3), max_leaves=4
)


def depth(value):
    if not isinstance(value, (dict, list)) or not value:
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value))


class TestRenderJson:
    @given(shallow)
    def test_shallow_values_read_like_two_space_json(self, value):
        """spec/tests 87."""
        if depth(value) <= 5:
            assert json.dumps(value, indent=2, ensure_ascii=False) == render_json(value)

    def test_containers_from_depth_five_are_compact(self):
        """spec/tests 87."""
        value: object = {"a": [1, {"b": 2}]}
        for _ in range(5):
            value = [value]
        assert '          {"a":[1,{"b":2}]}\n' in render_json(value)

    def test_a_deep_value_stays_short(self):
        """spec/tests 87."""
        value: list = []
        for _ in range(5_000):
            value = [value]
        assert len(render_json(value)) < 11_000

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({}, "{}"),
            ([], "[]"),
            (None, "null"),
            (1.0, "1"),
            (1e21, "1e+21"),
            ("\ud800", '"\\ud800"'),
            (True, "true"),
        ],
    )
    def test_atoms_and_empty_containers(self, value, expected):
        assert expected == render_json(value)

    def test_a_text_of_a_subclass_is_written_as_a_text(self):
        class Name(str):
            __slots__ = ()

        assert '{\n  "b": [\n    "x"\n  ]\n}' == render_json({"b": [Name("x")]})

    def test_a_huge_integer_is_exact(self):
        assert "1" + "0" * 5000 == render_json(10**5000)


class TestCut:
    def test_a_long_value_shows_its_head_and_its_tail(self):
        text = render_json(list(range(1_000)), 100)
        assert text.startswith("[\n  0,\n  1,\n")
        assert text.endswith("  998,\n  999\n]")
        assert "… (cut: only the first and last 50 bytes are shown) …" in text

    def test_only_the_shown_part_is_written(self):
        """DESIGN section 7."""
        value = {"rows": [{"n": n} for n in range(500_000)]}
        started = time.process_time()
        render_json(value, 1_000)
        assert time.process_time() - started < 0.5

    @given(st.text("aé€🎉", max_size=60), st.integers(2, 40))
    def test_a_cut_never_splits_a_character(self, text, limit):
        shown = render_value(text, limit)
        if len(text.encode()) <= limit:
            assert text == shown
            return
        head, notice, tail = shown.split("\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert limit - 6 <= len(head.encode()) + len(tail.encode()) <= limit
        assert f"of {len(text.encode())} bytes" in notice

    @pytest.mark.parametrize("limit", [40, 100, 1001, 4000])
    @pytest.mark.parametrize(
        "value",
        [
            [{"id": number, "name": "é" * (number % 7), "tags": [number, None]} for number in range(400)],
            {f"key {number}": {"a": [1.5, {"b": True}], "c": {}} for number in range(400)},
            [[[[[[number, "x"]]]]] for number in range(300)],
            list(range(2_000)),
            ["x" * 500] * 40,
        ],
    )
    def test_a_cut_value_shows_both_ends_of_the_whole_text(self, value, limit):
        whole = render_json(value)
        head, tail = re.split("\n… \\(cut: .*\\) …\n", render_json(value, limit))
        assert whole.startswith(head)
        assert whole.endswith(tail)
        # Up to half the limit each, but for the bytes of a character that would be cut in two.
        assert limit - limit // 2 - len(head.encode()) in (0, 1)
        assert limit // 2 - len(tail.encode()) in (0, 1)

    @pytest.mark.parametrize("limit", [20, 50, 1000])
    def test_what_fits_is_shown_whole(self, limit):
        assert render_json([1, 2]) == render_json([1, 2], limit)


def test_text_of_blocks_names_what_is_not_text():
    blocks = [
        text_block("a"),
        {"type": "image", "data": "x"},
        text_block("b"),
        {"type": "reasoning", "text": "hm"},
    ]
    assert "a\n[image content]\nb\n[reasoning content]" == blocks_text(blocks)


@pytest.mark.parametrize("count", [31, 32, 33, 64, 65, 200])
@pytest.mark.parametrize(
    "odd", [None, pytest.param(10**5000, id="long"), "text", 1.0, [1, 2], {"a": [1]}, []]
)
def test_a_long_array_is_written_as_its_items_are(count, odd):
    items = [*range(count - 1), odd]
    one_by_one = ",\n  ".join(render_json([item])[4:-2] for item in items)
    assert f"[\n  {one_by_one}\n]" == render_json(items)
