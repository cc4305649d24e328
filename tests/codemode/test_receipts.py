"""Receipts keep what identifies a call, within bounds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.receipts import (
    MAX_ARGUMENT_BYTES,
    MAX_DONE_CHARS,
    CallRecord,
    already_done,
    bounded_arguments,
)
from sandbox import values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=20), inner, max_size=20),
    max_leaves=60,
)


def done(tool="write", **changes):
    record = CallRecord("c:1", tool, {"a": 1}, status="succeeded", executed=True)
    for name, value in changes.items():
        setattr(record, name, value)
    return record


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=50), JSON, max_size=12))
def test_small_arguments_stay_as_they_are_and_large_ones_become_small(arguments):
    bounded = bounded_arguments(arguments)
    if values.json_size(arguments) <= MAX_ARGUMENT_BYTES:
        assert arguments is bounded
    else:
        # One more value, cut, may follow the one that filled the bound.
        assert values.json_size(bounded) <= MAX_ARGUMENT_BYTES + 2048


def test_a_long_string_is_cut_and_says_how_long_it_was():
    bounded = bounded_arguments({"file_path": "a.txt", "content": "x" * 5000})
    assert "a.txt" == bounded["file_path"]
    assert bounded["content"].startswith("xxx")
    assert bounded["content"].endswith("… (5000 characters)")


def test_an_integer_of_any_length_is_bounded():
    bounded = bounded_arguments({"n": 10**20000})
    assert values.json_size(bounded) < MAX_ARGUMENT_BYTES


def test_what_is_not_an_object_is_cut_too():
    assert "[…] (5000 items, 10001 bytes)" == bounded_arguments([1] * 5000)


def test_only_calls_that_may_have_had_an_effect_are_listed_as_done():
    records = [
        done(line=3),
        done("fail", status="failed"),
        done("later", status="not_started", executed=False),
        done("thread", status="unknown"),
    ]
    text = already_done(records)
    assert '- write({"a":1}) (line 3)' in text
    assert '- thread({"a":1}): outcome unknown' in text
    assert "fail" not in text.partition("\n")[2]
    assert "later" not in text
    assert "" == already_done(records[1:3])


def test_the_list_of_done_calls_has_a_bound_and_counts_the_rest():
    text = already_done([done(arguments={"n": number}) for number in range(1000)])
    assert len(text) < MAX_DONE_CHARS + 200
    shown = text.count("- write(")
    assert text.endswith(f"- and {1000 - shown} more")
