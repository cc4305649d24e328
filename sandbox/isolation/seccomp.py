"""Step: a seccomp filter that allows what pure computation and one socket need, and nothing else.

The last step: it forbids the calls the other steps make.

Source:
    seccomp(2); `include/uapi/linux/seccomp.h`, `audit.h`, `filter.h`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import struct
from pathlib import Path
from typing import Final, NamedTuple

from sandbox.isolation import libc

ALLOWED: Final = (
    # The wire: wait for it with a deadline, let go of it.
    "read",
    "write",
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
    # Signals of the interpreter itself; who am I, asked by asyncio. No rt_sigaction: without a handler
    # nothing can outlive the SIGXCPU of the CPU limit.
    "rt_sigprocmask",
    "rt_sigreturn",
    "getpid",
    # The end.
    "exit",
    "exit_group",
)
"""Allowed with any arguments."""

NO_FLAGS: Final = (("recvfrom", 3), ("sendto", 3))
"""The wire's two calls and the index of their flags, which must be 0: out-of-band data and the like are
rarely used code of the kernel, and have been the way out of a browser's sandbox (CVE-2025-38236)."""

FUTEX_OPERATIONS: Final = (0, 1, 9, 10)
"""Wait, wake, and both with a bit set. Priority inheritance and requeueing, which were the way in of
CVE-2014-3153, are not what an interpreter's locks use."""

AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

RET_ALLOW: Final = 0x7FFF0000
RET_EPERM: Final = 0x00050000 | errno.EPERM
RET_KILL_PROCESS: Final = 0x80000000

_X32_BIT: Final = 0x40000000
_PROT_EXEC: Final = 0x4
_FUTEX_COMMAND_MASK: Final = 0x7F
"""Without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME."""

_LOAD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_GREATER_EQUAL: Final = 0x35
_JUMP_BITS: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06

_DATA_NUMBER: Final = 0
_DATA_ARCH: Final = 4

_SECCOMP_SET_MODE_FILTER: Final = 1
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_ACTIONS_FILE: Final = Path("/proc/sys/kernel/seccomp/actions_avail")

Instruction = tuple[int, int, int, int]


def build(machine: str = libc.MACHINE) -> list[Instruction]:
    """Return the filter for a machine as (code, jump true, jump false, k) instructions.

    Raises:
        OSError: We have no syscall table for the machine.
    """
    if machine not in AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no syscall table for {machine}")
    numbers = libc.SYSCALLS[machine]
    # A foreign architecture means other numbers for the same calls: no answer is safe but death.
    program: list[Instruction] = [
        (_LOAD, 0, 0, _DATA_ARCH),
        (_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, RET_KILL_PROCESS),
        (_LOAD, 0, 0, _DATA_NUMBER),
    ]
    if machine == "x86_64":
        program += [(_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT), (_RETURN, 0, 0, RET_KILL_PROCESS)]
    for name, index in NO_FLAGS:
        program += _when(numbers[name], [(_LOAD, 0, 0, _argument(index)), (_JUMP_EQUAL, 0, 1, 0), *_VERDICTS])
    for name in ALLOWED:
        if name in numbers:
            program += _when(numbers[name], [(_RETURN, 0, 0, RET_ALLOW)])
    program += _when(
        numbers["mmap"], [(_LOAD, 0, 0, _argument(2)), (_JUMP_BITS, 1, 0, _PROT_EXEC), *_VERDICTS]
    )
    waits = len(FUTEX_OPERATIONS)
    program += _when(
        numbers["futex"],
        [
            (_LOAD, 0, 0, _argument(1)),
            (_AND, 0, 0, _FUTEX_COMMAND_MASK),
            # Each test jumps over the rest of them, the last one over nothing, to "allow".
            *((_JUMP_EQUAL, waits - 1 - i, int(i == waits - 1), op) for i, op in enumerate(FUTEX_OPERATIONS)),
            *_VERDICTS,
        ],
    )
    program.append((_RETURN, 0, 0, RET_EPERM))
    return program


_VERDICTS: Final[list[Instruction]] = [(_RETURN, 0, 0, RET_ALLOW), (_RETURN, 0, 0, RET_EPERM)]


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run `body` for one syscall number, go past it for every other."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> int:
    """Return the offset of an argument's low half in `struct seccomp_data`, on little-endian machines."""
    return 16 + 8 * index


def probe() -> str:
    """Say whether filters exist here.

    Raises:
        OSError: No syscall table for this machine, or no filters in this kernel.
    """
    build()
    try:
        actions = _ACTIONS_FILE.read_text(encoding="ascii").split()
    except OSError:
        return "a kernel before 4.14, or no /proc: only trying tells"
    if "errno" not in actions:
        raise OSError(errno.ENOSYS, "the kernel's filters cannot answer with an error")
    return libc.MACHINE


class _Prepared(NamedTuple):
    """A filter as the kernel takes it."""

    instructions: int
    code: ctypes.Array[ctypes.c_char]
    """Each instruction as a struct sock_filter, in a row."""
    program: ctypes.Array[ctypes.c_char]
    """The struct sock_fprog that points at them."""


@functools.cache
def prepare() -> _Prepared:
    """Return the filter for this machine.

    The same for every worker, so the fork server has it made once.

    Raises:
        OSError: The machine is unknown.
    """
    instructions = build()
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    code = ctypes.create_string_buffer(packed, len(packed))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(code)))
    return _Prepared(len(instructions), code, program)


def apply() -> str:
    """Install the filter on this process, for good. Needs no_new_privs.

    Raises:
        OSError: The kernel has no seccomp filters, or the machine is unknown.
    """
    instructions, _, program = prepare()
    try:
        libc.syscall("seccomp", ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(0), program)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        # Kernels before 3.17 know only the prctl spelling.
        libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), what="seccomp")
    return f"{instructions} instructions for {libc.MACHINE}"
