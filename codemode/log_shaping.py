"""What the log keeps of nested calls, when that is not what was shown: cut, masked, or kept elsewhere.

Shaping runs off the program's path: a slow listener delays neither the program's value nor the next call,
until more shapings wait than calls may run at a time; then calls wait to settle. All of it is done before
the run ends.

Knows: listeners, back-pressure. Does not know: dispatching, where events go beyond the sink.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from codemode.session_events import DISPATCH_END

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from codemode.events import EventSink

_logger = logging.getLogger(__name__)


class DispatchLogEntry(NamedTuple):
    """A nested call that has settled, as it is about to be recorded."""

    call_id: str
    name: str
    is_error: bool
    content: Sequence[Any]
    session: object


if TYPE_CHECKING:
    LogListener = Callable[[DispatchLogEntry], Awaitable[Sequence[Any] | None]]
    """Returns the blocks to record instead, or None to keep them."""


class LogShaper:
    """Asks the listeners of one run and records what they answer.

    Args:
        listeners: Asked in order; each sees what the one before made of the content.
        sink: Where events go.
        nursery: Where shaping runs; the run waits for it.
        max_waiting: Shapings that may wait before calls do.
        session: Handed to the listeners.
    """

    def __init__(
        self,
        listeners: Sequence[LogListener],
        sink: EventSink,
        nursery: trio.Nursery,
        *,
        max_waiting: int,
        session: object,
    ) -> None:
        self._listeners = listeners
        self._sink = sink
        self._nursery = nursery
        self._room = trio.Semaphore(max_waiting + 1)
        self._session = session

    async def record(self, event: dict[str, Any]) -> None:
        """Record the end of a nested call, shaped; returns as soon as there is room to wait in."""
        await self._room.acquire()
        self._nursery.start_soon(self._shape, event)

    async def _shape(self, event: dict[str, Any]) -> None:
        try:
            content = event["content"]
            for listener in self._listeners:
                entry = DispatchLogEntry(
                    event["subCallId"], event["name"], event["isError"], content, self._session
                )
                shaped = await listener(entry)
                content = content if shaped is None else list(shaped)
            self._sink.emit(DISPATCH_END, {**event, "content": content})
        except Exception:
            _logger.exception(
                "a log listener failed on call %s; the original is recorded", event["subCallId"]
            )
            self._sink.emit(DISPATCH_END, event)
        finally:
            self._room.release()
