"""Hunks of a change."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tool_bindings.tools.diff import Hunk, hunks


def numbered(count, **changes):
    lines = [f"line {n}" for n in range(count)]
    for key, text in changes.items():
        lines[int(key[1:])] = text
    return "\n".join(lines) + "\n"


def test_equal_texts_have_no_hunks():
    assert hunks("a\nb\n", "a\nb\n") == []
    assert hunks("", "") == []


def test_hunk_has_three_context_lines_on_both_sides():
    (hunk,) = hunks(numbered(20), numbered(20, n10="changed"))
    assert hunk.old_text == "line 7\nline 8\nline 9\nline 10\nline 11\nline 12\nline 13"
    assert hunk.new_text == "line 7\nline 8\nline 9\nchanged\nline 11\nline 12\nline 13"


def test_changes_six_lines_apart_are_one_hunk_and_seven_are_two():
    assert len(hunks(numbered(30), numbered(30, n5="x", n12="y"))) == 1
    assert len(hunks(numbered(30), numbered(30, n5="x", n13="y"))) == 2


def test_text_put_into_nothing_has_no_old_text():
    assert hunks("", "a\nb\n") == [Hunk(None, "a\nb")]


def test_text_taken_away_entirely_leaves_an_empty_new_text():
    assert hunks("a\nb\n", "") == [Hunk("a\nb", "")]


def test_missing_final_line_break_is_a_difference_without_a_marker():
    assert hunks("a", "a\n") == [Hunk("a", "a")]


def test_insertion_and_deletion():
    (inserted,) = hunks("a\nb\nc\n", "a\nx\nb\nc\n")
    assert inserted == Hunk("a\nb\nc", "a\nx\nb\nc")
    (deleted,) = hunks("a\nx\nb\nc\n", "a\nb\nc\n")
    assert deleted == Hunk("a\nx\nb\nc", "a\nb\nc")


def test_replacements_in_a_large_file_of_equal_lines_stay_apart():
    lines = ["same"] * 2000
    lines[500] = lines[1500] = "old"
    after = ["new" if line == "old" else line for line in lines]
    found = hunks("\n".join(lines), "\n".join(after))
    assert [hunk.new_text.count("new") for hunk in found] == [1, 1]


def test_pathological_files_take_a_bounded_time():
    before = "a\nb\n" * 100_000
    after = "b\na\na\n" * 100_000
    start = time.process_time()
    assert hunks(before, after)
    assert time.process_time() - start < 20


LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", ""]), max_size=40).map("\n".join)


def apply(before, found):
    """Replace each hunk's old text by its new one, in order; hunks of odd texts may occur earlier too."""
    at = 0
    result = []
    old = before.split("\n")
    for hunk in found:
        block = hunk.old_text.split("\n") if hunk.old_text is not None else []
        while old[at : at + len(block)] != block:
            result.append(old[at])
            at += 1
        result += hunk.new_text.split("\n") if hunk.new_text or not block else []
        at += len(block)
    return "\n".join([*result, *old[at:]])


@settings(deadline=None)
@given(count=st.integers(1, 80), changed=st.sets(st.integers(0, 79)), extra=st.sets(st.integers(0, 79)))
def test_applying_the_hunks_gives_the_new_text(count, changed, extra):
    lines = [f"line {n}" for n in range(count)]
    after = []
    for number, line in enumerate(lines):
        after.append(f"new {number}" if number in changed else line)
        if number in extra:
            after.append(f"extra {number}")
    assert apply("\n".join(lines), hunks("\n".join(lines), "\n".join(after))) == "\n".join(after)


@settings(deadline=None)
@given(before=LINES, after=LINES)
def test_equal_texts_and_only_those_have_no_hunks(before, after):
    assert (hunks(before, after) == []) == (before == after)
