"""Step: Landlock with no rule at all, so that no file, port or foreign socket may be touched.

Source:
    Linux kernel documentation, `userspace-api/landlock.rst`; `include/uapi/linux/landlock.h`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

from sandbox.isolation import libc

_CREATE_RULESET_VERSION: Final = 1
_NET_RIGHTS_ABI: Final = 4
_SCOPED_ABI: Final = 6

_FS_RIGHTS_BITS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""Number of file-system rights by ABI; 16 from ABI 5 on."""
_NET_RIGHTS: Final = 0b11
"""bind and connect of TCP."""
_SCOPES: Final = 0b11
"""Abstract unix sockets and signals to processes outside."""


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def abi() -> int:
    """Return the kernel's Landlock version, 0 when it has none or it is switched off."""
    try:
        return libc.syscall(
            "landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION)
        )
    except OSError:
        return 0


def apply() -> None:
    """Handle every right this kernel knows and allow none. Needs no_new_privs.

    Raises:
        OSError: The kernel has no Landlock.
    """
    version = abi()
    if version < 1:
        raise OSError(38, "landlock: not available in this kernel")
    attr = _RulesetAttr(
        (1 << _FS_RIGHTS_BITS.get(version, 16)) - 1,
        _NET_RIGHTS if version >= _NET_RIGHTS_ABI else 0,
        _SCOPES if version >= _SCOPED_ABI else 0,
    )
    # The structure grew with the ABI; an older kernel refuses a longer one with bits set.
    size = 8 if version < _NET_RIGHTS_ABI else 16 if version < _SCOPED_ABI else 24
    ruleset = libc.syscall(
        "landlock_create_ruleset", ctypes.byref(attr), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    try:
        libc.syscall("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
