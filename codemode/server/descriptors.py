"""Keeping standard output for messages alone.

Call it before anything else is loaded: modules print while they are imported, too.

Knows: descriptors. Does not know: messages.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import sys
from typing import Final

__all__ = ["Descriptors", "claim_standard_streams"]

_FIRST_PRIVATE: Final = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Descriptors:
    """The real standard input and output, where no library looks for them."""

    wire_in: int
    wire_out: int


def claim_standard_streams() -> Descriptors:
    """Move standard input and output away; descriptor 0 is at its end and 1 is standard error from now on.

    Child processes inherit neither of the moved ones.

    Raises:
        OSError: One of them is closed.
    """
    sys.stdout.flush()
    wire_in = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    wire_out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:
            os.dup2(null, 1)  # Standard error is closed.
    finally:
        os.close(null)
    return Descriptors(wire_in, wire_out)
