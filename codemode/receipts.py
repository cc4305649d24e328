"""The receipt of a run: what was called with which arguments, whether it ran, how it ended.

Knows: records and their bounds. Does not know: dispatching, logs.
"""

from __future__ import annotations

import dataclasses
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal

from sandbox import values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.values import JsonValue

CallStatus = Literal["succeeded", "failed", "unknown", "not_started"]

MAX_ARGUMENT_BYTES: Final = 2048
"""JSON bytes of the arguments a record keeps. Arbitrary: enough to recognise a call."""
SHORT_TEXT_BYTES: Final = MAX_ARGUMENT_BYTES // 6
"""Arguments that `encode` writes in so few bytes need not be bounded: a number's text in a receipt is up to
5.25 times as long (`1e20`)."""
_MAX_STRING_CHARS: Final = 200
_FEW: Final = 4
_SHORT_CHARS: Final = 40
_SHORT_INT: Final = 10**18
_SHORT_KINDS: Final = frozenset({bool, float, NoneType})
_MAX_ERROR_CHARS: Final = 2000
MAX_DONE_CHARS: Final = 2000
"""Characters of the list of calls that a failed run must not repeat. Arbitrary: about 500 tokens."""


@dataclasses.dataclass(slots=True)
class CallRecord:
    """One nested call."""

    id: str
    tool: str
    arguments: JsonValue
    """As sent, or cut to a recognisable size: see `bounded_arguments`."""
    status: CallStatus = "not_started"
    executed: bool = False
    """Whether the tool's body began to run."""
    duration_ms: float = 0.0
    line: int | None = None
    """Line of the program that made the call, by the worker's word."""
    error_message: str | None = None
    error_code: str | None = None
    annotation: JsonValue = None
    """What observers may see of the result's annotation, where the result has one of its own."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as `run --json` prints it."""
        record: dict[str, Any] = {
            "id": self.id,
            "tool": self.tool,
            "arguments": self.arguments,
            "status": self.status,
            "executed": self.executed,
            "durationMs": round(self.duration_ms, 3),
        }
        if self.line is not None:
            record["line"] = self.line
        if self.error_message is not None:
            record["error"] = {"message": self.error_message[:_MAX_ERROR_CHARS]}
            if self.error_code is not None:
                record["error"]["code"] = self.error_code
        if self.annotation is not None:
            record["annotation"] = self.annotation
        return record


def already_done(records: Sequence[CallRecord]) -> str:
    """Say which calls had an effect before a run failed, or '' when none had.

    Calls whose outcome is not known count: repeating them is as wrong. Within `MAX_DONE_CHARS`.
    """
    done = [record for record in records if record.executed and record.status in ("succeeded", "unknown")]
    if not done:
        return ""
    lines = ["Already done before the failure (do not repeat these calls):"]
    room = MAX_DONE_CHARS
    for number, record in enumerate(done):
        arguments = values.encode(record.arguments).decode("ascii")
        if len(arguments) > _MAX_STRING_CHARS:
            arguments = arguments[:_MAX_STRING_CHARS] + "…"
        where = "" if record.line is None else f" (line {record.line})"
        ending = "" if record.status == "succeeded" else ": outcome unknown"
        line = f"- {record.tool}({arguments}){where}{ending}"
        if len(line) > room:
            lines.append(f"- and {len(done) - number} more")
            break
        room -= len(line)
        lines.append(line)
    return "\n".join(lines)


def bounded_arguments(arguments: JsonValue) -> JsonValue:
    """Return the arguments, with long parts cut when they are too large for a receipt.

    Cut parts end in `…` and say how long they were; the shape of the top level stays.
    """
    if isinstance(arguments, dict) and len(arguments) <= _FEW:
        # Most arguments are a few plain, short values.
        for name, value in arguments.items():
            kind = type(value)
            if kind is int:
                # Which may have any number of digits.
                if not -_SHORT_INT < value < _SHORT_INT:  # type: ignore[operator]  # an int, then
                    break
            elif kind is str:
                if len(value) > _SHORT_CHARS:  # type: ignore[arg-type]  # a string, then
                    break
            elif kind not in _SHORT_KINDS:
                break
            if len(name) > _SHORT_CHARS:
                break
        else:
            return arguments
    if values.json_size(arguments) <= MAX_ARGUMENT_BYTES:
        return arguments
    if not isinstance(arguments, dict):
        return _cut(arguments)
    bounded: dict[str, JsonValue] = {}
    room = MAX_ARGUMENT_BYTES
    for name, value in arguments.items():
        if room <= 0:
            bounded["…"] = f"{len(arguments) - len(bounded)} more arguments"
            break
        short_name = name[:_MAX_STRING_CHARS]
        bounded[short_name] = value if values.json_size(value) <= _MAX_STRING_CHARS else _cut(value)
        room -= values.string_size(short_name) + values.json_size(bounded[short_name])
    return bounded


def _cut(value: JsonValue) -> str:
    if isinstance(value, str):
        return f"{value[:_MAX_STRING_CHARS]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return f"{{…}} ({len(value)} members, {values.json_size(value)} bytes)"
    if isinstance(value, list):
        return f"[…] ({len(value)} items, {values.json_size(value)} bytes)"
    return f"… ({values.json_size(value)} bytes)"
