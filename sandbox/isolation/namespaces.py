"""Step: own user, network, mount, pid, ipc and uts namespaces."""

from __future__ import annotations

from typing import Final

from sandbox.isolation import libc

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000


def apply() -> None:
    """Enter all six at once; only together with a user namespace may an ordinary user do it.

    The pid namespace takes effect for the next child, so the caller forks once more
    and goes on in that child, which is pid 1: when it ends, the kernel ends every worker.
    """
    libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)
