"""Step: no capabilities, and no way to any."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from sandbox.isolation import libc

PR_CAPBSET_DROP: Final = 24
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITY_VERSION_3: Final = 0x20080522
_CAPABILITIES: Final = 64
"""More than any kernel has; numbers past the last one answer EINVAL."""


def probe() -> str:
    """Say which capabilities this process has to give up.

    Raises:
        OSError: /proc is not mounted.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return f"effective {fields['CapEff'].strip().lstrip('0') or '0'}"


def apply() -> str:
    """Empty the bounding, ambient, permitted, effective and inheritable sets.

    Raises:
        OSError: The kernel refused to empty the sets of this process.
    """
    detail = "none left, none to regain"
    for capability in range(_CAPABILITIES):
        try:
            libc.prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            # EINVAL: no such capability. EPERM: we hold none already (no user namespace here),
            # and no_new_privs keeps it that way.
            if capability == 0:
                detail = "none left"
            break
    try:
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        pass  # A kernel before 4.3 has no ambient set to clear.
    libc.capset(struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), bytes(24))
    return detail
