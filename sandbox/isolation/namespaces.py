"""Step: own user, network, mount, pid, ipc and uts namespaces."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from sandbox.isolation import libc

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

_KINDS: Final = ("user", "net", "mnt", "pid", "ipc", "uts")
_SWITCHES: Final = (
    ("/proc/sys/user/max_user_namespaces", "0"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
)
"""Files by which distributions switch user namespaces off, and the text that means off."""


def probe() -> str:
    """Say whether the kernel has all six kinds and lets ordinary users make them.

    A container's seccomp profile can still refuse; only trying tells, which `apply` does.

    Raises:
        OSError: A kind is missing or switched off.
    """
    for kind in _KINDS:
        if not Path(f"/proc/self/ns/{kind}").exists():
            raise OSError(errno.ENOSYS, f"the kernel has no {kind} namespaces")
    for path, off in _SWITCHES:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue  # Not a switch of this kernel.
        if text == off:
            raise OSError(errno.EPERM, f"{path} is {off}")
    return ", ".join(_KINDS)


def apply() -> str:
    """Enter all six at once; only together with a user namespace may an ordinary user do it.

    The pid namespace takes effect for the next child, so the caller forks once more
    and goes on in that child, which is pid 1: when it ends, the kernel ends every worker.

    Raises:
        OSError: The kernel refused.
    """
    libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)
    return ", ".join(_KINDS)
