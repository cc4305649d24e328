"""Text shown on terminals is harmless and fits."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode.terminal import (
    BatchBar,
    Paint,
    ProgressLine,
    argument_hint,
    cells,
    escape,
    one_line,
    wants_color,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        raise OSError


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("plain text, ünïcödé, 漢字", "plain text, ünïcödé, 漢字"),
        (r"\x1b[31mred", "\x1b[31mred"),
        (r"\x1b]0;title\x07", "\x1b]0;title\x07"),
        (r"a\rb\nc\td\x00", "a\rb\nc\td\0"),
        (r"\x9b31m", "\x9b31m"),
        (r"abc\u202egnp.exe", "abc\u202egnp.exe"),
        (r"\u2066\u2069\u200f\ufeff", "\u2066\u2069\u200f\ufeff"),
        (r"\u2028\u2029", "\u2028\u2029"),
        (r"\ud800", "\ud800"),
        (r"\U000e0041", "\U000e0041"),
        ("👩\u200d🔬 की", "👩\u200d🔬 की"),
        ("no-break\u00a0space", "no-break\u00a0space"),
    ],
)
def test_what_could_act_on_a_terminal_is_written_as_an_escape(expected, text):
    assert expected == escape(text)


def test_kept_controls_stay():
    assert "a\n\tb\\x1b" == escape("a\n\tb\x1b", keep="\n\t")


@given(st.text())
def test_no_control_format_or_surrogate_character_is_left(text):
    shown = escape(text)
    assert all(character.isprintable() or not character.isascii() for character in shown)
    shown.encode("utf-8")
    assert not set(shown) & set("\x1b\x9b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")


@pytest.mark.parametrize(
    ("expected", "text", "width"),
    [
        ("short", "short", 5),
        ("a lo…", "a long line", 5),
        ("漢…", "漢字漢字", 4),
        (r"a\nb", "a\nb", 10),
        ("x…", "x" * 1_000_000, 2),
    ],
)
def test_a_line_is_cut_to_its_columns(expected, text, width):
    assert expected == one_line(text, width)


@given(st.text(), st.integers(min_value=1, max_value=30))
def test_a_line_never_takes_more_than_its_columns(text, width):
    assert cells(one_line(text, width)) <= width


@pytest.mark.parametrize(
    ("expected", "environ"),
    [(True, {}), (True, {"NO_COLOR": ""}), (False, {"NO_COLOR": "1"}), (False, {"TERM": "dumb"})],
)
def test_colour_is_for_terminals_that_want_it(expected, environ):
    assert expected == wants_color(Terminal(), environ)
    assert not wants_color(io.StringIO(), environ)


def test_paint_that_is_off_changes_nothing():
    assert "text" == Paint(enabled=False).bad("text")
    assert "\x1b[31mtext\x1b[0m" == Paint(enabled=True).bad("text")


def dispatch(kind, sub_id, name="read", **more):
    data = {"subCallId": sub_id, "name": name, "arguments": {"file_path": "a.py"}, **more}
    return {"type": kind, "data": data}


def test_the_progress_line_says_what_is_done_failed_and_running():
    now = [10.0]
    line = ProgressLine(Terminal(), clock=lambda: now[0])
    line.on_event(dispatch("tool/code-dispatch-start", "1"))
    line.on_event(dispatch("tool/code-dispatch-start", "2", "grep"))
    line.on_event(dispatch("tool/code-dispatch-start", "3"))
    now[0] = 12.5
    line.on_event(dispatch("tool/code-dispatch", "1", isError=False))
    line.on_event(dispatch("tool/code-dispatch", "3", isError=True))
    assert "⠋ 2.5 s, 2 calls done, 1 failed, 1 running: grep a.py (2.5 s)" == line.text(100)
    assert "⠋ 2.5 s,…" == line.text(9)


def test_the_progress_line_replaces_itself_and_leaves_nothing_behind():
    terminal = Terminal()
    line = ProgressLine(terminal, clock=lambda: 0.0)
    line.draw()
    line.draw()
    line.clear()
    line.clear()
    assert 3 == terminal.getvalue().count("\r\x1b[K")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_progress_line_shows_hostile_arguments_escaped():
    line = ProgressLine(Terminal(), clock=lambda: 0.0)
    event = dispatch("tool/code-dispatch-start", "1")
    event["data"]["arguments"] = {"file_path": "\x1b[2J\u202e"}
    line.on_event(event)
    assert r"read \x1b[2J\u202e" in line.text(200)


@pytest.mark.parametrize(
    ("expected", "arguments"), [("a", {"n": 1, "x": "a", "y": "b"}), ("", {"n": 1}), ("", [1]), ("", "text")]
)
def test_the_hint_is_the_first_short_text_of_the_arguments(expected, arguments):
    assert expected == argument_hint(arguments)


def test_the_progress_line_shows_what_the_program_says_of_its_progress():
    line = ProgressLine(io.StringIO(), lambda: 0.0)
    line.on_progress(50, 200, "reading\x1b[2J")
    assert "reading\\x1b[2J 50/200" in line.text(100)
    line.on_progress(7.5, None, None)
    assert line.text(100).endswith(", 7.5")


def test_the_bar_of_a_batch_shows_the_share_that_is_done_and_what_runs():
    now = [0.0]
    bar = BatchBar(Terminal(), lambda: now[0], total=200)
    assert "⠋ 0.0 s, ░░░░░░░░░░░░░░░░░░░░ 0/200" == bar.text(100)
    bar.on_event({"type": "tool/call", "data": {"callId": "1", "name": "gr\x1b[2Jep"}})
    bar.on_event({"type": "tool/call", "data": {"callId": "2", "name": "read"}})
    bar.advance(51, failed=False)
    bar.advance(110, failed=True)
    now[0] = 1.5
    bar.on_event({"type": "tool/result", "data": {"message": {"source": {"callId": "2"}}}})
    assert r"⠋ 1.5 s, ███████████░░░░░░░░░ 110/200, 1 failed, 1 running: gr\x1b[2Jep (1.5 s)" == bar.text(100)
    bar.advance(200, failed=False)
    assert "████████████████████ 200/200" in bar.text(100)


def test_the_bar_of_a_stream_counts_lines():
    bar = BatchBar(Terminal(), lambda: 0.0, total=None)
    bar.advance(7, failed=False)
    assert "⠋ 0.0 s, 7 lines done" == bar.text(100)
