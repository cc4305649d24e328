"""Where a program comes from: a file, standard input, or the command line.

Knows: reading it whole, as text, within a bound. Does not know: Python.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import Final

from codemode.cli.status import CommandError

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
"""What ends a line, and a comment, to Python; `str.splitlines` knows more."""


def read_program(file: str | None, code: str | None, *, max_bytes: int) -> str:
    """Return the source text.

    Args:
        file: A path, or `-` for standard input.
        code: The source itself; exactly one of the two must be given.
        max_bytes: The most a program may have. One that is larger comes back cut just beyond that, so that
            whoever runs it refuses it in its own words.

    Raises:
        CommandError: There is no program, or it is not text.
    """
    if (file is None) == (code is None):
        raise CommandError("give one program: a FILE, `-` for standard input, or -c CODE")
    if code is not None:
        name, source = "the program", code
        if any("\ud800" <= character <= "\udfff" for character in code):
            raise CommandError("the program after -c is not valid UTF-8 text")
    else:
        assert file is not None, "one of the two is given"
        name = "standard input" if file == "-" else repr(file)
        source = _text(_read(file, name, max_bytes + 1), name, cut=max_bytes)
    if not _has_statement(source) and len(source.encode()) <= max_bytes:
        what = "holds nothing but comments" if source.strip() else "is empty"
        raise CommandError(f"{name} {what}; write at least one statement, `return 1` for example")
    return source


def _has_statement(source: str) -> bool:
    """Say whether a text is more than comments and blank lines, which needs no parser to see."""
    lines = map(str.strip, _LINE_END.split(source))
    return any(line and not line.startswith("#") for line in lines)


def _read(file: str, name: str, limit: int) -> bytes:
    try:
        if file == "-":
            if sys.stdin is None:
                raise CommandError("standard input is closed, so there is no program to read")
            return sys.stdin.buffer.read(limit)
        path = Path(file)
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116  # like open, and unlike Path.is_dir, it raises
            raise CommandError(f"{name} is a directory, not a program")
        with path.open("rb") as stream:
            return stream.read(limit)
    except FileNotFoundError:
        raise CommandError(f"no such file: {name}") from None
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"cannot read {name}: no path holds a zero byte") from error


def _text(data: bytes, name: str, *, cut: int) -> str:
    zero = data.find(b"\0")
    if zero >= 0:
        raise CommandError(f"{name} is not a text file: it has a zero byte at offset {zero}")
    try:
        # utf-8-sig: editors on Windows put a byte order mark in front.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(data) > cut:
            return data.decode("utf-8-sig", "replace")  # Cut inside a character; it is refused anyway.
        raise CommandError(
            f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        ) from None
