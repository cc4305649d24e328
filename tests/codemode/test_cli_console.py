"""The command's streams: readers that go away, full disks, terminals."""

from __future__ import annotations

import errno
import io
import os

import pytest

from codemode.cli.console import Console
from codemode.cli.status import CommandError


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Broken(io.StringIO):
    """Fails as a pipe without a reader or a full disk does."""

    def __init__(self, number):
        super().__init__()
        self._error = OSError(number, os.strerror(number))

    def write(self, text):
        raise self._error


def test_program_text_is_escaped_on_a_terminal_and_exact_in_a_pipe():
    for stream, expected in [(Terminal(), "a\\x1b[2J\tb\n"), (io.StringIO(), "a\x1b[2J\tb\n")]:
        Console(stream, io.StringIO()).print_foreign("a\x1b[2J\tb")
        assert expected == stream.getvalue()


def test_a_reader_that_goes_away_is_no_error_and_ends_the_output():
    console = Console(Broken(errno.EPIPE), io.StringIO())
    console.print("one")
    assert console.closed
    console.print("two")
    console.finish()


def test_output_that_cannot_be_written_is_an_error_with_its_reason():
    console = Console(Broken(errno.ENOSPC), io.StringIO())
    with pytest.raises(CommandError, match="cannot write to standard output: No space left on device"):
        console.print("one")
    console.finish()


def test_a_failing_standard_error_is_ignored():
    Console(io.StringIO(), Broken(errno.EIO)).say("lost")


def test_a_person_is_told_over_a_line_of_progress_and_nobody_else_is_told_anything(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = Terminal(), io.StringIO()
    Console(io.StringIO(), terminal).tell("stopping")
    Console(io.StringIO(), terminal).tell("waiting", below=True)
    monkeypatch.setenv("TERM", "dumb")
    Console(io.StringIO(), terminal).tell("done")
    Console(Terminal(), pipe).tell("nobody reads this")
    assert ("\r\x1b[Kstopping\n\nwaiting\ndone\n", "") == (terminal.getvalue(), pipe.getvalue())


def test_streams_that_were_closed_at_the_start_swallow_everything():
    console = Console(None, None)
    console.print("one")
    console.say("two")
    console.finish()
    assert not console.interactive


def test_lone_surrogates_can_be_printed():
    raw = io.BytesIO()
    console = Console(io.TextIOWrapper(raw, encoding="ascii"), io.StringIO())
    console.print_foreign("\ud800é")
    console.finish()
    assert b"\\ud800\\xe9\n" == raw.getvalue()


@pytest.mark.parametrize(
    ("expected", "out", "err"),
    [
        (True, Terminal(), Terminal()),
        (False, io.StringIO(), Terminal()),
        (False, Terminal(), io.StringIO()),
    ],
)
def test_progress_is_for_a_person_who_sees_both_streams(expected, out, err):
    assert expected == Console(out, err).interactive
