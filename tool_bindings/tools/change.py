"""Change one file beneath the root: resolve, check, lock, compare, publish.

Knows: the order of these steps, which is what makes them safe.
Does not know: what the new content is; the tool that asks computes it from the old.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tool_bindings.tools.descriptors import reopen_for_reading, require_regular_file
from tool_bindings.tools.errors import FsError, ToolUsageError, fs_error_from_os
from tool_bindings.tools.observation import UNCONDITIONAL, Expectation, version_of
from tool_bindings.tools.paths import printable
from tool_bindings.tools.publish import TargetLocks, publish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tool_bindings.tools.blocking import Checkpoint
    from tool_bindings.tools.confinement import ConfinedRoot, Names
    from tool_bindings.tools.observation import ObservationPolicy
    from tool_bindings.tools.protection import Protection

__all__ = ["FileChanger", "Target"]

# One table for the process: two sets of tools over the same directory must not overlap either.
_LOCKS = TargetLocks()


@dataclass(slots=True)
class Target:
    """A file about to be changed, locked within this process.

    Attributes:
        display: The path to show.
        names: Where it really is.
        current: Facts of the file now, or None when it does not exist.
    """

    display: str
    names: Names
    current: os.stat_result | None
    _root: ConfinedRoot
    _parent_fd: int
    _fd: int | None
    _checkpoint: Checkpoint

    def read(self, most_bytes: int) -> bytes:
        """Read the present content, stopping after `most_bytes` and one more.

        Raises:
            FsError: It cannot be read.
        """
        assert self._fd is not None, "only a file that exists can be read"
        pieces = []
        size = 0
        try:
            fd = reopen_for_reading(self._fd)
            try:
                while size <= most_bytes and (piece := os.read(fd, most_bytes + 1 - size)):
                    pieces.append(piece)
                    size += len(piece)
                    self._checkpoint()
            finally:
                os.close(fd)
        except OSError as error:
            raise fs_error_from_os(error, "read", printable(self.display)) from None
        return b"".join(pieces)

    def publish(self, content: bytes, *, if_absent: bool, same_version: bool) -> os.stat_result:
        """Put the new content in place.

        Args:
            content: All of it.
            if_absent: Give up when there is a file after all.
            same_version: Give up when the file is no longer the one that was opened.

        Raises:
            FsError: It was given up or refused; the file is as it was.
        """
        self._checkpoint()

        def verify() -> None:
            self._checkpoint()
            self._require_same_parent()
            if same_version:
                self._require_same_version()

        try:
            return publish(
                self._parent_fd,
                self.names[-1],
                content,
                replaces=self.current,
                if_absent=if_absent,
                verify=verify,
            )
        except FileExistsError:
            raise FsError(
                "FS_NOT_OBSERVED",
                f'"{printable(self.display)}" was created by somebody else meanwhile'
                " — read the file, then retry the write",
            ) from None
        except OSError as error:
            raise fs_error_from_os(error, "write", printable(self.display)) from None

    def _require_same_parent(self) -> None:
        mine = os.fstat(self._parent_fd)
        try:
            with self._root.open_directory(self.names[:-1]) as fd:
                there = os.fstat(fd)
        except FsError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            raise FsError(
                "FS_STALE_VERSION",
                f'the directory of "{printable(self.display)}" was moved or replaced meanwhile; '
                "nothing was written — look where it is now, then retry",
            )

    def _require_same_version(self) -> None:
        seen = None if self.current is None else version_of(self.current)
        try:
            facts = os.stat(self.names[-1], dir_fd=self._parent_fd, follow_symlinks=False)
        except FileNotFoundError:
            facts = None
        if (None if facts is None else version_of(facts)) != seen:
            raise FsError(
                "FS_STALE_VERSION",
                f'"{printable(self.display)}" was changed by somebody else meanwhile'
                " — read the file again, then retry",
            )


class FileChanger:
    """Opens files for change under one root.

    Args:
        root: The confined root.
        protection: What must not be changed.
        observation: The policy that says what a session must have seen; None asks for nothing.
    """

    def __init__(
        self, root: ConfinedRoot, protection: Protection, observation: ObservationPolicy | None = None
    ) -> None:
        self._root = root
        self._protection = protection
        self._observation = observation

    @contextmanager
    def open(
        self, path: str, session: object | None, checkpoint: Checkpoint, *, for_edit: bool
    ) -> Iterator[tuple[Target, Expectation]]:
        """Resolve, check and lock the file that `path` names; it need not exist.

        Blocking: call it in a thread.

        Args:
            path: The path as the caller wrote it.
            session: Whose observations count.
            checkpoint: Raises when the work must stop.
            for_edit: Whether the file is edited, or written whole.

        Raises:
            ToolUsageError: The path can only name a directory.
            FsError: It is outside the root, protected, not a regular file, or not as the session has seen it.
        """
        if path.endswith("/"):
            raise ToolUsageError(
                "file_path ends with a slash, which names a directory; give the path of a file"
            )
        with self._root.find(path, want_names=True) as found:
            names, display, first = found.names or (), found.display, found.stat
        if first is not None:
            require_regular_file(first, display)
        # Taken before waiting for the lock: what this call may rely on is what its session had seen when it
        # began.
        expectation = UNCONDITIONAL
        if self._observation is not None:
            expectation = self._observation.expectation(session, names)
        require = expectation.require_for_edit if for_edit else expectation.require_for_write
        check = self._protection.check()
        check.names(names)
        with ExitStack() as stack:
            if first is None:
                require(None, display)  # Before directories are made for it.
            parent_fd = stack.enter_context(
                self._root.open_directory(names[:-1], create=not for_edit, check=check)
            )
            stack.enter_context(_LOCKS.hold((*_identity(parent_fd), names[-1])))
            checkpoint()
            fd, current = self._open_entry(parent_fd, names, display)
            if fd is not None:
                stack.callback(os.close, fd)
            check.entry(parent_fd, names, current)
            require(current, display)
            yield Target(display, names, current, self._root, parent_fd, fd, checkpoint), expectation

    def _open_entry(
        self, parent_fd: int, names: Names, display: str
    ) -> tuple[int | None, os.stat_result | None]:
        try:
            fd = os.open(names[-1], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent_fd)
        except FileNotFoundError:
            return None, None
        except OSError as error:
            raise fs_error_from_os(error, "open", printable(display)) from None
        try:
            facts = os.fstat(fd)
            require_regular_file(facts, display)
            if not os.access(f"/proc/self/fd/{fd}", os.W_OK, effective_ids=True):
                raise FsError(
                    "FS_PERMISSION_DENIED",
                    f'cannot write "{printable(display)}": permission denied (it is read-only)',
                )
        except BaseException:
            os.close(fd)
            raise
        return fd, facts


def _identity(fd: int) -> tuple[int, int]:
    facts = os.fstat(fd)
    return facts.st_dev, facts.st_ino
