"""Steps: no new privileges, not dumpable, dies with its parent, lower priority."""

from __future__ import annotations

import os
import signal
from typing import Final

from sandbox.isolation import libc

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_NO_NEW_PRIVS: Final = 38

WORKER_NICENESS: Final = 5
"""Steps below the host in the scheduler's eyes, so that a busy program cannot starve it. Arbitrary."""


def forbid_new_privileges() -> None:
    """A set-user-id program gives this process nothing; also what seccomp and Landlock require."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, what="no_new_privs")


def forbid_dumping() -> None:
    """No core file, no ptrace, no /proc/<pid>/mem for processes of the same user."""
    libc.prctl(PR_SET_DUMPABLE, 0, what="dumpable")


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends. Reset by a change of uid, so set after it."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, what="parent death signal")


def lower_priority() -> None:
    """Let the host run first."""
    os.nice(WORKER_NICENESS)
