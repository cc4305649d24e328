"""JSON-RPC messages as lines, for both ends of the stdio transport.

The SDK's own stdio transports are not used: they hold lines of any length in memory, drop what contains
a lone surrogate without an answer, and read standard input in a thread that cannot be cancelled under
trio (decision 0251).

Knows: lines, bounds, the SDK's message type. Does not know: processes, descriptors. Loading it loads the
MCP SDK.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from sandbox.values import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LineSplitter", "LineTooLongError", "MalformedLineError", "message_from_line", "message_line"]

MAX_LINE_BYTES: Final = 67_108_864
"""Bytes of one message: four times the largest result of a call. A longer one is skipped."""
_SHOWN_CHARS: Final = 80
_ANSWER: Final = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(?P<id>\d{1,15})\s*,\s*"(?:result|error)"'
)
"""How an answer to one of our requests, whose ids are numbers, begins; for one that is not JSON further on,
mostly because of NaN, so that its request fails at once and not at its deadline."""


class MalformedLineError(ValueError):
    """A line is not a JSON-RPC message.

    Attributes:
        request_id: The id it seems to have been meant for, or None.
        answers: Whether it looks like an answer rather than a request.
    """

    def __init__(
        self, message: str, code: int, request_id: str | int | None = None, *, answers: bool = False
    ) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id
        self.answers = answers

    def as_error(self) -> SessionMessage:
        """Return the JSON-RPC error that tells the other side, or stands for its answer."""
        error = ErrorData(code=self.code, message=str(self))
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=self.request_id, error=error))


class LineTooLongError(MalformedLineError):
    """A line passed `MAX_LINE_BYTES`; its rest is skipped."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a message has more than {limit} bytes", INVALID_REQUEST)


class LineSplitter:
    """Cuts a byte stream into lines, without ever holding more than one line's limit."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | LineTooLongError]:
        """Yield the lines that `data` completes, without their ends; blank ones are left out."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._pieces.append(piece)
            line, too_long = b"".join(self._pieces), self._size + len(piece) > self._max_bytes
            skipped, self._skipping = self._skipping, False
            self._pieces.clear()
            self._size = 0
            if too_long and not skipped:
                yield LineTooLongError(self._max_bytes)
            elif not skipped and line.strip():
                yield line
        self._size += len(rest)
        if self._skipping:
            return
        if self._size > self._max_bytes:
            self._skipping = True
            self._pieces.clear()
            yield LineTooLongError(self._max_bytes)
        elif rest:
            self._pieces.append(rest)


def message_from_line(line: bytes) -> SessionMessage:
    """Decode one line.

    Raises:
        MalformedLineError: It is no message.
    """
    try:
        value = decode(line)
    except ValueError as error:
        shown = line[:_SHOWN_CHARS].decode("utf-8", "backslashreplace")
        meant_for = _ANSWER.match(line)
        raise MalformedLineError(
            f"not JSON: {error}; the line begins {shown!r}",
            PARSE_ERROR,
            None if meant_for is None else int(meant_for["id"]),
            answers=meant_for is not None,
        ) from None
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise _not_a_message(value) from None
    return SessionMessage(message)


def message_line(message: SessionMessage) -> bytes:
    """Encode one message as a line of ASCII, exactly, whatever its strings and integers are."""
    body: Any = message.message.model_dump(by_alias=True, exclude_unset=True)
    return encode(body) + b"\n"


def _not_a_message(value: Any) -> MalformedLineError:
    request_id = value.get("id") if isinstance(value, dict) else None
    if isinstance(request_id, bool) or not isinstance(request_id, (str, int)):
        request_id = None
    answers = isinstance(value, dict) and "method" not in value
    return MalformedLineError("not a JSON-RPC 2.0 message", INVALID_REQUEST, request_id, answers=answers)
