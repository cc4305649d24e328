"""The few calls into the kernel that Python does not offer, through ctypes.

Knows: syscall numbers of the architectures we support, argument passing, errno.
Does not know: why a step makes a call.

Source:
    Linux kernel headers, `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from typing import Final

MACHINE: Final = platform.machine()

SYSCALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "read": 0,
        "write": 1,
        "close": 3,
        "poll": 7,
        "mmap": 9,
        "munmap": 11,
        "brk": 12,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "mremap": 25,
        "madvise": 28,
        "getpid": 39,
        "sendto": 44,
        "recvfrom": 45,
        "exit": 60,
        "pivot_root": 155,
        "futex": 202,
        "restart_syscall": 219,
        "clock_gettime": 228,
        "clock_nanosleep": 230,
        "exit_group": 231,
        "ppoll": 271,
        "seccomp": 317,
        "getrandom": 318,
        "landlock_create_ruleset": 444,
        "landlock_restrict_self": 446,
    },
    "aarch64": {
        "pivot_root": 41,
        "close": 57,
        "read": 63,
        "write": 64,
        "ppoll": 73,
        "exit": 93,
        "exit_group": 94,
        "futex": 98,
        "clock_gettime": 113,
        "clock_nanosleep": 115,
        "restart_syscall": 128,
        "rt_sigprocmask": 135,
        "rt_sigreturn": 139,
        "getpid": 172,
        "sendto": 206,
        "recvfrom": 207,
        "brk": 214,
        "munmap": 215,
        "mremap": 216,
        "mmap": 222,
        "madvise": 233,
        "seccomp": 277,
        "getrandom": 278,
        "landlock_create_ruleset": 444,
        "landlock_restrict_self": 446,
    },
}
"""Numbers of every syscall we make or allow, by machine. `poll` does not exist on aarch64."""

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
if _libc is not None:
    _libc.syscall.restype = ctypes.c_long


def prctl(option: int, arg2: int = 0, arg3: int = 0, what: str = "prctl") -> int:
    """Change or read a setting of this process, see the manual page of prctl.

    Raises:
        OSError: The kernel refused.
    """
    assert _libc is not None
    zero = ctypes.c_ulong(0)
    return _checked(_libc.prctl(option, ctypes.c_ulong(arg2), ctypes.c_ulong(arg3), zero, zero), what)


def syscall(name: str, *args: object) -> int:
    """Enter the kernel by the name of a call, with ctypes-compatible arguments.

    Raises:
        OSError: The kernel refused, or this machine has no number for it (ENOSYS).
    """
    assert _libc is not None
    number = SYSCALLS.get(MACHINE, {}).get(name)
    if number is None:
        raise OSError(errno.ENOSYS, f"{name}: not known on {MACHINE}")
    return _checked(_libc.syscall(ctypes.c_long(number), *args), name)


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    assert _libc is not None
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: bytes | None, target: bytes, kind: bytes | None, flags: int, data: bytes | None) -> None:
    """Attach a file system, see the manual page of mount."""
    assert _libc is not None
    _checked(_libc.mount(source, target, kind, ctypes.c_ulong(flags), data), "mount")


def umount_detached(target: bytes) -> None:
    """Detach a mount now, free it when its last user is gone (MNT_DETACH)."""
    assert _libc is not None
    _checked(_libc.umount2(target, ctypes.c_int(2)), "umount2")


def capset(header: bytes, data: bytes) -> None:
    """Set the capabilities of this process from ready-made structures."""
    assert _libc is not None
    _checked(_libc.capset(header, data), "capset")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
