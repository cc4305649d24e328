"""Step: a private, empty, read-only file system as root."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from sandbox.isolation import libc

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 1 << 18

_MOUNT_POINTS: Final = ("/tmp", "/mnt", "/var", "/usr")  # noqa: S108  # only a place to mount on; nothing is written


def probe() -> str:
    """Say whether the kernel has tmpfs.

    Raises:
        OSError: It has not, or /proc is not mounted.
    """
    if "\ttmpfs\n" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        raise OSError(errno.ENODEV, "the kernel has no tmpfs")
    return "tmpfs"


def apply() -> str:
    """Replace the root by an empty tmpfs and let go of the old one. Needs the mount namespace.

    mode=0555 and not 0: the inode's owner is unmapped in the user namespace, so a root
    without "other" permissions could not even be entered.

    Raises:
        OSError: The kernel refused.
    """
    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    point = next((path for path in _MOUNT_POINTS if Path(path).is_dir()), None)
    if point is None:
        raise OSError(errno.ENOENT, f"there is none of {', '.join(_MOUNT_POINTS)} to mount on")
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
    libc.mount(b"none", point.encode(), b"tmpfs", flags, b"size=4k,nr_inodes=2,mode=0555")
    os.chdir(point)
    try:
        # New root and old root stacked on one directory: pivot_root(2), "pivot_root(".", ".")".
        libc.syscall("pivot_root", b".", b".")
        libc.umount_detached(b".")
        detail = "empty, the host's is unmounted"
    except OSError:
        # An initramfs root cannot be pivoted. The old root then stays mounted but out of reach:
        # leaving a chroot needs CAP_SYS_CHROOT, which the next step gives up.
        os.chroot(".")
        detail = "empty, by chroot"
    os.chdir("/")
    return detail
