"""What a program prints, shown piece by piece beside the line of progress."""

from __future__ import annotations

import io

import pytest
import trio

from codemode.cli.console import Console
from codemode.cli.live import LiveView
from codemode.cli.status import CommandError
from codemode.terminal import ProgressLine

CLEAR = "\r\x1b[K"


class Terminal(io.StringIO):
    broken = False

    def isatty(self):
        return True

    def fileno(self):
        raise OSError

    def write(self, text):
        if self.broken:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.fixture
def terminal():
    return Terminal()


@pytest.fixture
def view(terminal):
    return LiveView(Console(terminal, terminal), ProgressLine(terminal, lambda: 0.0))


async def test_pieces_are_joined_and_the_progress_line_takes_turns_with_whole_lines(
    view, terminal, autojump_clock
):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(view.redraw)
        await trio.sleep(0.05)
        view.on_log("one\ntw")
        await trio.sleep(0.5)
        view.on_log("o\n")
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    view.close()
    line = f"{CLEAR}⠙ 0.0 s, 0 calls done"
    second = f"{CLEAR}⠹ 0.0 s, 0 calls done"
    assert f"{line}{CLEAR}one\ntwo\n{second}{CLEAR}" == terminal.getvalue()
    assert 2 == view.lines


def test_an_unfinished_last_line_is_ended_and_counted(view, terminal):
    view.on_log("a\n\nb")
    view.on_log("")
    assert 3 == view.lines
    view.close()
    assert "a\n\nb\n" == terminal.getvalue()


def test_text_is_escaped(view, terminal):
    view.on_log("\x1b[2J\u202e\r\n")
    assert "\\x1b[2J\\u202e\\r\n" == terminal.getvalue()


def test_a_terminal_that_is_gone_does_not_disturb_the_run_and_is_said_at_its_end(view, terminal):
    view.on_log("shown\n")
    terminal.broken = True
    view.on_log("lost\n")
    view.on_log("lost\n")
    assert 1 == view.lines
    with pytest.raises(CommandError, match="cannot write to standard output: Input/output error"):
        view.close()


async def test_without_a_progress_line_there_is_nothing_to_draw(terminal):
    view = LiveView(Console(terminal, None), None)
    await view.redraw()
    view.on_log("text")
    view.close()
    assert "text\n" == terminal.getvalue()
