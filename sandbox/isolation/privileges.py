"""Steps: no new privileges, not dumpable, dies with its parent, lower priority."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from typing import Final

from sandbox.isolation import libc

PR_SET_PDEATHSIG: Final = 1
PR_GET_PDEATHSIG: Final = 2
PR_GET_DUMPABLE: Final = 3
PR_SET_DUMPABLE: Final = 4
PR_SET_NO_NEW_PRIVS: Final = 38
PR_GET_NO_NEW_PRIVS: Final = 39

WORKER_NICENESS: Final = 5
"""Steps below the host in the scheduler's eyes, so that a busy program cannot starve it. Arbitrary."""


def probe_parent_death() -> str:
    """Ask the kernel for this process's own setting."""
    value = ctypes.c_int()
    libc.prctl(PR_GET_PDEATHSIG, ctypes.addressof(value), what="parent death signal")
    return ""


def die_with_parent(parent_pid: int) -> str:
    """The kernel kills this process when its parent ends. Reset by a change of uid, so set after it.

    Raises:
        OSError: The kernel refused, or the parent had ended before it could be asked.
    """
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, what="parent death signal")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)
    return ""


def probe_no_new_privileges() -> str:
    """Ask the kernel for this process's own setting."""
    libc.prctl(PR_GET_NO_NEW_PRIVS, what="no_new_privs")
    return ""


def forbid_new_privileges() -> str:
    """A set-user-id program gives this process nothing; also what seccomp and Landlock require.

    Raises:
        OSError: The kernel refused.
    """
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, what="no_new_privs")
    return ""


def probe_dumpable() -> str:
    """Ask the kernel for this process's own setting."""
    libc.prctl(PR_GET_DUMPABLE, what="dumpable")
    return ""


def forbid_dumping() -> str:
    """No core file, no ptrace, no /proc/<pid>/mem for processes of the same user.

    Raises:
        OSError: The kernel refused.
    """
    libc.prctl(PR_SET_DUMPABLE, 0, what="dumpable")
    return ""


def probe_priority() -> str:
    """Say where the host stands."""
    return f"host at {os.getpriority(os.PRIO_PROCESS, 0)}"


def lower_priority() -> str:
    """Let the host run first.

    Raises:
        OSError: Something forbade even this.
    """
    niceness = os.nice(WORKER_NICENESS)
    if niceness <= 0:
        raise OSError(errno.EPERM, f"still at niceness {niceness}")
    return f"niceness {niceness}"
