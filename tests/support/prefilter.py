"""Starts a command as another user, or on a kernel that seems to lack a mechanism.

    python prefilter.py [--uid N] [--without namespaces|landlock|seccomp]... -- COMMAND...

The mechanism's system calls are answered with an error by a seccomp filter that every child inherits.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import platform
import struct
import sys

SYSCALLS = {
    "x86_64": {"unshare": 272, "clone3": 435, "landlock": 444, "seccomp": 317, "prctl": 157},
    "aarch64": {"unshare": 97, "clone3": 435, "landlock": 444, "seccomp": 277, "prctl": 167},
}
CAP_DAC_READ_SEARCH = 2
PR_SET_KEEPCAPS = 8
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
RET_ALLOW = 0x7FFF0000
RET_ERRNO = 0x00050000


libc = ctypes.CDLL(None, use_errno=True)


def become(uid: int) -> None:
    """Become an ordinary user who can read what root can: the interpreter may be in root's home.

    That one capability is gone after the lock-down like any other.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresuid(uid, uid, uid)
    only = 1 << CAP_DAC_READ_SEARCH
    # Effective, permitted, inheritable; the second three are for capabilities from 32 on.
    if libc.capset(struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", only, only, only, 0, 0, 0)) != 0:
        sys.exit("capset failed")
    if libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) != 0:
        sys.exit("raising an ambient capability failed")


def instructions(without: list[str]) -> list[tuple[int, int, int, int]]:
    numbers = SYSCALLS[platform.machine()]
    program = [(0x20, 0, 0, 0)]
    if "namespaces" in without:
        program += [(0x15, 0, 1, numbers["unshare"]), (0x06, 0, 0, RET_ERRNO | errno.EPERM)]
    if "landlock" in without:
        program += [(0x15, 0, 1, numbers["landlock"]), (0x06, 0, 0, RET_ERRNO | errno.ENOSYS)]
    if "seccomp" in without:
        program += [(0x15, 0, 1, numbers["seccomp"]), (0x06, 0, 0, RET_ERRNO | errno.ENOSYS)]
        # The old spelling: prctl with PR_SET_SECCOMP as its first argument.
        program += [
            (0x15, 0, 3, numbers["prctl"]),
            (0x20, 0, 0, 16),
            (0x15, 0, 1, PR_SET_SECCOMP),
            (0x06, 0, 0, RET_ERRNO | errno.EINVAL),
        ]
    return [*program, (0x06, 0, 0, RET_ALLOW)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uid", type=int)
    parser.add_argument(
        "--without", action="append", default=[], choices=["namespaces", "landlock", "seccomp"]
    )
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if options.uid is not None:
        become(options.uid)
    if options.without:
        code = ctypes.create_string_buffer(
            b"".join(struct.pack("=HBBI", *i) for i in instructions(options.without))
        )
        program = struct.pack("@HP", len(code.raw) // 8, ctypes.addressof(code))
        zero = ctypes.c_ulong(0)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
            sys.exit("no_new_privs is not available")
        if libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), program, zero, zero) != 0:
            sys.exit(f"seccomp is not available: {os.strerror(ctypes.get_errno())}")
    os.execv(options.command[0], options.command)


if __name__ == "__main__":
    main()
