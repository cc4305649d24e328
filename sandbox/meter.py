"""A process's CPU time, as another process reads it.

Knows: clocks of the kernel, psutil. Does not know: budgets, workers.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

_PROCESS_CLOCK: Final = 2
"""CPUCLOCK_SCHED of the kernel: the very clock behind `time.process_time()` inside the process."""


_FDINFO_BYTES: Final = 4096
"""More than the kernel says of a pidfd."""
_PID: Final = re.compile(rb"^Pid:\s*(-?\d+)$", re.MULTILINE)


class CpuMeter:
    """Reads how much CPU time one process has used.

    The kernel's clock of the process is read first: one system call, and at most one tick of the scheduler
    behind a process that is running. Where a kernel has no such clock (some emulate Linux), psutil reads the
    same time from /proc in ticks of 10 ms.

    Args:
        pid: Its number in our own pid namespace. The caller knows that it has not been reaped yet.
    """

    __slots__ = ("_clock", "_process")

    def __init__(self, pid: int) -> None:
        # Keeps when the process began, so that a later process of the same number is told apart.
        self._process: psutil.Process | None = None
        self._clock = (~pid << 3) | _PROCESS_CLOCK
        try:
            time.clock_gettime(self._clock)
        except OSError:
            self._process = _process(pid)

    def read(self) -> float | None:
        """Return the CPU seconds used so far, None when the process is gone."""
        if self._process is not None:
            return _cpu_seconds(self._process)
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return None


def _process(pid: int) -> psutil.Process | None:
    # Imported where it is needed: most kernels have the clock, and a short run is mostly imports.
    import psutil  # noqa: PLC0415

    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None  # Gone already, which `read` will say too.


def _cpu_seconds(process: psutil.Process) -> float | None:
    import psutil  # noqa: PLC0415  # as above

    try:
        if not process.is_running():
            return None
        times = process.cpu_times()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return None
    return float(times.user + times.system)


def pid_of(pidfd: int) -> int | None:
    """Return the number of a pidfd's process in our own pid namespace, None when it was reaped.

    Raises:
        OSError: /proc is not mounted.
    """
    # Not by pathlib, which takes five times as long: it is done for every worker.
    descriptor = os.open(f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY)
    try:
        text = os.read(descriptor, _FDINFO_BYTES)
    finally:
        os.close(descriptor)
    found = _PID.search(text)
    return int(found[1]) if found is not None and int(found[1]) > 0 else None
