"""The output ledger's arithmetic (spec facts 116 to 118 and the log rules of the design)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.ledger import OutputLedger


def json_bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_cap_of_seven_admits_the_euro_sign_and_six_does_not():
    assert OutputLedger(7, 10).admits("€")
    assert not OutputLedger(6, 10).admits("€")


def test_logs_abc_and_value_xy_need_eleven_bytes():
    exact, short = OutputLedger(11, 10), OutputLedger(10, 10)
    for ledger in (exact, short):
        assert ledger.add("abc\n") is None
    assert (True, False) == (exact.admits("xy"), short.admits("xy"))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), max_size=8))
def test_log_bytes_equal_the_json_array_of_lines(lines):
    ledger = OutputLedger(1 << 20, 100)
    for line in lines:
        assert ledger.add(line + "\n") is None
    assert json_bytes(lines) == ledger.log_bytes
    assert tuple(lines) == ledger.lines


@given(st.text(st.characters(codec="utf-8")), st.lists(st.integers(0, 50), max_size=5))
def test_lines_do_not_depend_on_how_the_text_was_cut(text, cuts):
    whole, pieces = OutputLedger(1 << 20, 1000), OutputLedger(1 << 20, 1000)
    whole.add(text)
    start = 0
    for cut in sorted(cuts):
        pieces.add(text[start:cut])
        start = max(start, min(cut, len(text)))
    pieces.add(text[start:])
    assert whole.lines == pieces.lines
    assert whole.log_bytes == pieces.log_bytes


def test_an_unfinished_piece_is_joined_to_what_follows():
    ledger = OutputLedger(100, 10)
    ledger.add("half")
    assert ("half",) == ledger.lines
    ledger.add(" and half\nnext")
    assert ("half and half", "next") == ledger.lines


def test_an_empty_line_is_an_entry():
    ledger = OutputLedger(100, 10)
    ledger.add("\n\n")
    assert ("", "") == ledger.lines


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(4, 60))
def test_overflowing_logs_keep_a_prefix_that_fits(text, cap):
    ledger = OutputLedger(cap, 1000)
    exceeded = ledger.add(text)
    assert ledger.log_bytes <= cap
    kept = "\n".join(ledger.lines)
    assert text.startswith(kept)
    assert (exceeded is None) == (
        json_bytes(text.split("\n")[: len(ledger.lines)]) <= cap and len(kept) >= len(text) - 1
    )


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), max_size=6), st.integers(4, 120)
)
def test_logs_and_the_overflow_message_fit_together(lines, cap):
    ledger = OutputLedger(cap, 1000)
    for line in lines:
        if ledger.add(line + "\n") is not None:
            break
    message = ledger.make_room_for_message()
    assert json_bytes(list(ledger.lines)) + json_bytes(message) <= max(cap, 4)
    assert f"outer output exceeded {cap} bytes; the limit is max_output_bytes".startswith(message)


def test_one_line_too_many_names_the_limit():
    ledger = OutputLedger(1000, 2)
    assert ledger.add("a\nb\n") is None
    reason = ledger.add("c")
    assert reason is not None
    assert "max_log_entries" in reason
    assert ("a", "b") == ledger.lines


@pytest.mark.parametrize("text", ["\ud800", "\x00", '"', "\\", "🎉", "é"])
def test_every_kind_of_character_is_cut_whole(text):
    ledger = OutputLedger(5, 10)
    ledger.add(text * 3)
    assert all(line == text * len(line) or not line for line in ledger.lines)
