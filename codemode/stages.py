"""The stages of a nested call that are the same for a call by itself and for one of a wave.

Knows: what an aborted call may still wait for. Does not know: order, events, receipts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from tool_bindings.abort import AbortSignal
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.results import ToolResult


async def result_of(dispatch: Dispatch, signal: AbortSignal) -> ToolResult:
    """Run the body of a call that is prepared, and what follows it.

    Args:
        dispatch: The call.
        signal: What ends it. The call may be cut off then, but not what follows its body.
    """
    await dispatch.execute()
    if signal.aborted:
        with trio.CancelScope(shield=True):
            result = await dispatch.finish()
    else:
        result = dispatch.finish_nowait() or await dispatch.finish()
    return result
