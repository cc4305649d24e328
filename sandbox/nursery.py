"""A nursery for the background tasks of something that is open.

Knows: exception groups. Does not know: what the tasks do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from types import TracebackType


class open_background_nursery:  # noqa: N801  # used like `trio.open_nursery`; a class, since every run opens one
    """Open a nursery whose tasks end with the body, and whose body's exception comes out bare.

    A plain nursery wraps what its body raises into a group, so `except SandboxBusyError` around
    `async with open_sandbox()` would never match. Groups made of background tasks' own errors,
    which are bugs, stay groups.
    """

    __slots__ = ("_manager", "_nursery")

    async def __aenter__(self) -> trio.Nursery:
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        return self._nursery

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._nursery.cancel_scope.cancel()
        try:
            return await self._manager.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if error is not None and group.exceptions == (error,):
                return False
            raise
