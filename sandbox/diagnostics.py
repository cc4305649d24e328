"""What a failed program is told: type, message, line, a hint, and its own frames.

Knows: exceptions and program frames. Does not know: the wire, failure kinds.

The exception may be of a class the program defined, so nothing of it is trusted: its text is computed under a guard and
cut, its attributes are read as plain data.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from sandbox.policy.names import HOOK_PREFIX
from sandbox.policy.program import PROGRAM_FILE

MAX_MESSAGE_CHARS = 16 * 1024
"""Characters of an exception's text that are kept. The service's own limit on messages is counted later, in bytes."""

MAX_FRAMES = 20
"""Frames kept of a long traceback: the first and the last half. Arbitrary; a recursion repeats itself."""


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
    hint: str | None
    frames: list[Frame]


def describe_exception(error: BaseException, source: str) -> Description:
    """Describe an exception that ended the program `source`; raises nothing."""
    frames = program_frames(error.__traceback__, source)
    message = message_of(error)
    return Description(type_name(error), message, frames[-1].line if frames else None, None, frames)


def type_name(error: BaseException) -> str:
    """Return the name of an exception's class as the program knows it."""
    name = type.__dict__["__name__"].__get__(type(error))
    return name if type(name) is str else "Exception"


def message_of(error: BaseException) -> str:
    """Return `str(error)`, bounded; a text in its place if that fails."""
    try:
        text = str(error)
    except BaseException as inner:  # noqa: BLE001  # the program's own __str__ may raise anything
        return f"<its text could not be computed: {type_name(inner)}>"
    text = str.__str__(text)
    if len(text) > MAX_MESSAGE_CHARS:
        text = f"{text[:MAX_MESSAGE_CHARS]}... ({len(text)} characters)"
    return text


def program_frames(traceback: TracebackType | None, source: str) -> list[Frame]:
    """Return the frames of a traceback that are program text, outermost first."""
    lines = source.splitlines()
    frames: list[Frame] = []
    while traceback is not None:
        code: Any = traceback.tb_frame.f_code
        if code.co_filename == PROGRAM_FILE:
            number = traceback.tb_lineno
            text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            frames.append(Frame(number, code.co_qualname, text[:200]))
        traceback = traceback.tb_next
    if len(frames) > MAX_FRAMES:
        frames = [*frames[: MAX_FRAMES // 2], *frames[-MAX_FRAMES // 2 :]]
    return frames


_ = HOOK_PREFIX
