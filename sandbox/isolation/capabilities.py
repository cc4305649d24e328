"""Step: no capabilities, and no way to any."""

from __future__ import annotations

import struct
from typing import Final

from sandbox.isolation import libc

PR_CAPBSET_DROP: Final = 24
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITY_VERSION_3: Final = 0x20080522
_CAPABILITIES: Final = 64
"""More than any kernel has; numbers past the last one answer EINVAL."""


def apply() -> None:
    """Empty the bounding, ambient, permitted, effective and inheritable sets."""
    for capability in range(_CAPABILITIES):
        try:
            libc.prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            # EINVAL: no such capability. EPERM: we hold none already (no user namespace here),
            # and no_new_privs keeps it that way.
            break
    try:
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        pass  # A kernel before 4.3 has no ambient set to clear.
    libc.capset(struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), bytes(24))
