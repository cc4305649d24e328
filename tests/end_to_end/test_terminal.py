"""What a person sees on a terminal, and what a pipe gets instead."""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import signal

import pytest

pytestmark = pytest.mark.needs_linux

TOOLS = """
import trio
from tool_bindings import ToolRegistry

registry = ToolRegistry()

@registry.tool
async def slow(label: str, file: str = "seen") -> str:
    "Wait until there is such a file."
    while not await trio.Path(file).exists():
        await trio.sleep(0.01)
    return label
"""


class Screen:
    """A terminal, what is drawn on it, and the command that has all its streams there."""

    def __init__(self, start, *arguments, **environ):
        self._ours, theirs = pty.openpty()
        env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        self.process = start(
            *arguments,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "TERM": "xterm", **environ},
            text=False,
        )
        os.close(theirs)
        self.drawn = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self):
        """Take what has been drawn since; return whether more may come."""
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:
            chunk = b""  # Linux reports the closed other side as an error.
        self.drawn += self._decoder.decode(chunk)
        return bool(chunk)

    def read_until(self, pattern):
        """Wait until something that matches has been drawn."""
        while not re.search(pattern, self.drawn):
            assert self.read(), self.drawn

    def type(self, keys):
        """Type on the keyboard of the terminal."""
        os.write(self._ours, keys)

    def finish(self):
        """Wait for the command; return its status and everything that was drawn."""
        while self.read():
            pass
        os.close(self._ours)
        return self.process.wait(timeout=60), self.drawn


def on_terminal(start, *arguments, **environ):
    """Run the command with all streams on a terminal; return its status and everything it drew."""
    return Screen(start, *arguments, **environ).finish()


def test_calls_are_followed_live_on_a_terminal(start, folder):
    (folder / "tools.py").write_text(TOOLS)
    code = "print('printed')\nreturn await tools.slow(label='the \\x1b[2J label')"
    screen = Screen(start, "run", "--tools", "tools.py:registry", "-c", code)
    screen.read_until(
        r"\r\x1b\[K\S \d+\.\d s, 0 calls done, 1 running: slow the \\x1b\[2J label \(\d+\.\d s\)"
    )
    (folder / "seen").touch()
    status, drawn = screen.finish()
    assert 0 == status
    lines = re.split(r"\r\n|\r\x1b\[K", drawn)
    assert "printed" in lines
    assert r"the \x1b[2J label" in lines
    assert re.search(r"ok, \d+\.\d\d s, 1 tool call", drawn)


def test_in_a_pipe_there_is_only_plain_text(codemode, folder):
    (folder / "tools.py").write_text(TOOLS)
    (folder / "seen").touch()
    code = "return await tools.slow(label='done')"
    assert (0, "done\n", "") == codemode("run", "--tools", "tools.py:registry", "-c", code)


def test_colour_is_off_when_asked(start):
    arguments = ["run", "-c", "return 1 / 0"]
    status, drawn = on_terminal(start, *arguments)
    assert (1, True) == (status, "\x1b[31m" in drawn)
    status, drawn = on_terminal(start, *arguments, NO_COLOR="1")
    assert (1, False) == (status, "\x1b[31m" in drawn)


def test_a_programs_text_cannot_act_on_the_terminal(start):
    _, drawn = on_terminal(
        start, "run", "-c", "print('\\x1b]0;owned\\x07 \\u202e')\nraise ValueError('\\x1b[8m')"
    )
    assert r"\x1b]0;owned\x07 \u202e" in drawn
    assert r"ValueError: \x1b[8m" in drawn
    assert "\x1b]0" not in drawn
    assert "\x1b[8m" not in drawn


LIVE = r"""
print("a line \x1b[2J")
await tools.slow(label="", file="first")
print("within a li", end="")
await tools.slow(label="", file="second")
print("ne\u202e")
print("last", end="")
return "the result"
"""


def test_what_a_program_prints_appears_while_it_runs_and_once(start, folder):
    (folder / "tools.py").write_text(TOOLS)
    (folder / "program.py").write_text(LIVE)
    screen = Screen(start, "run", "--tools", "tools.py:registry", "program.py")
    # Each file is made only when the text before it has been drawn: printed at the end, this would hang.
    screen.read_until(r"a line \\x1b\[2J\r\n")
    (folder / "first").touch()
    screen.read_until("within a li")
    (folder / "second").touch()
    status, drawn = screen.finish()
    assert 0 == status
    # The line of progress keeps off a line that has not ended.
    assert "within a line\\u202e\r\n" in drawn
    shown = [line for line in re.split(r"\r\n|\r\x1b\[K", drawn) if line and "calls done" not in line]
    assert ["a line \\x1b[2J", "within a line\\u202e", "last", "the result"] == shown[:-1]
    assert "ok, " in shown[-1]


def test_what_a_failing_program_printed_is_shown_once_and_before_the_reason(start):
    status, drawn = on_terminal(start, "run", "-c", "print('one')\nprint('two')\nreturn 1 / 0")
    assert 1 == status
    assert (1, 1) == (drawn.count("one\r\n"), drawn.count("two\r\n"))
    assert drawn.index("two") < drawn.index("ZeroDivisionError")


STUBBORN = """
import pathlib, time
from tool_bindings import ToolRegistry

registry = ToolRegistry()

@registry.tool
def block() -> None:
    "Hold a thread until there is a file, whatever becomes of the call."
    print("BEGUN", flush=True)
    while not pathlib.Path("seen").exists():
        time.sleep(0.01)
"""


def test_what_is_waited_for_after_ctrl_c_is_said_and_the_second_loses_no_receipt(start, folder):
    (folder / "tools.py").write_text(STUBBORN)
    code = (
        "await tools.write(file_path='a', content='b')\nprint('within a line', end='')\nawait tools.block()"
    )
    screen = Screen(start, "run", "--tools", "tools.py:registry", "-c", code)
    screen.read_until("BEGUN")
    screen.process.send_signal(signal.SIGINT)
    screen.read_until(
        r"\r\ncodemode: interrupted by Ctrl-C; stopping, and waiting for calls that have begun\r\n"
    )
    screen.process.send_signal(signal.SIGINT)
    screen.read_until(r"codemode: still waiting, 10 s at most; once more leaves at once")
    (folder / "seen").touch()
    status, drawn = screen.finish()
    assert 130 == status
    assert '- write({"file_path":"a","content":"b"}) (line 1)\r\n' in drawn
    reason, hint = drawn.rstrip().rsplit("\r\n", 2)[1:]
    assert "\x1b[31mcode run failed (abort): interrupted by Ctrl-C" == reason
    assert hint.startswith("Hint: it was stopped from outside")
    assert hint.endswith("\x1b[0m")


@pytest.mark.parametrize("by", ["Ctrl-C", "Ctrl-D"])
def test_serving_on_a_terminal_says_what_it_waits_for_and_how_to_end_it(start, folder, by):
    screen = Screen(start, "serve")
    screen.read_until(r"serving run_code, whose programs can call 5 tools, over standard streams")
    screen.read_until(r"An MCP client is awaited on standard input")
    screen.read_until(r"Ctrl-C or Ctrl-D ends it")
    if by == "Ctrl-D":
        screen.type(b"\x04")
    else:
        # The terminal is not the one that controls the command, so it sends no signal.
        screen.process.send_signal(signal.SIGINT)
    status, drawn = screen.finish()
    assert 0 == status, drawn
    assert (3 if by == "Ctrl-D" else 4) == drawn.count("\r\n")
    assert ("stopping, and waiting for calls that have begun" in drawn) == (by == "Ctrl-C")


@pytest.fixture
def calls(folder):
    """Leave a batch of three lines, two of which wait to be seen."""
    (folder / "tools.py").write_text(TOOLS)
    lines = [("slow", {"label": "a", "file": "first"}), ("nope", {}), ("slow", {"label": "b\x1b[2J"})]
    (folder / "in.jsonl").write_text(
        "".join(json.dumps({"tool": tool, "arguments": arguments}) + "\n" for tool, arguments in lines)
    )
    return ("batch", "--tools", "tools.py:registry", "in.jsonl")


def test_a_batch_shows_a_bar_on_a_terminal_and_the_records_above_it(start, folder, calls):
    screen = Screen(start, *calls)
    screen.read_until(r"\r\x1b\[K\S \d+\.\d s, ░{20} 0/3, 1 running: slow \(\d+\.\d s\)")
    (folder / "first").touch()
    screen.read_until(r"█{13}░{7} 2/3, 1 failed, 1 running: slow")
    (folder / "seen").touch()
    status, drawn = screen.finish()
    assert 1 == status
    shown = [line for line in re.split(r"\r\n|\r\x1b\[K", drawn) if line.startswith("{")]
    assert [1, 2, 3] == [json.loads(line)["line"] for line in shown]
    assert "\x1b[31m3 lines: 2 succeeded, 0 failed, 1 not a call" in drawn
    assert "\x1b[2J" not in drawn


def test_a_batch_uses_no_colour_when_asked(start, folder, calls):
    (folder / "first").touch()
    (folder / "seen").touch()
    status, drawn = on_terminal(start, *calls, NO_COLOR="1")
    assert (1, False) == (status, "\x1b[31m" in drawn)


def test_a_batch_in_a_pipe_or_on_a_dumb_terminal_draws_no_bar(start, codemode, folder, calls):
    (folder / "first").touch()
    (folder / "seen").touch()
    status, out, err = codemode(*calls)
    assert (1, 3, 1) == (status, out.count("\n"), err.count("\n"))
    assert "\x1b" not in out + err
    status, drawn = on_terminal(start, *calls, TERM="dumb")
    assert (1, False) == (status, "\x1b" in drawn)
