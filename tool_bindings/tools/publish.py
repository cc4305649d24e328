"""Replace or create one directory entry, completely or not at all.

New content is written in a private staging directory beside the target, flushed, and then moved into place
with one system call. Nobody ever sees half a file, and a crash leaves the old one.

Knows: descriptors, modes, staging, and one lock per target within this process.
Does not know: which entry may be changed, or what its content means.
"""

from __future__ import annotations

import os
import secrets
import stat as stat_module
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

__all__ = ["TargetLocks", "publish"]

_STAGED_NAME = "content"
# Set-user-ID and set-group-ID are dropped, as the kernel drops them when a file is written in place.
_KEPT_MODE_BITS = 0o1777


class _TargetLock:
    """A lock that a weak dictionary can hold."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()


class TargetLocks:
    """One lock per target: two changes of one file within this process happen one after the other.

    They are thread locks because the work runs in threads, possibly of several trio runs.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: weakref.WeakValueDictionary[Hashable, _TargetLock] = weakref.WeakValueDictionary()

    @contextmanager
    def hold(self, target: Hashable) -> Iterator[None]:
        """Wait until nobody else changes `target`, then keep others out."""
        with self._guard:
            lock = self._locks.get(target)
            if lock is None:
                lock = self._locks[target] = _TargetLock()
        with lock.mutex:
            yield


def publish(
    parent_fd: int,
    name: str,
    content: bytes,
    *,
    replaces: os.stat_result | None,
    if_absent: bool,
    verify: Callable[[], None],
) -> os.stat_result:
    """Put `content` at `name` in an open directory.

    Args:
        parent_fd: The directory.
        name: The entry; a link there is replaced, never followed.
        content: All bytes of the file.
        replaces: The file that is being replaced, whose mode and owner are kept; None for a new one.
        if_absent: Refuse to replace anything, also a file that appears at the last moment.
        verify: Called when all is ready, just before the entry changes; it raises to give up.

    Returns:
        Facts of the new file.

    Raises:
        FileExistsError: `if_absent`, and there is something at `name`.
        OSError: The file system refused.
    """
    staging = f".codemode-{secrets.token_hex(8)}"
    os.mkdir(staging, 0o700, dir_fd=parent_fd)
    try:
        staging_fd = os.open(
            staging, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent_fd
        )
        try:
            file_fd = _stage(staging_fd, content, replaces)
            try:
                verify()
                _move(staging_fd, parent_fd, name, if_absent=if_absent)
                _flush_directory(parent_fd)
                return os.fstat(file_fd)
            finally:
                os.close(file_fd)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(_STAGED_NAME, dir_fd=staging_fd)
            os.close(staging_fd)
    finally:
        os.rmdir(staging, dir_fd=parent_fd)


def _stage(staging_fd: int, content: bytes, replaces: os.stat_result | None) -> int:
    # Asking for 0666 makes the kernel apply the umask and default ACLs, which cannot be read safely in a
    # threaded process; the directory is private, so nobody can open the file meanwhile.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(_STAGED_NAME, flags, 0o666, dir_fd=staging_fd)
    try:
        created = os.fstat(fd)
        os.fchmod(fd, 0o600)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        if replaces is not None and (replaces.st_uid, replaces.st_gid) != (created.st_uid, created.st_gid):
            with suppress(
                PermissionError
            ):  # Only root may give files away; then the writer owns the new one.
                os.fchown(fd, replaces.st_uid, replaces.st_gid)
        like = created if replaces is None else replaces
        os.fchmod(fd, stat_module.S_IMODE(like.st_mode) & _KEPT_MODE_BITS)
        os.fsync(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _move(staging_fd: int, parent_fd: int, name: str, *, if_absent: bool) -> None:
    if not if_absent:
        os.rename(_STAGED_NAME, name, src_dir_fd=staging_fd, dst_dir_fd=parent_fd)
        return
    # link(2), unlike rename(2), never replaces what another process has just created.
    os.link(_STAGED_NAME, name, src_dir_fd=staging_fd, dst_dir_fd=parent_fd, follow_symlinks=False)
    os.unlink(_STAGED_NAME, dir_fd=staging_fd)  # Before the caller's fstat: it changes the version.


def _flush_directory(parent_fd: int) -> None:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent_fd)
    try:
        # The entry has changed already: a file system that cannot flush a directory must not turn that into
        # an error.
        with suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)
