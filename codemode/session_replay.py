"""What a log means: the messages a model saw, the results a person is shown, the receipt of a call.

Everything here is derived from recorded events and from nothing else, so a live session and its log read
back later agree byte for byte. Canonical values are not recorded and cannot be rebuilt.

Knows: how events add up. Does not know: files, order rules.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from codemode.event_text import ending_of, error_code
from codemode.receipts import CallRecord, bounded_arguments
from codemode.session_events import APPEND, SessionEvent
from tool_bindings.content import blocks_text

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayedResult:
    """One finished tool call, as a presenter needs it."""

    call_id: str
    name: str | None
    """Tool name; None when the call itself was never started or is no longer in the log."""
    arguments: str | None
    """The raw JSON text the caller sent; None as for `name`."""
    content: list[dict[str, Any]]
    is_error: bool
    error: dict[str, str] | None
    """Recorded `name` and `code` of the error; its text is in `content` only."""
    meta: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Replay:
    """A whole log, read back."""

    messages: tuple[dict[str, Any], ...]
    """What a model would be sent, in order."""
    results: tuple[ReplayedResult, ...]
    """Results on the surface, in order."""


def replay(events: Iterable[SessionEvent]) -> Replay:
    """Derive messages and results from the events of one log, in order."""
    surface: dict[int, SessionEvent] = {}
    calls: dict[int, SessionEvent] = {}
    for event in events:
        if event["type"] == "tool/call":
            calls[event["seq"]] = event
        elif "surfaceOp" in event:
            surface = _with(surface, event)
    return Replay(
        messages=tuple(message for event in surface.values() if (message := _message(event)) is not None),
        results=tuple(_result(event, calls) for event in surface.values() if event["type"] == "tool/result"),
    )


def receipt(events: Iterable[SessionEvent], call_id: str) -> tuple[CallRecord, ...] | None:
    """Rebuild the ordered record of the nested calls below one call; None when the log never saw the call.

    When an id was used by several turns, the last one counts.
    """
    starts: dict[str, SessionEvent] = {}
    ends: dict[str, SessionEvent] = {}
    seen = False
    for event in events:
        data = event["data"]
        if event["type"] == "tool/call" and data["callId"] == call_id:
            seen, starts, ends = True, {}, {}
        elif event["type"] == "tool/code-dispatch-start" and data["rootCallId"] == call_id:
            seen = True
            starts[data["subCallId"]] = event
        elif event["type"] == "tool/code-dispatch" and data["rootCallId"] == call_id:
            ends[data["subCallId"]] = event
    return tuple(_record(event, ends.get(sub_id)) for sub_id, event in starts.items()) if seen else None


def _record(start: SessionEvent, end: SessionEvent | None) -> CallRecord:
    """Make one record of a start and its end, as the run's own receipt has it, but for one thing.

    The log does not say whether a failed call was refused before its body ran, so it counts as executed:
    the side to err on for whoever decides what to repeat.
    """
    data = start["data"]
    record = CallRecord(
        id=data["subCallId"],
        tool=data["name"],
        arguments=bounded_arguments(data["arguments"]),
        status="unknown" if end is None else ending_of(end["data"]),
        executed=True,
    )
    if end is not None:
        record.duration_ms = float(end["time"] - start["time"])
        if end["data"]["isError"]:
            record.error_code = error_code(end["data"])
            record.error_message = blocks_text(end["data"]["content"]).removeprefix("Error: ")
    return record


def _with(surface: dict[int, SessionEvent], event: SessionEvent) -> dict[int, SessionEvent]:
    """Return the surface after one event; a replacement stands where the first event it shadows stood."""
    operation = event["surfaceOp"]
    if operation == APPEND or operation["start"] not in surface or operation["end"] not in surface:
        surface[event["seq"]] = event
        return surface
    seqs = list(surface)
    first, last = seqs.index(operation["start"]), seqs.index(operation["end"])
    kept = list(surface.items())
    kept[first : last + 1] = [(event["seq"], event)]
    return dict(kept)


def _message(event: SessionEvent) -> dict[str, Any] | None:
    if event["type"] == "user/message":
        return dict(event["data"])
    message: dict[str, Any] = event["data"]["message"]
    return message if message["content"] else None


def _result(event: SessionEvent, calls: dict[int, SessionEvent]) -> ReplayedResult:
    data = event["data"]
    block = data["message"]["content"][0]
    call_id = block["toolCallId"]
    call = next(
        (
            calls[seq]
            for seq in event.get("sourceEventSeqs", ())
            if seq in calls and calls[seq]["data"]["callId"] == call_id
        ),
        None,
    )
    return ReplayedResult(
        call_id=call_id,
        name=call["data"]["name"] if call else None,
        arguments=call["data"]["arguments"] if call else None,
        content=block["content"],
        is_error=block["isError"],
        error=data.get("error"),
        meta=data.get("meta"),
    )
