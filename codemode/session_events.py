"""The vocabulary of a session log: event types, the envelope, and what makes a record acceptable.

An event is one JSON object: `type`, `seq`, `time` (epoch milliseconds), `data`, and where they apply
`ignorable`, `surfaceOp` and `sourceEventSeqs`. A log file holds one event per line and nothing else; the
header travels inside the first event of every file, so that each line has the same shape.

Knows: shapes of single records.
Does not know: their order (`session_order`), files (`session_file`), what they add up to (`session_replay`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from codemode.errors import CodeModeError

FORMAT_VERSION: Final = 0
"""The only version this code reads and writes. Another number means another meaning: refused."""

SAFE_INTEGER: Final = 2**53 - 1
"""Largest `seq` and `time`; every reader of JSON holds it exactly."""

HEADER: Final = "session/header"
LOSS: Final = "session/loss"
DISPATCH_START: Final = "tool/code-dispatch-start"
DISPATCH_END: Final = "tool/code-dispatch"
APPEND: Final[Mapping[str, Any]] = {"kind": "append"}
"""The `surfaceOp` of an event that adds itself at the end of the surface."""

SessionEvent = dict[str, Any]
"""One event in its envelope, deep-frozen. JSON, so `Any` until a shape check has looked at it."""


class SessionLogError(CodeModeError):
    """Base of everything a session log refuses; the message says what to do instead."""

    code = "session-log"


class SessionFileError(SessionLogError):
    """The file cannot be opened, created or locked as asked; for its content see `SessionFormatError`."""

    code = "session-file"


class SessionFormatError(SessionLogError):
    """The file was read, and a record in it is not one of ours.

    Attributes:
        line: One-based line in the file, or None when no single line is at fault.
    """

    code = "session-format"

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class SessionOrderError(SessionLogError):
    """An event that cannot follow the ones before it: a bug of the caller, or a log edited by hand."""

    code = "session-order"


Check = Callable[[Any], bool]
"""Whether one field of an event's data has the right form."""


def _text(value: object) -> bool:
    return isinstance(value, str)


def _name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= SAFE_INTEGER


def _flag(value: object) -> bool:
    return type(value) is bool


def _object(value: object) -> bool:
    return isinstance(value, dict)


def _blocks(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and _name(item.get("type")) for item in value
    )


def _list(value: object) -> bool:
    return isinstance(value, list)


def _anything(_value: object) -> bool:
    return True


def _reason(value: object) -> bool:
    return isinstance(value, dict) and _name(value.get("kind"))


def _model_message(value: object) -> bool:
    return isinstance(value, dict) and value.get("role") == "assistant" and _blocks(value.get("content"))


def _result_message(value: object) -> bool:
    """One user-role message that holds exactly one tool result, for the call its source names."""
    if not (isinstance(value, dict) and value.get("role") == "user" and _name(value.get("id"))):
        return False
    source, content = value.get("source"), value.get("content")
    if not (isinstance(source, dict) and source.get("kind") == "tool" and _name(source.get("callId"))):
        return False
    if not (isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict)):
        return False
    block = content[0]
    return (
        block.get("type") == "tool-result"
        and block.get("toolCallId") == source["callId"]
        and _blocks(block.get("content"))
        and _flag(block.get("isError"))
    )


def _user_role(value: object) -> bool:
    return value == "user"


def _error_info(value: object) -> bool:
    return isinstance(value, dict) and _name(value.get("name")) and _name(value.get("code"))


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """Events that are not in the file."""

    first_seq: int
    count: int
    reason: str

    def __str__(self) -> str:
        events = "1 event is" if self.count == 1 else f"{self.count} events are"
        return f"{events} missing from seq {self.first_seq} on: {self.reason}"


@dataclasses.dataclass(frozen=True, slots=True)
class EventType:
    """What the data of one type of event must hold; keys beyond these are kept untouched."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check] = dataclasses.field(default_factory=dict)
    surface: bool = False
    """Whether the event takes part in what the model sees, and so carries a `surfaceOp`."""
    ignorable: bool = False
    """Whether a reader that does not know the type may skip it."""


_STEP: Final[Mapping[str, Check]] = {"turn": _count, "step": _count}
_DISPATCH: Final[Mapping[str, Check]] = {
    "rootCallId": _name,
    "parentCallId": _name,
    "subCallId": _name,
    "name": _name,
    "arguments": _anything,
}

EVENT_TYPES: Final[Mapping[str, EventType]] = {
    HEADER: EventType(
        {"version": _count, "id": _name, "createdAt": _count, "segment": _count},
        {"cwd": _text},
        ignorable=True,
    ),
    LOSS: EventType({"firstSeq": _count, "count": _count, "reason": _text}, ignorable=True),
    "session/end-seed": EventType({}),
    "turn/start": EventType({"turn": _count}),
    "turn/end": EventType({"turn": _count, "reason": _reason}),
    "step/start": EventType(_STEP),
    "step/end": EventType(_STEP),
    "user/message": EventType(
        {"id": _name, "role": _user_role, "content": _blocks, "source": _reason}, surface=True
    ),
    "assistant/chunk": EventType({**_STEP, "chunk": _anything}),
    "assistant/message": EventType(
        {**_STEP, "message": _model_message}, {"usage": _object, "interrupted": _flag}, surface=True
    ),
    "tool/call": EventType({**_STEP, "callId": _name, "name": _name, "arguments": _text}),
    "tool/result": EventType(
        {**_STEP, "message": _result_message}, {"error": _error_info, "meta": _anything}, surface=True
    ),
    DISPATCH_START: EventType(_DISPATCH),
    DISPATCH_END: EventType({**_DISPATCH, "isError": _flag, "content": _blocks}),
    "request/header": EventType({"header": _object, "reason": _text}),
    "todo/write": EventType({"todos": _list}),
    "plan/mode": EventType({"active": _flag}),
    "tool-workflow/run-start": EventType({}),
    "tool-workflow/agent-start": EventType({}),
    "tool-workflow/agent-end": EventType({}),
    "tool-workflow/run-end": EventType({}),
}
"""Every type of format version 0 that this code understands."""

_ENVELOPE_KEYS: Final = frozenset(
    {"type", "seq", "time", "data", "ignorable", "surfaceOp", "sourceEventSeqs"}
)


def problem_with(record: Any) -> str | None:
    """Say what keeps one decoded record from being an event of this format, or None.

    A record of an unknown type passes only when it says `"ignorable": true`.
    """
    if not isinstance(record, dict):
        return "is not a JSON object"
    if not record.keys() <= _ENVELOPE_KEYS:
        extra = sorted(record.keys() - _ENVELOPE_KEYS)
        return f"has keys an event does not have: {', '.join(map(repr, extra[:5]))}"
    if not _name(record.get("type")):
        return "has no `type`"
    for key in ("seq", "time"):
        if not _count(record.get(key)):
            return f"has no valid `{key}` (a whole number from 0 to 2**53 - 1)"
    if not isinstance(record.get("data"), dict):
        return "has no `data` object"
    if "ignorable" in record and record["ignorable"] is not True:
        return "has an `ignorable` that is not true"
    return _problem_by_type(record)


def _problem_by_type(record: SessionEvent) -> str | None:
    name = record["type"]
    kind = EVENT_TYPES.get(name)
    if kind is None:
        if record.get("ignorable") is True:
            return None
        return f"has the unknown type {name!r}, which is not marked ignorable; a newer version may read it"
    for key, check in kind.required.items():
        if key not in record["data"] or not check(record["data"][key]):
            return f"({name}) has no valid `data.{key}`"
    for key, check in kind.optional.items():
        if key in record["data"] and not check(record["data"][key]):
            return f"({name}) has no valid `data.{key}`"
    if name == HEADER and record["data"]["version"] != FORMAT_VERSION:
        version = record["data"]["version"]
        return f"says format version {version}; this program reads version {FORMAT_VERSION} only"
    return _problem_with_surface(record, surface=kind.surface)


def _problem_with_surface(record: SessionEvent, *, surface: bool) -> str | None:
    name = record["type"]
    if not surface:
        if "surfaceOp" in record or "sourceEventSeqs" in record:
            return f"({name}) carries surface fields, which its type does not have"
        return None
    operation = record.get("surfaceOp")
    if not (operation == APPEND or _is_replace(operation)):
        return f'({name}) has no `surfaceOp` {{"kind": "append"}} or {{"kind": "replace", "start", "end"}}'
    sources = record.get("sourceEventSeqs", [])
    if not (isinstance(sources, list) and all(_count(seq) and seq < record["seq"] for seq in sources)):
        return f"({name}) has a `sourceEventSeqs` that is not a list of earlier seqs"
    return None


def _is_replace(operation: object) -> bool:
    return (
        isinstance(operation, dict)
        and set(operation) == {"kind", "start", "end"}
        and operation["kind"] == "replace"
        and _count(operation["start"])
        and _count(operation["end"])
    )
