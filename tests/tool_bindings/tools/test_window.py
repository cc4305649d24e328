"""Windows of lines: spec/tests 134 and 135, and odd files."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tool_bindings.tools.window import NotTextError, ReadLimits, scan

SMALL = ReadLimits(lines=5, line_characters=4, window_bytes=60, stream_bytes=100)


def window(*pieces, offset=1, count=None, limits=SMALL):
    found = scan(pieces, offset=offset, count=limits.lines if count is None else count, limits=limits)
    return found.lines, found.total_lines


def test_empty_file_has_no_lines():
    assert window() == ([], 0)


def test_final_line_break_adds_no_empty_line():
    assert window(b"a\nb\n") == ([(1, "a"), (2, "b")], 2)


def test_missing_final_line_break_keeps_the_last_line():
    assert window(b"a\nb") == ([(1, "a"), (2, "b")], 2)


def test_blank_lines_are_lines():
    assert window(b"\n\n") == ([(1, ""), (2, "")], 2)


def test_one_carriage_return_is_stripped_and_a_second_stays():
    assert window(b"a\r\nb\r\r\nc\rd\r") == ([(1, "a"), (2, "b\r"), (3, "c\rd")], 3)


def test_line_of_exactly_the_cap_is_whole():
    assert window(b"abcd\n") == ([(1, "abcd")], 1)


def test_line_of_exactly_the_cap_before_a_carriage_return_is_whole():
    assert window(b"abcd\r\n") == ([(1, "abcd")], 1)


def test_longer_line_is_cut_with_a_suffix():
    assert window(b"abcde\nx") == ([(1, "abcd... (line truncated to 4 chars)"), (2, "x")], 2)


def test_cap_counts_characters_not_bytes():
    assert window("éééé".encode()) == ([(1, "éééé")], 1)
    assert window("😀😀😀😀😀".encode()) == ([(1, "😀😀😀😀... (line truncated to 4 chars)")], 1)


def test_giant_line_without_line_break_keeps_only_what_is_shown():
    lines, total = window(*[b"x" * 1_000_000] * 20)
    assert (lines, total) == ([(1, "xxxx... (line truncated to 4 chars)")], 1)


def test_byte_budget_stops_before_the_line_that_would_exceed_it():
    limits = ReadLimits(lines=2000, line_characters=4, window_bytes=60, stream_bytes=100)
    # 12 lines of 4 bytes take 12 * 4 + 11 separators = 59; a 13th would need 5 more.
    lines, total = window(b"abcd\n" * 20, limits=limits)
    assert (len(lines), total) == (12, 20)


def test_line_that_exactly_fills_the_budget_is_kept():
    limits = ReadLimits(lines=2000, line_characters=4, window_bytes=60, stream_bytes=100)
    lines, _ = window(b"abcd\n" * 12 + b"\n" + b"abcd\n", limits=limits)  # 59 bytes, then an empty line: 60
    assert len(lines) == 13


def test_window_stopped_by_bytes_does_not_take_later_shorter_lines():
    limits = ReadLimits(lines=2000, line_characters=4, window_bytes=60, stream_bytes=100)
    lines, total = window(b"abcd\n" * 12 + b"abcd\n" + b"\n\n", limits=limits)
    assert (len(lines), total) == (12, 15)


def test_offset_past_the_end_gives_no_lines_and_the_total():
    assert window(b"a\nb\n", offset=9) == ([], 2)


@pytest.mark.parametrize("content", [b"\xff", b"ok\n\xc3", b"\xed\xa0\x80", b"a\n" * 100 + b"\xfe"])
def test_invalid_utf8_anywhere_is_not_text(content):
    with pytest.raises(NotTextError, match="not valid UTF-8"):
        window(content)


def test_nul_among_the_first_8192_bytes_is_binary():
    with pytest.raises(NotTextError, match="binary"):
        window(b"a" * 8000, b"a" * 191 + b"\0")


def test_nul_after_8192_bytes_is_a_character_like_any_other():
    assert window(b"a\n" * 4096 + b"\0", offset=4097) == ([(4097, "\0")], 4097)


def test_limits_that_cannot_hold_one_line_are_refused():
    with pytest.raises(ValueError, match="raise window_bytes or lower line_characters"):
        ReadLimits(line_characters=2000, window_bytes=2000)


@pytest.mark.parametrize("name", ["lines", "line_characters", "window_bytes", "stream_bytes"])
def test_limits_below_one_are_refused(name):
    with pytest.raises(ValueError, match=name):
        ReadLimits(**{name: 0})


def plain_window(content, offset, count, limits):
    """The rules, written for one string in memory."""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    kept, budget = [], limits.window_bytes
    for number in range(offset, min(offset + count, len(lines) + 1)):
        text = lines[number - 1].removesuffix("\r")
        if len(text) > limits.line_characters:
            text = text[: limits.line_characters] + f"... (line truncated to {limits.line_characters} chars)"
        budget -= len(text.encode()) + (1 if kept else 0)
        if budget < 0:
            break
        kept.append((number, text))
    return kept, len(lines)


PIECES = ["a", "bc", "\n", "\n", "\r", "\r\n", "é", "😀", "defg"]


@settings(deadline=None)
@given(
    content=st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    offset=st.integers(1, 12),
    count=st.integers(1, 8),
)
def test_cutting_the_file_into_pieces_changes_nothing(content, cuts, offset, count):
    data = content.encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges)]
    assert plain_window(content, offset, count, SMALL) == window(*pieces, offset=offset, count=count)
