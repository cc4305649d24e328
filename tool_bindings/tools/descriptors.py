"""Operations on descriptors that are not in the standard library, or not in one piece.

A path-only descriptor (O_PATH) holds an object without opening it: it tells what the object is, and waiting
FIFOs or devices do not notice.

Knows: Linux system calls, kinds of files.
Does not know: roots, or what a path means.
"""

from __future__ import annotations

import ctypes
import os
import stat as stat_module

from tool_bindings.tools.errors import FsError
from tool_bindings.tools.paths import printable

__all__ = ["openat2_beneath", "reopen_for_reading", "require_regular_file"]

_SYS_OPENAT2 = 437  # The same number on every architecture: it was added after the tables were unified.
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def openat2_beneath(directory_fd: int, relative: str) -> int | None:
    """Let the kernel resolve a path beneath a directory; None when it will not.

    None is no verdict: old kernels and container filters have no openat2, absolute links that come back into
    the root are refused by it, and a rename elsewhere makes it give up. The walk decides then.

    Args:
        directory_fd: Where the path starts and stays.
        relative: A relative path; its links are followed.

    Returns:
        A path-only descriptor for the caller to close, or None.

    Source:
        openat2(2), RESOLVE_BENEATH.
    """
    # struct open_how: flags, mode, resolve.
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    descriptor: int = _libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(directory_fd),
        ctypes.c_char_p(os.fsencode(relative)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    return descriptor if descriptor >= 0 else None


def reopen_for_reading(fd: int) -> int:
    """Open for reading the very object that a path-only descriptor holds; the caller closes the result.

    Raises:
        OSError: It may not be read.
    """
    # The magic link leads to the object itself, whatever its name leads to by now.
    return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def require_regular_file(facts: os.stat_result, display: str) -> None:
    """Refuse directories, FIFOs, devices and sockets.

    Raises:
        FsError: It is one of those.
    """
    mode = facts.st_mode
    if stat_module.S_ISREG(mode):
        return
    if stat_module.S_ISDIR(mode):
        raise FsError(
            "FS_NOT_REGULAR_FILE",
            f'"{printable(display)}" is a directory, not a file; list its files with glob',
        )
    kinds = {
        stat_module.S_IFIFO: "a FIFO",
        stat_module.S_IFCHR: "a character device",
        stat_module.S_IFBLK: "a block device",
        stat_module.S_IFSOCK: "a socket",
        stat_module.S_IFLNK: "a symbolic link",
    }
    kind = kinds.get(stat_module.S_IFMT(mode), "a special file")
    raise FsError("FS_NOT_REGULAR_FILE", f'"{printable(display)}" is {kind}, not a regular file')
