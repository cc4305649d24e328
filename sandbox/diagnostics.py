"""What a failed program is told: type, message, line, and its own frames. Hints are in `sandbox.advice`.

Knows: exceptions and program frames. Does not know: the wire, failure kinds.

The exception may be of a class the program defined, so nothing of it is trusted: its text is computed under
a guard and cut, its attributes are read as plain data.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.policy.program import PROGRAM_FILE

if TYPE_CHECKING:
    from types import TracebackType

MAX_MESSAGE_CHARS = 16 * 1024
"""Characters of an exception's text that are kept. The service's own limit on messages is counted later, in
bytes."""

MAX_NAME_CHARS = 200
"""Characters of a class or function name that are kept; a program may rename its classes to anything."""

MAX_FRAMES = 20
"""Frames kept of a long traceback: the first and the last half. Arbitrary; a recursion repeats itself."""

MAX_LINE_CHARS = 200
"""Characters kept of the source line of a frame. Arbitrary."""

_LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line to Python; `str.splitlines` knows more, and would miscount behind a form feed."""

_SHOWN_AS = (
    ("'FrozenDict'", "'dict'"),
    ("'FrozenList'", "'list'"),
    ("not FrozenDict", "not dict"),
    ("not FrozenList", "not list"),
    ("'_asyncio.Task'", "'Task'"),
)
"""Tool results are dicts and lists to a program, and tasks are `asyncio.Task`; other names would only puzzle
its author."""


class Frame(NamedTuple):
    """One program frame of a traceback."""

    line: int
    function: str
    text: str


class Description(NamedTuple):
    """An exception as the reader of a failure sees it."""

    error_type: str
    message: str
    line: int | None
    frames: list[Frame]


def describe_exception(error: BaseException, source: str) -> Description:
    """Describe an exception that ended the program `source`; raises nothing but MemoryError."""
    lines = _LINE_END.split(source)
    tracebacks = _program_tracebacks(error.__traceback__)
    frames = [_frame(traceback, lines) for traceback in _middle_cut(tracebacks)]
    message = message_of(error)
    return Description(type_name(error), message, frames[-1].line if frames else None, frames)


def place_in(source: str, line: int) -> Frame:
    """Return the frame that would execute a line of a program, for errors found before it starts."""
    return Frame(line, _function_at(source, line)[:MAX_NAME_CHARS], _line_text(_LINE_END.split(source), line))


def _function_at(source: str, line: int) -> str:
    """Return the name of the function or class body a line belongs to, as a traceback would give it."""
    name = ""
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, OverflowError, SystemError, RecursionError, MemoryError):
        return "<module>"  # Of a text that is not Python, Python names no function either.
    # From the outside in, since ast.walk goes level by level.
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        # Decorators, defaults and bases are executed outside.
        if node.body[0].lineno <= line <= (node.end_lineno or line):
            name += node.name + ("." if isinstance(node, ast.ClassDef) else ".<locals>.")
    return name.removesuffix(".").removesuffix(".<locals>") or "<module>"


def type_name(error: BaseException) -> str:
    """Return the name of an exception's class as the program knows it."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    # A program may rename its classes to anything, and the name goes into one line of a report.
    return "".join(char if char.isprintable() else "?" for char in name[:MAX_NAME_CHARS])


def message_of(error: BaseException) -> str:
    """Return `str(error)`, bounded; a text in its place if that fails."""
    try:
        text = str.__str__(str(error))
    except BaseException as inner:  # noqa: BLE001  # the program's own __str__ may raise anything
        return f"<its text could not be computed: {type_name(inner)}>"
    if len(text) > MAX_MESSAGE_CHARS:
        return f"{text[:MAX_MESSAGE_CHARS]}... ({len(text)} characters)"
    for internal, shown in _SHOWN_AS:
        text = text.replace(internal, shown)
    return text


def _program_tracebacks(traceback: TracebackType | None) -> list[TracebackType]:
    found = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == PROGRAM_FILE:
            found.append(traceback)
        traceback = traceback.tb_next
    return found


def _middle_cut(tracebacks: list[TracebackType]) -> list[TracebackType]:
    if len(tracebacks) <= MAX_FRAMES:
        return tracebacks
    return [*tracebacks[: MAX_FRAMES // 2], *tracebacks[-MAX_FRAMES // 2 :]]


def _frame(traceback: TracebackType, lines: list[str]) -> Frame:
    code: Any = traceback.tb_frame.f_code
    line = traceback.tb_lineno or 1
    return Frame(line, code.co_qualname[:MAX_NAME_CHARS], _line_text(lines, line))


def _line_text(lines: list[str], line: int) -> str:
    return lines[line - 1].strip()[:MAX_LINE_CHARS] if 0 < line <= len(lines) else ""
