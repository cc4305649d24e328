"""Paths as text: what an argument may be, and how a path is shown.

Knows: characters, bytes, and the limits of a path.
Does not know: any file system.
"""

from __future__ import annotations

import os

from tool_bindings.tools.errors import ToolUsageError

__all__ = ["check_path_argument", "components", "printable"]

_MAX_PATH_BYTES = 4096  # PATH_MAX of Linux: a longer path cannot name a file in one call.


def check_path_argument(value: str, name: str) -> None:
    """Refuse a path that could not name anything.

    Args:
        value: The argument.
        name: Its parameter name, for the message.

    Raises:
        ToolUsageError: It is blank, too long, holds a NUL, or cannot be written as a file name.
    """
    if not value.strip():
        raise ToolUsageError(f'{name} must not be blank; give a path such as "src/main.py"')
    if "\0" in value:
        raise ToolUsageError(f"{name} contains a NUL character, which no path can hold; remove it")
    try:
        size = len(os.fsencode(value))
    except UnicodeEncodeError as error:
        raise ToolUsageError(
            f"{name} holds a lone surrogate at position {error.start}, which no path can hold; remove it"
        ) from None
    if size > _MAX_PATH_BYTES:
        raise ToolUsageError(f"{name} is {size} bytes long; a path has at most {_MAX_PATH_BYTES} bytes")


def printable(path: str) -> str:
    """Show a path whose name is not UTF-8 with replacement characters instead of lone surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return path


def components(path: str) -> list[str]:
    """Split a path at its slashes; empty parts and `.` are left out, `..` is kept."""
    return [part for part in path.split("/") if part not in ("", ".")]
