"""Step: Landlock with no rule at all, so that no file, port or foreign socket may be touched.

Source:
    Linux kernel documentation, `userspace-api/landlock.rst`; `include/uapi/linux/landlock.h`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
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


@functools.cache
def abi() -> int:
    """Return the kernel's Landlock version, 0 when it has none or it is switched off.

    The same for every worker, so the fork server asks once.
    """
    try:
        return libc.syscall(
            "landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION)
        )
    except OSError:
        return 0


def probe() -> str:
    """Say which version the kernel has.

    Raises:
        OSError: None, or it is switched off.
    """
    return f"ABI {_required_abi()}"


def apply() -> str:
    """Handle every right this kernel knows and allow none. Needs no_new_privs.

    Raises:
        OSError: The kernel has no Landlock, or refused.
    """
    version = _required_abi()
    # struct landlock_ruleset_attr: file-system rights, network rights, scopes. It grew with the ABI, and an
    # older kernel refuses a longer one with bits set.
    rights = [(1 << _FS_RIGHTS_BITS.get(version, 16)) - 1]
    if version >= _NET_RIGHTS_ABI:
        rights.append(_NET_RIGHTS)
    if version >= _SCOPED_ABI:
        rights.append(_SCOPES)
    attr = struct.pack(f"={len(rights)}Q", *rights)
    ruleset = libc.syscall("landlock_create_ruleset", attr, ctypes.c_size_t(len(attr)), ctypes.c_uint32(0))
    try:
        libc.syscall("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    covered = ["files"]
    if version >= _NET_RIGHTS_ABI:
        covered.append("TCP")
    if version >= _SCOPED_ABI:
        covered.append("signals and abstract sockets")
    return f"ABI {version}: {', '.join(covered)}"


def _required_abi() -> int:
    version = abi()
    if version < 1:
        raise OSError(errno.ENOSYS, "not in this kernel, or switched off")
    return version
