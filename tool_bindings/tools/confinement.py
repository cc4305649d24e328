"""Open paths by descriptor beneath one root directory, and nothing outside it.

A path is never checked first and opened by name afterwards: it is resolved one component at a time, each
relative to the descriptor of the one before and never following a link by itself. Links are read and resolved
here, so a link that stays beneath the root works and one that leaves it is refused before anything is opened.

Knows: descriptors, symbolic links, `..`, and how a path is shown.
Does not know: which places may be changed (see protection), file contents, tools.
"""

from __future__ import annotations

import errno
import os
import stat as stat_module
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tool_bindings.tools.descriptors import openat2_beneath, reopen_for_reading, require_regular_file
from tool_bindings.tools.errors import FsError, fs_error_from_os
from tool_bindings.tools.paths import components, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["ConfinedRoot", "DirectoryCheck", "Found", "Names"]

Names = tuple[str, ...]
"""A place beneath the root: its names from the root down, without links, `.` or `..`."""

_MAX_LINKS = 40  # What the kernel allows for one path (path_resolution(7)).

_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY_FLAGS = _PATH_FLAGS | os.O_DIRECTORY


class DirectoryCheck(Protocol):
    """Decides whether something may be made in a directory; raises to refuse."""

    def directory(self, fd: int, names: Names) -> None:
        """Judge an open directory."""

    def entry(self, parent_fd: int, names: Names, facts: os.stat_result | None) -> None:
        """Judge an entry that is about to be made or replaced."""


class Found(NamedTuple):
    """What a path led to.

    Attributes:
        display: The path to show: absolute, links not resolved.
        names: Where it really is, or None when nobody asked for it.
        fd: A path-only descriptor of the object, or None when it does not exist. It cannot be read from and
            opening it had no effect on the object, whatever kind it is.
        stat: Facts of the object behind `fd`, or None when it does not exist.
    """

    display: str
    names: Names | None
    fd: int | None
    stat: os.stat_result | None


class ConfinedRoot:
    """One directory, held open, beneath which paths are resolved.

    The directory is opened once, so that renaming or replacing it later does not move the confinement. It is
    closed when the object is garbage collected.

    Args:
        path: The root. Links in it are followed: the operator chose it.
        use_openat2: Whether to try the kernel's own confined resolution first.

    Raises:
        FsError: The root does not exist or is not a directory.
    """

    def __init__(self, path: Path, *, use_openat2: bool = True) -> None:
        self.path = os.path.abspath(path)  # noqa: PTH100  Path.absolute keeps "..", and no link may be resolved.
        self.real_path = os.path.realpath(path)
        self._use_openat2 = use_openat2
        try:
            self.fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise fs_error_from_os(error, "open the root", self.path) from None
        self._prefixes = [components(self.path), components(self.real_path)]
        weakref.finalize(self, os.close, self.fd)

    def __repr__(self) -> str:
        return f"ConfinedRoot({self.path!r})"

    def duplicate(self) -> int:
        """Return a second descriptor of the root; the caller closes it.

        Raises:
            FsError: Too many files are open.
        """
        try:
            return os.dup(self.fd)
        except OSError as error:
            raise fs_error_from_os(error, "open the root", self.path) from None

    def relative(self, requested: str) -> list[str]:
        """Split a path into components below the root; `..` is kept.

        Args:
            requested: A relative path, or an absolute one that starts with the root.

        Raises:
            FsError: An absolute path lies elsewhere.
        """
        parts = self._below(requested) if requested.startswith("/") else components(requested)
        if parts is None:
            raise self._outside(requested)
        return parts

    def display(self, names: Sequence[str]) -> str:
        """Show a place beneath the root as an absolute path."""
        return "/".join((self.path.rstrip("/"), *names)) if names else self.path

    @contextmanager
    def find(self, requested: str, *, want_names: bool = False) -> Iterator[Found]:
        """Resolve a path and hold the descriptor of what it leads to.

        Blocking: call it in a thread.

        Args:
            requested: The path as the caller wrote it.
            want_names: Whether `names` is needed, which costs a few system calls more.

        Raises:
            FsError: The path leads outside the root or cannot be resolved. An object that does not exist is
                not an error here: `fd` is None then.
        """
        parts = self.relative(requested)
        fd: int | None = None
        names: Names | None = None
        if self._use_openat2 and not want_names and ".." not in parts:
            fd = openat2_beneath(self.fd, "/".join(parts) or ".")
        if fd is None:
            fd, names = self._walk(requested, parts)
        try:
            display = self.display(names if names is not None and ".." in parts else parts)
            yield Found(display, names, fd, None if fd is None else os.fstat(fd))
        finally:
            if fd is not None:
                os.close(fd)

    @contextmanager
    def open_directory(
        self, names: Sequence[str], *, create: bool = False, check: DirectoryCheck | None = None
    ) -> Iterator[int]:
        """Open a directory by its resolved names, refusing every link on the way.

        Blocking: call it in a thread. Names come from `find`; a link found now was put there since, and is
        refused. What `check` sees is the very directory that is then used.

        Args:
            names: The directory, from the root down.
            create: Make the directories that are missing.
            check: Asked about each directory on the way, the root included, before anything is made in it,
                and about each missing one before it is made.

        Raises:
            FsError: It is gone, is not a directory, or became a link.
        """
        fd = self.duplicate()
        try:
            if check is not None:
                check.directory(fd, ())
            for depth in range(1, len(names) + 1):
                here = tuple(names[:depth])
                inner = self._step_into(fd, here, create=create, check=check)
                os.close(fd)
                fd = inner
                if check is not None:
                    check.directory(fd, here)
            yield fd
        finally:
            os.close(fd)

    def open_for_reading(self, found: Found) -> int:
        """Open the regular file that `find` led to; the caller closes the descriptor.

        The path is not looked up again: the object that was checked is the one that is opened.

        Raises:
            FsError: It is not there, is not a regular file, or may not be read.
        """
        if found.fd is None or found.stat is None:
            raise FsError("FS_NOT_FOUND", f'cannot open "{printable(found.display)}": no such file')
        require_regular_file(found.stat, found.display)
        try:
            return reopen_for_reading(found.fd)
        except OSError as error:
            raise fs_error_from_os(error, "read", printable(found.display)) from None

    def _step_into(self, fd: int, names: Names, *, create: bool, check: DirectoryCheck | None) -> int:
        name = names[-1]
        try:
            try:
                return os.open(name, _DIRECTORY_FLAGS, dir_fd=fd)
            except FileNotFoundError:
                if not create:
                    raise
            if check is not None:
                check.entry(fd, names, None)
            try:
                os.mkdir(name, 0o777, dir_fd=fd)
            except FileExistsError:
                pass  # Somebody else made it meanwhile; what it is shows when it is opened.
            return os.open(name, _DIRECTORY_FLAGS, dir_fd=fd)
        except OSError as error:
            # With O_DIRECTORY, a link is "not a directory" as well.
            raise fs_error_from_os(error, "open the directory", printable(self.display(names))) from None

    def _below(self, absolute: str) -> list[str] | None:
        parts = components(absolute)
        for prefix in self._prefixes:
            if parts[: len(prefix)] == prefix:
                return parts[len(prefix) :]
        return None

    def _outside(self, requested: str) -> FsError:
        return FsError(
            "FS_SANDBOX_DENIED",
            "[sandbox: file access denied under workspace-write mode]\n"
            f'"{printable(requested)}" leads outside the root "{printable(self.path)}"; '
            "give a path that stays beneath the root, without links or .. that leave it",
        )

    def _walk(self, requested: str, parts: Sequence[str]) -> tuple[int | None, Names]:
        """Resolve a path component by component; the descriptor is None when the last one does not exist."""
        cursor = _Cursor(self)
        try:
            missing = self._advance(cursor, requested, parts)
        except OSError as error:
            cursor.close()
            raise fs_error_from_os(error, "open", printable(requested)) from None
        except BaseException:
            cursor.close()
            raise
        if missing:
            cursor.close()
            return None, (*cursor.names, *missing)
        return cursor.fd, tuple(cursor.names)

    def _advance(self, cursor: _Cursor, requested: str, parts: Sequence[str]) -> list[str]:
        """Move the cursor along a path; the rest of the path that does not exist is returned."""
        pending = list(reversed(parts))
        links = 0
        while pending:
            name = pending.pop()
            if name == "..":
                if not cursor.names:
                    raise self._outside(requested)
                cursor.up()
                continue
            try:
                inner = os.open(name, _PATH_FLAGS, dir_fd=cursor.fd)
            except FileNotFoundError:
                if ".." in pending:
                    raise
                return [name, *reversed(pending)]
            mode = os.fstat(inner).st_mode
            if not stat_module.S_ISLNK(mode):
                cursor.enter(name, inner)
                if pending and not stat_module.S_ISDIR(mode):
                    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                continue
            try:
                # An empty path reads the link behind the descriptor: readlinkat(2).
                target = os.readlink("", dir_fd=inner)
            finally:
                os.close(inner)
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            below = components(target)
            if target.startswith("/"):
                absolute = self._below(target)
                if absolute is None:
                    raise self._outside(requested)
                below = absolute
                cursor.restart()
            pending.extend(reversed(below))
        return []


class _Cursor:
    """Where a walk stands: a descriptor and the names that lead to it from the root."""

    def __init__(self, root: ConfinedRoot) -> None:
        self._root = root
        self.fd = root.duplicate()
        self.names: list[str] = []

    def enter(self, name: str, fd: int) -> None:
        self._replace(fd)
        self.names.append(name)

    def up(self) -> None:
        """Go to the parent, from the root down.

        Not with openat(fd, ".."): that would leave the root with a directory that was moved out of it.
        """
        with self._root.open_directory(self.names[:-1]) as parent:
            self._replace(os.dup(parent))
        self.names.pop()

    def restart(self) -> None:
        self._replace(self._root.duplicate())
        self.names.clear()

    def close(self) -> None:
        os.close(self.fd)

    def _replace(self, fd: int) -> None:
        os.close(self.fd)
        self.fd = fd
