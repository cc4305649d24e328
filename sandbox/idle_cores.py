"""Whether this machine has a core to spare.

Knows: how many tasks the kernel counts as having work. Does not know: what for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_LOAD: Final = Path("/proc/loadavg")


def is_core_idle() -> bool:
    """Return whether fewer tasks, this one included, have work than it has cores. False when not known.

    Tasks on cores that are not this process's are counted along, which errs on the side of False.
    """
    try:
        tasks = _LOAD.read_bytes().split()[3]
        return int(tasks.partition(b"/")[0]) < len(os.sched_getaffinity(0))
    except (OSError, ValueError, IndexError):
        return False
