"""The protocol between supervisor and worker: frames, messages, and their validation.

A frame is a little-endian 32-bit length and that many bytes of JSON: a list of messages.
A message is a list whose first item names it. The vocabulary below is the only place where
either side spells those names. Large results, which only the host sends, have a form of their own: `packed`.

    supervisor -> worker   warm, prepare, rouse, run, pace, result, results, error
    worker -> supervisor   ready, call, batch, cancel, log, done

A batch is many calls, with numbers in a row from the one it says; results are those of calls with numbers in
a row. What has no place in a row, an error or a packed result, is answered by itself, as single calls are.

Knows: bytes. Does not know: sockets, processes, what a message makes happen.
The supervisor treats every byte from a worker as hostile: `parse_message` rebuilds each message
from checked parts, and raises `WireProtocolError` for anything no worker of ours would send.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from sandbox import values
from sandbox.errors import WireProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox.values import JsonValue

HEADER_BYTES: Final = 4
FRAME_OVERHEAD_BYTES: Final = 64 * 1024
"""What a frame may hold beyond the value or log text it carries: names, ids, a traceback."""

WARM: Final = "warm"
PREPARE: Final = "prepare"
ROUSE: Final = "rouse"
"""A program will come within a moment."""
RUN: Final = "run"
PACE: Final = "pace"
"""For how many microseconds to look for a message before sleeping; leads its frame."""
RESULT: Final = "result"
RESULTS: Final = "results"
ERROR: Final = "error"
READY: Final = "ready"
CALL: Final = "call"
BATCH: Final = "batch"
CANCEL: Final = "cancel"
LOG: Final = "log"
DONE: Final = "done"

BROKEN_START: Final = "set-up"
"""Name of the step a worker reports as failed when it could not be set up at all."""

MAX_NAME_CHARS: Final = 512
MAX_CALL_ID: Final = 2**53
MAX_LINE: Final = 2**31
MAX_BATCH_CALLS: Final = 128
"""Calls in one message. Arbitrary: so few that the host soon has some to do while the others are written."""
MAX_TRACE_FRAMES: Final = 50
MAX_TEXT_CHARS: Final = 64 * 1024
"""Bound of each text of a failure but the message, which the output ledger bounds."""

MAX_LONG_DIGITS: Final = 200_000
"""Digits of a frame's long integers together. Reading n digits takes n^1.6 time in CPython, and holds the
whole interpreter while it does: 200 000 take some 0.2 s, a million 3 s, on the machine at hand. Arbitrary."""
_LONG_DIGITS: Final = re.compile(rb"[0-9]{4301,}")
"""From 4300 digits on CPython itself asks to be careful."""
_TEXT_OR_LONG_DIGITS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[0-9]{4301,}')

SLICED_BYTES: Final = 256 * 1024
"""Frames above this are read in pieces, between which other threads run. Arbitrary: some 50 ms at once."""

DoneKind = Literal["policy", "exception", "memory-limit", "invalid-output", "output-limit"]
DONE_KINDS: Final[frozenset[str]] = frozenset(DoneKind.__args__)  # type: ignore[attr-defined]  # a Literal has them
"""Failure kinds a worker may report of its own program; the others are the supervisor's to say."""


class Ready(NamedTuple):
    """The worker is locked down and waits for its program."""

    steps: tuple[tuple[str, bool, str], ...]


class Call(NamedTuple):
    """The program calls a host function."""

    id: int
    namespace: str
    member: str
    arguments: JsonValue
    line: int | None


class Batch(NamedTuple):
    """The program makes several calls at a time. Only if the worker says so are their numbers in a row."""

    calls: list[Call]


class Cancel(NamedTuple):
    """The program no longer waits for a call."""

    id: int


class Log(NamedTuple):
    """The program printed; the text need not end a line."""

    text: str


class DoneFailure(NamedTuple):
    """The program failed, in the worker's words."""

    kind: DoneKind
    message: str
    error_type: str | None
    line: int | None
    hint: str | None
    traceback: tuple[tuple[int, str, str], ...]


class Done(NamedTuple):
    """The program ended."""

    has_value: bool
    value: JsonValue
    failure: DoneFailure | None
    hint: str | None


FromWorker = Ready | Call | Batch | Cancel | Log | Done


def pack(messages: list[bytes]) -> bytes:
    """Return one frame of already encoded messages."""
    payload = b"[%b]" % b",".join(messages)
    return len(payload).to_bytes(HEADER_BYTES, "little") + payload


class FrameBuffer:
    """Bytes received so far, cut into frames.

    Args:
        max_frame_bytes: A longer announced frame raises before its bytes are kept.
    """

    __slots__ = ("_bytes", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self._bytes = bytearray()
        self._max_frame_bytes = max_frame_bytes

    def __len__(self) -> int:
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._bytes += data

    def only_payload(self, data: bytes) -> bytes | None:
        """Return the payload of received bytes that are just one whole frame, or None and keep nothing.

        What nearly every receive gives during short calls; `feed` and `next_payload` take all else there is.
        """
        length = len(data) - HEADER_BYTES
        if self._bytes or length < 0 or length > self._max_frame_bytes:
            return None
        return data[HEADER_BYTES:] if int.from_bytes(data[:HEADER_BYTES], "little") == length else None

    def next_payload(self) -> bytes | None:
        """Return the next whole frame's payload, or None until more bytes arrive.

        Raises:
            WireProtocolError: The peer announced a frame above the bound.
        """
        buffer = self._bytes
        if len(buffer) < HEADER_BYTES:
            return None
        length = int.from_bytes(buffer[:HEADER_BYTES], "little")
        if length > self._max_frame_bytes:
            raise WireProtocolError(
                f"a frame of {length} bytes was announced; the bound is {self._max_frame_bytes}"
            )
        end = HEADER_BYTES + length
        if len(buffer) < end:
            return None
        payload = bytes(buffer[HEADER_BYTES:end])
        del buffer[:end]
        return payload

    def plain_messages(self, most_bytes: int) -> Iterator[FromWorker]:
        """Take the messages of the next whole frames that hold printed text and a program's end only.

        Args:
            most_bytes: A longer frame stays, as does any other, and all that follow.
        """
        while True:
            try:
                payload = self.next_payload()
            except WireProtocolError:
                return  # Which is still there for whoever takes the next one.
            if payload is None:
                return
            messages = _plain_messages(payload) if len(payload) <= most_bytes else None
            if messages is None:
                self._bytes[:0] = len(payload).to_bytes(HEADER_BYTES, "little") + payload
                return
            yield from messages


def long_digits(payload: bytes) -> int:
    """Return how many digits the long integers of a frame have together, 0 when they are few."""
    if len(payload) <= MAX_LONG_DIGITS:
        return 0
    if sum(len(found.group()) for found in _LONG_DIGITS.finditer(payload)) <= MAX_LONG_DIGITS:
        return 0
    # Digits in texts cost nothing, so tell them apart.
    found = (match.group() for match in _TEXT_OR_LONG_DIGITS.finditer(payload))
    return sum(len(token) for token in found if not token.startswith(b'"'))


def decode_payload(payload: bytes) -> list[Any]:
    """Return the messages of a frame as plain JSON values.

    Raises:
        WireProtocolError: The bytes are not a JSON list.
    """
    try:
        messages = values.decode(payload) if len(payload) <= SLICED_BYTES else _decode_long(payload)
    except ValueError as error:
        raise WireProtocolError("a frame is not JSON") from error
    if type(messages) is not list:
        raise WireProtocolError("a frame is not a list of messages")
    return messages


def _decode_long(payload: bytes) -> JsonValue:
    from sandbox.json_slices import decode_in_slices  # noqa: PLC0415  # only the host gets such frames

    return decode_in_slices(payload.decode("utf-8"))


def parse_messages(messages: list[Any]) -> Iterator[FromWorker]:
    """Rebuild the messages of a frame, when each is asked for.

    Calls that came together are a batch, whether or not the worker has said so.

    Raises:
        WireProtocolError: The next one is not a message that a worker of ours sends.
    """
    for start in range(0, len(messages), MAX_BATCH_CALLS):
        some = messages[start : start + MAX_BATCH_CALLS]
        if len(some) > 1 and all(type(message) is list and message[:1] == [CALL] for message in some):
            yield Batch(list(map(_parse_call, some)))
        else:
            yield from map(parse_message, some)


def parse_message(message: Any) -> FromWorker:
    """Rebuild one worker message from checked parts.

    Raises:
        WireProtocolError: Not a message a worker of ours sends.
    """
    if type(message) is not list or not message or type(message[0]) is not str:
        raise WireProtocolError("a message is not a list that starts with its name")
    parse = _PARSERS.get(message[0])
    if parse is None:
        raise WireProtocolError("a message has an unknown name")
    return parse(message)


def _plain_messages(payload: bytes) -> list[FromWorker] | None:
    """Return the messages of a frame that holds printed text and a program's end only; None for any other."""
    try:
        messages = list(map(parse_message, decode_payload(payload)))
    except WireProtocolError:
        return None
    return messages if all(isinstance(message, (Log, Done)) for message in messages) else None


def _parse_ready(message: list[Any]) -> Ready:
    _expect(len(message) == 2 and type(message[1]) is list)
    steps = []
    for step in message[1]:
        _expect(type(step) is list and len(step) == 3 and type(step[1]) is bool)
        steps.append((_text(step[0], MAX_NAME_CHARS), step[1], _text(step[2], MAX_TEXT_CHARS)))
    return Ready(tuple(steps))


def _parse_call(message: list[Any]) -> Call:
    _expect(len(message) == 6)
    _, call_id, namespace, member, arguments, line = message
    return _checked_call(call_id, namespace, member, arguments, line)


def _checked_call(call_id: Any, namespace: Any, member: Any, arguments: Any, line: Any) -> Call:
    # Spelled out, because it is done for every call.
    if not (
        type(call_id) is int
        and 0 < call_id <= MAX_CALL_ID
        and type(namespace) is str
        and type(member) is str
        and (line is None or (type(line) is int and 0 < line <= MAX_LINE))
    ):
        _expect(condition=False)
    if len(namespace) > MAX_NAME_CHARS or len(member) > MAX_NAME_CHARS:
        namespace, member = namespace[:MAX_NAME_CHARS], member[:MAX_NAME_CHARS]
    return _new_call(Call, (call_id, namespace, member, arguments, line))


_new_call: Final[Callable[[type[Call], tuple[object, ...]], Call]] = tuple.__new__
"""What `Call` itself does, without the function of Python's that a named tuple has for it."""


def _parse_batch(message: list[Any]) -> Batch:
    _expect(len(message) == 3 and type(message[2]) is list)
    _, first_id, items = message
    _expect(type(first_id) is int and 0 < len(items) <= MAX_BATCH_CALLS)
    calls = []
    for call_id, item in enumerate(items, first_id):
        _expect(type(item) is list and len(item) == 4)
        namespace, member, arguments, line = item
        calls.append(_checked_call(call_id, namespace, member, arguments, line))
    return Batch(calls)


def _parse_cancel(message: list[Any]) -> Cancel:
    _expect(len(message) == 2)
    return Cancel(_call_id(message[1]))


def _parse_log(message: list[Any]) -> Log:
    _expect(len(message) == 2 and type(message[1]) is str)
    return Log(message[1])


def _parse_done(message: list[Any]) -> Done:
    _expect(len(message) == 2 and type(message[1]) is dict)
    body = message[1]
    failure = body.get("failure")
    return Done(
        has_value="value" in body and failure is None,
        value=body.get("value"),
        failure=None if failure is None else _parse_failure(failure),
        hint=_optional_text(body.get("hint")),
    )


def _parse_failure(body: Any) -> DoneFailure:
    _expect(type(body) is dict and body.get("kind") in DONE_KINDS and type(body.get("message")) is str)
    frames = body.get("traceback", [])
    _expect(type(frames) is list)
    traceback = []
    for item in frames[:MAX_TRACE_FRAMES]:
        _expect(type(item) is list and len(item) == 3)
        line = _line(item[0])
        _expect(line is not None)
        assert line is not None
        traceback.append((line, _text(item[1], MAX_NAME_CHARS), _text(item[2], MAX_TEXT_CHARS)))
    return DoneFailure(
        kind=body["kind"],
        message=body["message"],
        error_type=_optional_text(body.get("errorType"), MAX_NAME_CHARS),
        line=_line(body.get("line")),
        hint=_optional_text(body.get("hint")),
        traceback=tuple(traceback),
    )


_PARSERS: Final[dict[str, Callable[[list[Any]], FromWorker]]] = {
    READY: _parse_ready,
    CALL: _parse_call,
    BATCH: _parse_batch,
    CANCEL: _parse_cancel,
    LOG: _parse_log,
    DONE: _parse_done,
}


def _expect(condition: bool) -> None:
    if not condition:
        raise WireProtocolError("a message does not have its form")


def _call_id(value: Any) -> int:
    _expect(type(value) is int and 0 < value <= MAX_CALL_ID)
    return int(value)


def _line(value: Any) -> int | None:
    if value is None:
        return None
    _expect(type(value) is int and 0 < value <= MAX_LINE)
    return int(value)


def _text(value: Any, max_chars: int) -> str:
    _expect(type(value) is str)
    return str(value[:max_chars])


def _optional_text(value: Any, max_chars: int = MAX_TEXT_CHARS) -> str | None:
    return None if value is None else _text(value, max_chars)
