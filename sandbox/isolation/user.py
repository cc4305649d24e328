"""Step: stop being root."""

from __future__ import annotations

import os
from typing import Final

NOBODY: Final = 65534
"""uid and gid of the overflow user, which owns nothing on any distribution we know."""


def apply() -> None:
    """Become nobody for good when we are root; an ordinary user stays itself.

    Must come before the user namespace: a namespace made by root keeps kernel uid 0 in it.
    """
    if os.geteuid() != 0:
        return
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
