"""Opening the files that are written while something runs: private, no links followed, one writer at a time.

Knows: descriptors, locks, and why an open fails. Does not know: what the files hold.
"""

from __future__ import annotations

import fcntl
import os
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPEN_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""No link is followed, and a named pipe somebody put there does not make the open wait."""


class Refusal(NamedTuple):
    """How a caller words what is wrong with a file."""

    error: Callable[[str], Exception]
    """Makes its error of a text."""
    cannot: str
    """How the text begins, before the file: "cannot write to"."""
    named: Path
    """The file that a person named, which lies where the opened one does."""
    in_use: str
    """The whole text when another process writes the file."""

    def __call__(self, path: Path, why: str) -> Exception:
        """Return the error to raise for a file."""
        return self.error(f"{self.cannot} {str(path)!r}: {why}")


def reason(error: OSError) -> str:
    """Return the operating system's words for an error, without path and number."""
    return error.strerror or type(error).__name__


def open_private(path: Path, refusal: Refusal) -> int:
    """Open a regular file for appending, or create it readable by its owner only; return the descriptor."""
    try:
        descriptor = os.open(path, OPEN_FLAGS | os.O_CREAT, 0o600)
    except FileNotFoundError as error:
        raise refusal(refusal.named, f"the directory {str(path.parent)!r} does not exist") from error
    except OSError as error:
        # ELOOP here means the last part of the path is a link, which is never followed.
        raise refusal(path, "it is a symbolic link" if path.is_symlink() else reason(error)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refusal(path, "it is not a regular file")
    return descriptor


def open_locked(path: Path, refusal: Refusal) -> int:
    """Open a file as `open_private` does and take its lock."""
    while True:
        descriptor = open_private(path, refusal)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have put another file under this name between our open and our lock,
            # or removed it.
            if os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False)):
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise refusal.error(refusal.in_use) from error
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(descriptor)
            raise refusal(path, f"it cannot be locked: {reason(error)}") from error
        os.close(descriptor)
