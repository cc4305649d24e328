"""What is appended to a log whose last turn was cut off, so that it reads as a complete one.

Nothing that was recorded changes: repair only adds. A call that was started may or may not have taken
effect, and its result says so; one that was never started may be made again. Nested calls without an end
are left as they are: an unpaired start is the fact, and a receipt shows it as `unknown`.

Knows: what closes an open turn. Does not know: how events are written.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codemode.session_order import OpenTurn, SessionState

_UNKNOWN: Final = ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN")
_UNKNOWN_TEXT: Final = (
    "Error: the session ended while this call was running, so its outcome is unknown: it may have taken "
    "effect, wholly or in part. Check the present state first; repeat it blindly only if it just reads or "
    "is idempotent."
)
_NOT_STARTED: Final = ("ToolNotStartedError", "TOOL_NOT_STARTED")
_NOT_STARTED_TEXT: Final = (
    "Error: the session ended before this call was started. It had no effect and may be made again."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Closer:
    """One event that repair appends."""

    type: str
    data: dict[str, Any]
    source_event_seqs: list[int] | None = None


def closers(state: SessionState) -> Iterator[Closer]:
    """Yield the events that close every open turn of a log, in the order to append them.

    Args:
        state: The log as recorded. It is read lazily, so append each event after taking it and
            feed it to another state than this one, or take them all first.
    """
    for turn in state.turns.values():
        yield from _close(turn)


def _close(turn: OpenTurn) -> Iterator[Closer]:
    # Results come in the order the model asked; calls no model asked for, in the order they started.
    for call_id in [*turn.requested, *(call for call in turn.called if call not in turn.requested)]:
        if call_id in turn.called:
            yield _result(turn, call_id, turn.called[call_id], _UNKNOWN, _UNKNOWN_TEXT)
        else:
            yield _result(turn, call_id, turn.requested[call_id], _NOT_STARTED, _NOT_STARTED_TEXT)
    if turn.step is not None:
        yield Closer("step/end", {"turn": turn.number, "step": turn.step})
    yield Closer("turn/end", {"turn": turn.number, "reason": {"kind": "interrupted"}})


def _result(turn: OpenTurn, call_id: str, source: int, error: tuple[str, str], text: str) -> Closer:
    block = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": text}],
        "isError": True,
    }
    message = {
        "id": f"{call_id}:repair",
        "role": "user",
        "source": {"kind": "tool", "callId": call_id},
        "content": [block],
    }
    data = {
        "turn": turn.number,
        "step": turn.step,
        "message": message,
        "error": dict(zip(("name", "code"), error, strict=True)),
    }
    return Closer("tool/result", data, [source])
