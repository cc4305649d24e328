"""Step: a seccomp filter that allows what pure computation and one socket need, and nothing else.

The last step: it forbids the calls the other steps make.

Source:
    seccomp(2); `include/uapi/linux/seccomp.h`, `audit.h`, `filter.h`.
"""

from __future__ import annotations

import ctypes
import errno
from typing import Final

from sandbox.isolation import libc

ALLOWED: Final = (
    # The wire: send and receive on the one descriptor, wait for it with a deadline, let go of it.
    "read",
    "write",
    "sendto",
    "recvfrom",
    "poll",
    "ppoll",
    "close",
    # Memory.
    "brk",
    "munmap",
    "mremap",
    "madvise",
    # Clocks, sleeping, randomness.
    "clock_gettime",
    "clock_nanosleep",
    "restart_syscall",
    "getrandom",
    # Locks and signals of the interpreter itself; who am I, asked by asyncio.
    "futex",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "getpid",
    # The end.
    "exit",
    "exit_group",
)
"""Allowed with any arguments. `mmap` is allowed too, but never executable."""

AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_X32_BIT: Final = 0x40000000
_PROT_EXEC: Final = 0x4
_RET_ALLOW: Final = 0x7FFF0000
_RET_EPERM: Final = 0x00050000 | errno.EPERM
_RET_KILL_PROCESS: Final = 0x80000000

_LOAD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_GREATER_EQUAL: Final = 0x35
_JUMP_BITS: Final = 0x45
_RETURN: Final = 0x06

_DATA_NUMBER: Final = 0
_DATA_ARCH: Final = 4
_DATA_ARG2: Final = 16 + 8 * 2
"""Offset of the third argument's low half in `struct seccomp_data`, on little-endian machines."""

_SECCOMP_SET_MODE_FILTER: Final = 1
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2

Instruction = tuple[int, int, int, int]


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def build(machine: str = libc.MACHINE) -> list[Instruction]:
    """Return the filter for a machine as (code, jump true, jump false, k) instructions.

    Raises:
        OSError: We have no syscall table for the machine.
    """
    if machine not in AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"seccomp: no syscall table for {machine}")
    numbers = libc.SYSCALLS[machine]
    # A foreign architecture means other numbers for the same calls: no answer is safe but death.
    program: list[Instruction] = [
        (_LOAD, 0, 0, _DATA_ARCH),
        (_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _RET_KILL_PROCESS),
        (_LOAD, 0, 0, _DATA_NUMBER),
    ]
    if machine == "x86_64":
        program += [(_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT), (_RETURN, 0, 0, _RET_KILL_PROCESS)]
    for name in ALLOWED:
        if name in numbers:
            program += [(_JUMP_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _RET_ALLOW)]
    program += [
        (_JUMP_EQUAL, 0, 4, numbers["mmap"]),
        (_LOAD, 0, 0, _DATA_ARG2),
        (_JUMP_BITS, 0, 1, _PROT_EXEC),
        (_RETURN, 0, 0, _RET_EPERM),
        (_RETURN, 0, 0, _RET_ALLOW),
        (_RETURN, 0, 0, _RET_EPERM),
    ]
    return program


def apply() -> None:
    """Install the filter on this process, for good. Needs no_new_privs.

    Raises:
        OSError: The kernel has no seccomp filters, or the machine is unknown.
    """
    instructions = build()
    array = (_Filter * len(instructions))(*(_Filter(*instruction) for instruction in instructions))
    program = _Program(len(instructions), array)
    try:
        libc.syscall(
            "seccomp", ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(0), ctypes.byref(program)
        )
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        # Kernels before 3.17 know only the prctl spelling.
        libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), what="seccomp")
