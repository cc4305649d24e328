"""Where a service's session events go: a session log, a listener, both, or nowhere.

Knows: envelopes and their numbers. Does not know: what an event means.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from codemode.session_events import APPEND
from sandbox.values import snapshot_frozen
from tool_bindings.annotated import DEFAULT_POLICY, EVENT_FIELD, observed

if TYPE_CHECKING:
    from codemode.session_log import SessionLog
    from sandbox.values import JsonValue
    from tool_bindings.annotated import ProjectionPolicy
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.redaction import SecretMasker
    from tool_bindings.results import ToolResult

EventListener = Callable[[dict[str, Any]], None]

_logger = logging.getLogger(__name__)


class EventSink:
    """Appends events to a log and shows them to a listener.

    Without either, `wanted` is False and callers need not build events at all.
    A listener that raises is logged and never reaches the run.
    """

    def __init__(
        self,
        log: SessionLog | None,
        listener: EventListener | None,
        masker: SecretMasker | None = None,
        projection: ProjectionPolicy = DEFAULT_POLICY,
    ) -> None:
        self._log = log
        self._projection = projection
        self._listener = listener
        self._masker = masker
        self._numbers = itertools.count()
        self._turns = itertools.count()
        self.wanted = log is not None or listener is not None
        self.hides_payload = projection.hides_payload
        """Whether what is shown of an ordinary success says nothing of its value."""
        self.text_log = log if listener is None and masker is None else None
        """The log, where events of nested calls may go to it as text while it `only_writes`."""

    def annotation(self, call: Dispatch, result: ToolResult) -> dict[str, JsonValue]:
        """Return the fields that say in an event what a result means."""
        return observed(call, result, self._projection)

    def own_annotation(self, call: Dispatch, result: ToolResult) -> JsonValue:
        """Return what a receipt says of the meaning of a result that has an annotation of its own."""
        if result.annotation is None:
            return None
        shown = self.annotation(call, result).get(EVENT_FIELD)
        return shown if self._masker is None else self._masker.mask(shown)

    def next_turn(self) -> int:
        """Return the number of a turn that is about to start."""
        return next(self._turns) if self._log is None else self._log.next_turn

    def emit(
        self, name: str, data: Mapping[str, Any], *, surface: bool = False, sources: list[int] | None = None
    ) -> int:
        """Record one event and return its number.

        Args:
            name: The event's type.
            data: Lossless JSON.
            surface: Whether the event takes part in what a model sees.
            sources: Numbers of the events this one comes from.
        """
        if self._masker is not None:
            data = self._masker.mask(data)  # type: ignore[assignment, arg-type]  # a record stays a record
        if self._log is not None:
            event = self._log.append(name, data, APPEND if surface else None, sources)
        else:
            event = {
                "type": name,
                "seq": next(self._numbers),
                "time": time.time_ns() // 1_000_000,
                # A copy, as a log would make: a listener must not change the call it hears of.
                "data": snapshot_frozen(dict(data), "event"),
            }
            if surface:
                event["surfaceOp"] = APPEND
                event["sourceEventSeqs"] = sources or []
        if self._listener is not None:
            try:
                self._listener(event)
            except Exception:
                _logger.exception("an event listener raised on %s", name)
        return int(event["seq"])
