"""The file under a session log: created privately, locked, appended to one whole line at a time, rotated.

Knows: bytes, lines, descriptors, segment names. Does not know: what a line says.

A log at `e.jsonl` that grew past its cap has its older files beside it as `e.jsonl.1`, `e.jsonl.2`, ...,
the largest number being the newest; `e.jsonl` itself is always the file being written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Final, Self

from codemode.private_file import OPEN_FLAGS, Refusal, open_locked, reason
from codemode.session_events import SessionFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TAIL_CHUNK: Final = 64 * 1024
"""Bytes read at a time while looking for the last line end. Arbitrary."""


class LogFile:
    """One locked, append-only file of lines. Made by `LogFile.open`.

    A line is in the file whole or not at all: what a failed write left behind is cut off again, at once
    or, when the disk does not even allow that, before the next line.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        """Bytes of whole lines in the current file."""
        self._torn = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create the file at `path` and take its lock.

        Raises:
            SessionFileError: It is not a regular file, cannot be written, or another process writes it.
        """
        in_use = f"the event log {str(path)!r} is being written by another run; give this one its own file"
        return cls(path, open_locked(path, Refusal(SessionFileError, "cannot write events to", path, in_use)))

    def cut_torn_line(self) -> int:
        """Remove what follows the last line end, left by a write that never finished; return its length."""
        kept = _end_of_last_line(self._descriptor, self.size)
        torn = self.size - kept
        if torn:
            os.ftruncate(self._descriptor, kept)
            self.size = kept
        return torn

    def append(self, line: bytes) -> None:
        """Write one line or several, of which each ends in a line feed.

        Raises:
            OSError: Nothing of the line is in the file.
        """
        assert line.endswith(b"\n"), "a line ends in a line feed"
        if self._torn:
            os.ftruncate(self._descriptor, self.size)
            self._torn = False
        length = len(line)
        written = os.write(self._descriptor, line)
        if written < length:
            self._write_rest(line[written:])
        self.size += length

    def _write_rest(self, rest: bytes) -> None:
        # Whatever goes wrong now leaves a part of a line.
        self._torn = True
        try:
            _write_all(self._descriptor, rest)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
                self._torn = False
            raise
        self._torn = False

    def sync(self) -> None:
        """Wait until the disk has what was written."""
        os.fsync(self._descriptor)

    def rotate(self, first_line: bytes, *, keep: int) -> None:
        """Set the current file aside under the next number and go on in a new one.

        The path always names a complete file: the new one is prepared under another name and takes its place
        in one step. `keep` older files stay; the oldest beyond that are removed.

        Raises:
            OSError: Nothing changed; the current file is still the one being written.
        """
        fresh = self.path.with_name(f"{self.path.name}.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write_all(descriptor, first_line)
            older = older_files(self.path)
            number = _number(older[-1]) + 1 if older else 1
            aside = self.path.with_name(f"{self.path.name}.{number}")
            os.link(self.path, aside, follow_symlinks=False)
            try:
                fresh.replace(self.path)
            except OSError:
                aside.unlink()
                raise
        except OSError:
            os.close(descriptor)
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor
        self.size = len(first_line)
        for old in [*older, aside][: -keep or None]:
            old.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock and the descriptor. Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def older_files(path: Path) -> list[Path]:
    """Return the set-aside files of the log at `path`, oldest first."""
    prefix = f"{path.name}."
    with contextlib.suppress(OSError):
        found = [item for item in path.parent.iterdir() if item.name.startswith(prefix)]
        return sorted((item for item in found if item.name[len(prefix) :].isdecimal()), key=_number)
    return []


def read_lines(path: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Yield file, one-based line number and bytes of every line of a log, older files first.

    The line end is kept: a last line without one was cut off while being written.

    Raises:
        SessionFileError: The file is not there, is not a regular file, or cannot be read.
    """
    for part in [*older_files(path), path]:
        try:
            with open_regular(part) as stream:
                for number, line in enumerate(stream, 1):
                    yield part, number, line
        except OSError as error:
            raise SessionFileError(f"cannot read the event log {str(part)!r}: {reason(error)}") from error


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[Iterator[bytes]]:
    """Open a regular file for reading; a pipe or device there is refused instead of waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SessionFileError(f"{str(path)!r} is not a regular file, so it is no event log")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def _number(path: Path) -> int:
    return int(path.name.rpartition(".")[2])


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _end_of_last_line(descriptor: int, size: int) -> int:
    end = size
    while end > 0:
        start = max(0, end - _TAIL_CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
