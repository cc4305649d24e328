"""Decide where a search may look, and show what it found there.

Knows: the search path's confinement, and the two spellings of a found path: the program's and the caller's.
Does not know: patterns, or how the program is run.
"""

from __future__ import annotations

import os
import stat as stat_module
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tool_bindings.tools.errors import FsError, SearchError, ToolUsageError
from tool_bindings.tools.paths import check_path_argument, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tool_bindings.tools.confinement import ConfinedRoot, Names

__all__ = ["SearchPlace", "check_pattern_argument", "open_place", "require_unmoved"]

_MAX_PATTERN_BYTES = 65_536  # Well below the 128 KiB that one argument of a program may have on Linux.


class SearchPlace(NamedTuple):
    """A directory or file to search.

    Attributes:
        shown: Its path as results show it: relative to the root, links not resolved; `.` is the root.
        names: Where it really is.
        identity: Its device and inode.
        file_fd: The open file, when it is a file; None for a directory.
    """

    shown: str
    names: Names
    identity: tuple[int, int]
    file_fd: int | None

    @property
    def argument(self) -> str:
        """The path to hand to the program; a file is handed over open, as standard input."""
        return "-" if self.file_fd is not None else "/".join((".", *self.names))

    def show(self, found: str) -> str:
        """Turn a path that the program printed into the one that results show.

        Raises:
            SearchError: It is not beneath the place that was searched.
        """
        if self.file_fd is not None:
            return self.shown
        prefix = f"{self.argument}/"
        if not found.startswith(prefix):
            raise SearchError(
                "SEARCH_FAILED", "the search program reported a path outside the place it searched"
            )
        below = found[len(prefix) :]
        return below if self.shown == "." else f"{self.shown}/{below}"


@contextmanager
def open_place(root: ConfinedRoot, path: str | None, *, allow_file: bool) -> Iterator[SearchPlace]:
    """Resolve a search path beneath the root.

    Blocking: call it in a thread.

    Args:
        root: The confined root.
        path: The argument, or None for the whole root.
        allow_file: Whether a file may be searched too; it is open while the context lasts.

    Raises:
        ToolUsageError: The path is blank or could not name anything.
        FsError: It leads outside the root or cannot be resolved.
        SearchError: There is nothing to search at it.
    """
    if path is not None:
        check_path_argument(path, "path")
    wanted = path if path is not None else "."
    with root.find(wanted, want_names=True) as found:
        if found.stat is None or found.names is None:
            raise SearchError(
                "SEARCH_FAILED",
                f'there is no "{printable(wanted)}" to search; give an existing directory as path',
            )
        parts = root.relative(wanted)
        shown = "/".join(found.names if ".." in parts else parts) or "."
        identity = (found.stat.st_dev, found.stat.st_ino)
        if stat_module.S_ISDIR(found.stat.st_mode):
            yield SearchPlace(shown, found.names, identity, None)
            return
        if not allow_file:
            raise SearchError(
                "SEARCH_FAILED", f'path must be a directory, and "{printable(wanted)}" is not one'
            )
        fd = root.open_for_reading(found)
        try:
            yield SearchPlace(shown, found.names, identity, fd)
        finally:
            os.close(fd)


def require_unmoved(root: ConfinedRoot, place: SearchPlace) -> None:
    """Make sure that the directory searched by name was the one that was checked.

    Blocking: call it in a thread.

    Raises:
        SearchError: It was moved or replaced while it was searched, so the results are not to be trusted.
    """
    if place.file_fd is not None:
        return
    try:
        with root.open_directory(place.names) as fd:
            facts = os.fstat(fd)
            same = (facts.st_dev, facts.st_ino) == place.identity
    except FsError:
        same = False
    if not same:
        raise SearchError(
            "SEARCH_FAILED",
            f'"{printable(place.shown)}" was moved or replaced while it was searched; search again',
        )


def check_pattern_argument(value: str, name: str) -> None:
    """Refuse a pattern that cannot be handed to a program.

    Args:
        value: The argument.
        name: Its parameter name, for the message.

    Raises:
        ToolUsageError: It holds a NUL or a lone surrogate, or is too long.
    """
    if "\0" in value:
        raise ToolUsageError(f"{name} contains a NUL character; remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise ToolUsageError(f"{name} holds a lone surrogate at position {error.start}; remove it") from None
    if size > _MAX_PATTERN_BYTES:
        raise ToolUsageError(f"{name} is {size} bytes long; a pattern has at most {_MAX_PATTERN_BYTES} bytes")
