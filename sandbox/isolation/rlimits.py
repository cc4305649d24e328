"""Step: resource limits that hold even when nobody is watching."""

from __future__ import annotations

import math
import sys
from typing import Final

if sys.platform != "win32":
    import resource

MIB: Final = 1024 * 1024
_STACK_BYTES: Final = 8 * MIB
_DESCRIPTORS: Final = 4
"""Descriptor numbers 0 to 3: the wire is 3, and nothing else can be opened."""
FORK_SERVER_DESCRIPTORS: Final = 4096
"""Descriptors a fork server may hold: two per worker. Arbitrary."""


def probe() -> str:
    """Say which of the host's own bounds are already lower than usual."""
    bounded = []
    for name in ("AS", "CPU", "NPROC", "NOFILE"):
        _, ceiling = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        if ceiling != resource.RLIM_INFINITY:
            bounded.append(f"{name} at most {ceiling}")
    return ", ".join(bounded)


def apply(*, address_space_bytes: int, cpu_seconds: float) -> str:
    """Bound this process for good.

    Args:
        address_space_bytes: All mappings together, the interpreter's own included.
        cpu_seconds: CPU time from now after which the kernel kills. The host meters finer and
            earlier; this holds when the host is stuck.

    Raises:
        OSError: The kernel refused.
        ValueError: A bound that was inherited is in the way.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + cpu_seconds) + 1
    for limit, soft, hard in (
        (resource.RLIMIT_AS, address_space_bytes, address_space_bytes),
        # SIGXCPU at the soft limit kills an untouched process; SIGKILL follows at the hard one.
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
        (resource.RLIMIT_NOFILE, _DESCRIPTORS, _DESCRIPTORS),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_STACK, _STACK_BYTES, _STACK_BYTES),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
    ):
        _, ceiling = resource.getrlimit(limit)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(limit, (soft, hard))
    return ""


def bound_descriptors(count: int) -> int:
    """Lower this process's bound on descriptors to `count`, and return the bound it now has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft > count:
        soft = count
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def mapped_bytes() -> int:
    """Return this process's address space now, in bytes, from /proc.

    Raises:
        OSError: /proc is not mounted.
    """
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # pathlib is not loaded in workers
        return int(file.read().split()[0]) * resource.getpagesize()
