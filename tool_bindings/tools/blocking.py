"""Run blocking file work in a thread, stoppable between two steps.

Knows: trio's threads, and how a tool's abort signal ends file work.
Does not know: what the work is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from tool_bindings.tools.errors import FsError

if TYPE_CHECKING:
    from tool_bindings.definition import ToolRunContext

__all__ = ["Checkpoint", "run_blocking"]

T = TypeVar("T")

Checkpoint = Callable[[], None]
"""Called by the work where it may stop; raises when it has to."""


async def run_blocking(context: ToolRunContext, work: Callable[[Checkpoint], T]) -> T:
    """Run `work` in a thread and wait for it to end, also when cancelled.

    The thread is never abandoned: a change to a file is either not begun or finished when this returns.

    Args:
        context: The call; its abort signal is looked at by the checkpoint.
        work: Gets the checkpoint and does the work.

    Raises:
        FsError: The call was aborted (`FS_ABORTED`), or what `work` raises.
    """

    def checkpoint() -> None:
        # The signal first: its error says more than a bare cancellation.
        if context.abort.aborted:
            raise FsError(
                "FS_ABORTED", "the file operation was aborted before it finished; nothing was changed"
            )
        trio.from_thread.check_cancelled()

    def start() -> T:
        checkpoint()
        return work(checkpoint)

    return await trio.to_thread.run_sync(start)
