"""Whether this machine has a core to spare.

Knows: how many tasks the kernel counts as having work. Does not know: what for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_LOAD: Final = Path("/proc/loadavg")


def is_core_idle() -> bool:
    """Return whether fewer tasks have work than there are cores; this one counts. False when not known."""
    try:
        tasks = _LOAD.read_bytes().split()[3]
        return int(tasks.partition(b"/")[0]) < (os.cpu_count() or 1)
    except (OSError, ValueError, IndexError):
        return False
