"""Asking listeners in turn.

Knows: chains in which each listener decides whether the next one is asked.
Does not know: what is asked.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["settled", "waterfall"]


async def settled(answer: Any) -> Any:
    """Await what an async listener returned; take what a plain one returned."""
    return await answer if inspect.isawaitable(answer) else answer


async def waterfall(
    listeners: Sequence[Callable[..., Any]],
    arguments: tuple[Any, ...],
    base: Callable[[], Awaitable[Any]],
    position: int = 0,
) -> Any:
    """Ask the first listener; each gets a `proceed` that asks the next, and the last one `base`."""
    if position == len(listeners):
        return await base()

    async def proceed() -> Any:
        return await waterfall(listeners, arguments, base, position + 1)

    return await settled(listeners[position](*arguments, proceed))
