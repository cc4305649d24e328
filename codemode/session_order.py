"""Which event may follow which: turns, steps, calls, nested dispatches and the surface.

`SessionState.accept` is fed every event of a log in order, live and on load, and raises on the first one
that cannot stand where it stands. What it remembers about unfinished work is what crash repair closes.

Turns may overlap: one service runs several direct programs at a time into one log, each a turn of its own.

Knows: the meaning of the order. Does not know: files, encodings, message texts.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from codemode.session_events import (
    APPEND,
    DISPATCH_END,
    DISPATCH_START,
    HEADER,
    LOSS,
    SessionEvent,
    SessionOrderError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(slots=True)
class OpenTurn:
    """A turn that has started and not ended."""

    number: int
    step: int | None = None
    last_step: int = -1
    requested: dict[str, int] = dataclasses.field(default_factory=dict)
    """Calls the model asked for that have no result yet, by call id: seq of the message that asked."""
    called: dict[str, int] = dataclasses.field(default_factory=dict)
    """Calls that were started and have no result yet, by call id: seq of the `tool/call`."""


class SessionState:
    """What the events accepted so far add up to.

    Args:
        find: Returns an earlier event by its seq; asked only when a result on the surface is rewritten.
    """

    def __init__(self, find: Callable[[int], SessionEvent]) -> None:
        self._find = find
        self.next_seq: int | None = None
        """The seq the next event must have; None before the first."""
        self.session_id: str | None = None
        self.last_time = 0
        self.last_turn = -1
        self.turns: dict[int, OpenTurn] = {}
        """Open turns by number, in the order they started."""
        self.partial = False
        """Whether earlier events are missing (rotated away, or lost), so that unknown ids are excused."""
        self.surface: list[int] = []
        """Seqs of the events the model's messages derive from, in order."""
        self._results: set[int] = set()
        self._running: dict[str, dict[str, tuple[str, str]]] = {}
        """Nested calls that have not ended, by root call and id: parent and name of each."""
        self._known: dict[str, set[str]] = {}
        self._handlers: dict[str, Callable[[dict[str, Any], SessionEvent], None]] = {
            HEADER: self._header,
            "turn/start": self._turn_start,
            "turn/end": self._turn_end,
            "step/start": self._step_start,
            "step/end": self._step_end,
            "assistant/chunk": self._chunk,
            "assistant/message": self._assistant,
            "tool/call": self._call,
            "tool/result": self._result,
            DISPATCH_START: self._dispatch_start,
            DISPATCH_END: self._dispatch_end,
        }

    def accept(self, event: SessionEvent) -> None:
        """Take the next event, or raise and change nothing.

        Raises:
            SessionOrderError: It cannot follow the events before it.
        """
        self._check_seq(event)
        shadowed = self._shadowed(event)
        # A replacement (compaction) stands for events that were judged in their own place long ago.
        handler = self._handlers.get(event["type"]) if event.get("surfaceOp", APPEND) == APPEND else None
        if handler is not None:
            handler(event["data"], event)
        if "surfaceOp" in event:
            self._change_surface(event, shadowed)
        self.next_seq = event["seq"] + 1
        self.last_time = max(self.last_time, event["time"])

    def skip(self, count: int) -> None:
        """Take note that the next `count` events were lost."""
        self.next_seq = (self.next_seq or 0) + count
        self.partial = True

    def unfinished_dispatches(self) -> list[str]:
        """Return the ids of nested calls that started and did not end, in the order they started."""
        return [sub for running in self._running.values() for sub in running]

    def _check_seq(self, event: SessionEvent) -> None:
        seq = event["seq"]
        if self.next_seq is None:
            if event["type"] != HEADER:
                raise SessionOrderError("the log does not begin with a session/header event")
            # Rotation removes the oldest files; what is left begins later and says so by its first seq.
            self.partial = seq > 0
            return
        if event["type"] == LOSS:
            first, count = event["data"]["firstSeq"], event["data"]["count"]
            if first == self.next_seq and first + count == seq:
                self.partial = True
                return
        if seq != self.next_seq:
            raise SessionOrderError(
                f"seq {seq} follows seq {self.next_seq - 1}; events in between are missing"
            )

    def _turn(self, number: int, what: str) -> OpenTurn:
        turn = self.turns.get(number)
        if turn is None:
            if not self.partial:
                raise SessionOrderError(f"{what} belongs to turn {number}, which is not open")
            turn = self.turns[number] = OpenTurn(number)
            self.last_turn = max(self.last_turn, number)
        return turn

    def _in_step(self, data: dict[str, Any], what: str) -> OpenTurn:
        turn = self._turn(data["turn"], what)
        if turn.step is None and self.partial:
            turn.step = turn.last_step = data["step"]
        if turn.step != data["step"]:
            raise SessionOrderError(
                f"{what} belongs to step {data['step']} of turn {turn.number}, which is not open"
            )
        return turn

    def _header(self, data: dict[str, Any], _event: SessionEvent) -> None:
        if self.session_id not in (None, data["id"]):
            raise SessionOrderError(
                f"a header of session {data['id']!r} follows events of {self.session_id!r}"
            )
        self.session_id = data["id"]

    def _turn_start(self, data: dict[str, Any], _event: SessionEvent) -> None:
        number = data["turn"]
        if number <= self.last_turn:
            raise SessionOrderError(
                f"turn {number} starts after turn {self.last_turn}; turn numbers only grow"
            )
        self.turns[number] = OpenTurn(number)
        self.last_turn = number

    def _turn_end(self, data: dict[str, Any], _event: SessionEvent) -> None:
        turn = self._turn(data["turn"], "turn/end")
        if turn.step is not None:
            raise SessionOrderError(f"turn {turn.number} ends while its step {turn.step} is open")
        del self.turns[turn.number]

    def _step_start(self, data: dict[str, Any], _event: SessionEvent) -> None:
        turn = self._turn(data["turn"], "step/start")
        if turn.step is not None:
            raise SessionOrderError(
                f"step {data['step']} of turn {turn.number} starts while step {turn.step} is open"
            )
        if data["step"] <= turn.last_step:
            raise SessionOrderError(
                f"step {data['step']} of turn {turn.number} starts after step {turn.last_step}"
            )
        turn.step = turn.last_step = data["step"]

    def _step_end(self, data: dict[str, Any], _event: SessionEvent) -> None:
        turn = self._in_step(data, "step/end")
        waiting = [*turn.called, *(call for call in turn.requested if call not in turn.called)]
        if waiting:
            raise SessionOrderError(
                f"step {turn.step} of turn {turn.number} ends without a result of {waiting[0]!r}"
            )
        turn.step = None

    def _chunk(self, data: dict[str, Any], _event: SessionEvent) -> None:
        self._in_step(data, "assistant/chunk")

    def _assistant(self, data: dict[str, Any], event: SessionEvent) -> None:
        turn = self._in_step(data, "assistant/message")
        for block in data["message"]["content"]:
            if (
                block["type"] == "tool-call"
                and isinstance(block.get("id"), str)
                and not data.get("interrupted")
            ):
                turn.requested[block["id"]] = event["seq"]

    def _call(self, data: dict[str, Any], event: SessionEvent) -> None:
        turn = self._in_step(data, "tool/call")
        call_id = data["callId"]
        if any(call_id in other.called for other in self.turns.values()):
            raise SessionOrderError(f"call {call_id!r} starts again before its result")
        turn.called[call_id] = event["seq"]
        self._running[call_id] = {}
        self._known[call_id] = {call_id}

    def _result(self, data: dict[str, Any], event: SessionEvent) -> None:
        turn = self._in_step(data, "tool/result")
        call_id = data["message"]["source"]["callId"]
        source = turn.called.get(call_id, turn.requested.get(call_id))
        if source is None and not self.partial:
            raise SessionOrderError(f"tool/result answers call {call_id!r}, which is not waiting for one")
        if source is not None and source not in event.get("sourceEventSeqs", ()):
            raise SessionOrderError(f"tool/result of {call_id!r} must cite seq {source}, the call it answers")
        turn.called.pop(call_id, None)
        turn.requested.pop(call_id, None)
        self._running.pop(call_id, None)
        self._known.pop(call_id, None)

    def _dispatch_start(self, data: dict[str, Any], _event: SessionEvent) -> None:
        self.start_dispatch(data["rootCallId"], data["parentCallId"], data["subCallId"], data["name"])

    def start_dispatch(self, root: str, parent: str, sub: str, name: str) -> None:
        """Take the start of a nested call as `accept` does; seq and time are the caller's to count.

        Raises:
            SessionOrderError: It cannot follow the events before it.
        """
        if root not in self._running:
            if not self.partial:
                raise SessionOrderError(f"nested call {sub!r} starts outside its root call {root!r}")
            self._running[root] = {}
            self._known[root] = {root, parent}
        known = self._known[root]
        if parent not in known and not self.partial:
            raise SessionOrderError(
                f"nested call {sub!r} names the parent {parent!r}, unknown under root {root!r}"
            )
        if sub in known:
            raise SessionOrderError(f"nested call {sub!r} starts a second time")
        known.add(sub)
        self._running[root][sub] = (parent, name)

    def _dispatch_end(self, data: dict[str, Any], _event: SessionEvent) -> None:
        self.end_dispatch(data["rootCallId"], data["parentCallId"], data["subCallId"], data["name"])

    def end_dispatch(self, root: str, parent: str, sub: str, name: str) -> None:
        """Take the end of a nested call; as for its start."""
        running = self._running.get(root)
        started = None if running is None else running.get(sub)
        if running is None or started is None:
            if self.partial:
                return
            raise SessionOrderError(
                f"nested call {sub!r} ends under root {root!r} without having started there"
            )
        if started != (parent, name):
            raise SessionOrderError(
                f"nested call {sub!r} ends with another parent or name than it started with"
            )
        del running[sub]

    def _shadowed(self, event: SessionEvent) -> slice | None:
        """Return the part of the surface this event replaces; None when it replaces nothing."""
        operation = event.get("surfaceOp", APPEND)
        if operation == APPEND:
            return None
        try:
            first, last = self.surface.index(operation["start"]), self.surface.index(operation["end"])
        except ValueError:
            if self.partial:
                return None
            raise SessionOrderError("surfaceOp replaces an event that is not on the surface") from None
        shadowed = self.surface[first : last + 1]
        if not shadowed:
            raise SessionOrderError("surfaceOp replaces a range that ends before it starts")
        uncited = sorted(set(shadowed) - set(event.get("sourceEventSeqs", ())))
        if uncited:
            raise SessionOrderError(
                f"surfaceOp replaces seq {uncited[0]} without citing it in sourceEventSeqs"
            )
        if event["type"] == "tool/result":
            if len(shadowed) != 1 or shadowed[0] not in self._results:
                raise SessionOrderError("a tool/result may replace exactly one tool/result")
            if _without_content(self._find(shadowed[0])["data"]) != _without_content(event["data"]):
                raise SessionOrderError("a tool/result that replaces another may change only its content")
        return slice(first, last + 1)

    def _change_surface(self, event: SessionEvent, shadowed: slice | None) -> None:
        if shadowed is None:
            self.surface.append(event["seq"])
        else:
            self._results.difference_update(self.surface[shadowed])
            self.surface[shadowed] = [event["seq"]]
        if event["type"] == "tool/result":
            self._results.add(event["seq"])


def _without_content(data: dict[str, Any]) -> dict[str, Any]:
    message = data["message"]
    block = {key: value for key, value in message["content"][0].items() if key != "content"}
    return {**data, "message": {**message, "content": [block]}}
