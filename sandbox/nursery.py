"""A nursery for the background tasks of something that is open.

Knows: exception groups. Does not know: what the tasks do.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def open_background_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks end with the body, and whose body's exception comes out bare.

    A plain nursery wraps what its body raises into a group, so `except SandboxBusyError` around
    `async with open_sandbox()` would never match. Groups made of background tasks' own errors,
    which are bugs, stay groups.
    """
    raised: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as error:
                raised = error
                raise
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if raised is not None and group.exceptions == (raised,):
            raise raised from raised.__cause__
        raise
