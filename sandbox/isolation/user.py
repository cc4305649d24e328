"""Step: stop being root."""

from __future__ import annotations

import os
from typing import Final

NOBODY: Final = 65534
"""uid and gid of the overflow user, which owns nothing on any distribution we know."""


def probe() -> str:
    """Say who we are."""
    uid = os.geteuid()
    return f"root, to become uid {NOBODY}" if uid == 0 else f"an ordinary user (uid {uid})"


def apply() -> str:
    """Become nobody for good when we are root; an ordinary user stays itself.

    Must come before the user namespace: a namespace made by root keeps kernel uid 0 in it.

    Raises:
        OSError: We are root without the right to change user.
    """
    uid = os.geteuid()
    if uid != 0:
        return f"uid {uid}"
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    return f"uid {NOBODY}"
