"""Open texts that were spilled, by their locator, for the session they belong to.

Knows: how a locator is told from a path, and how a stored text is opened.
Does not know: how texts are stored, or what is done with them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tool_bindings.spill import SCHEME, SpillError
from tool_bindings.tools.errors import FsError, fs_error_from_os

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tool_bindings.spill import SpillStore

__all__ = ["is_locator", "open_spilled", "session_id_of"]


def is_locator(path: str) -> bool:
    """Tell a locator from a path; a file of such a name is reached as `./spill:…`."""
    return path.startswith(SCHEME)


def session_id_of(session: object) -> str | None:
    """Return the id under which a session's texts are stored, or None when it has none."""
    session_id = getattr(session, "id", None)
    return session_id if isinstance(session_id, str) else None


@contextmanager
def open_spilled(store: SpillStore, session: object, locator: str) -> Iterator[int]:
    """Open a stored text of one session for reading.

    Blocking: call it in a thread.

    Args:
        store: Where it was stored.
        session: The session that reads it; only its own texts are found.
        locator: What names it.

    Raises:
        FsError: There is no such text in this session, or no longer.
    """
    session_id = session_id_of(session)
    if session_id is None:
        raise FsError("FS_NOT_FOUND", f'there is no stored text "{locator}": this call belongs to no session')
    try:
        path = store.find(session_id, locator)
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except SpillError as error:
        raise FsError("FS_NOT_FOUND", str(error)) from None
    except OSError as error:
        raise fs_error_from_os(error, "open", locator) from None
    try:
        yield fd
    finally:
        os.close(fd)
