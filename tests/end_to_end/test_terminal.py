"""What a person sees on a terminal, and what a pipe gets instead."""

from __future__ import annotations

import os
import pty
import re

import pytest

pytestmark = pytest.mark.needs_linux

TOOLS = """
import trio
from tool_bindings import ToolRegistry

registry = ToolRegistry()

@registry.tool
async def slow(label: str) -> str:
    "Take half a second."
    await trio.sleep(0.5)
    return label
"""


def on_terminal(start, *arguments, **environ):
    """Run the command with all streams on a terminal; return its status and everything it drew."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    process = start(
        *arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**env, "TERM": "xterm", **environ},
        text=False,
    )
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 65536):
            drawn += chunk
    except OSError:
        pass  # Linux reports the closed other side as an error.
    os.close(ours)
    return process.wait(timeout=60), drawn.decode()


def test_calls_are_followed_live_on_a_terminal(start, folder):
    (folder / "tools.py").write_text(TOOLS)
    code = "print('printed')\nreturn await tools.slow(label='the \\x1b[2J label')"
    status, drawn = on_terminal(start, "run", "--tools", "tools.py:registry", "-c", code)
    assert 0 == status
    assert re.search(
        r"\r\x1b\[K\S \d+\.\d s, 0 calls done, 1 running: slow the \\x1b\[2J label \(\d+\.\d s\)", drawn
    )
    lines = re.split(r"\r\n|\r\x1b\[K", drawn)
    assert "printed" in lines
    assert r"the \x1b[2J label" in lines
    assert re.search(r"ok, \d+\.\d\d s, 1 tool call", drawn)


def test_in_a_pipe_there_is_only_plain_text(codemode, folder):
    (folder / "tools.py").write_text(TOOLS)
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
