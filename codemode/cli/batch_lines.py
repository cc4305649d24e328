"""The input of a batch: lines cut out of a stream, and the call that each one holds.

Holds one line at a time and never more of it than the bound. What cannot be a call is said with a reason
that a person can act on.

Knows: bytes, lines, the shape of a call. Does not know: tools' schemas, where the input comes from.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from codemode.batch import BatchResult, ToolCall
from codemode.cli.toolset import unknown_tool
from codemode.depth import MAX_DEPTH, depth_of
from codemode.receipts import CallRecord, bounded_arguments
from sandbox.values import decode
from sandbox.vocabulary import ABSENT
from tool_bindings.repeated_keys import repeated_key_problem

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

MAX_LINE_BYTES: Final = 16_777_216
"""Bytes of one line, as of the arguments of one call of a program (`Settings.max_call_bytes`)."""
MAX_ID_CHARS: Final = 1000
"""Characters of a caller's id. Arbitrary: it stands in events and in the output."""

BAD_LINE: Final = "BAD_LINE"
"""Code of a line that is no call."""
UNKNOWN_TOOL: Final = "UNKNOWN_TOOL"
"""Code of a line that names a tool the command does not have."""

_EXAMPLE: Final = '{"tool": "read", "arguments": {"file_path": "README.md"}}'
_MEMBERS: Final = ("id", "tool", "arguments")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Cuts chunks of bytes into numbered lines.

    Args:
        max_bytes: The most a line may have; a longer one is given as None, and its bytes are not kept.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._too_long = False
        self._number = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Yield number and bytes of each line that ends in this chunk, without the line end."""
        first, *rest = chunk.split(b"\n")
        self._take(first)
        for piece in rest:
            yield self._line()
            self._take(piece)

    def finish(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield a last line that has no line end."""
        if self._held or self._too_long:
            yield self._line()

    def _take(self, piece: bytes) -> None:
        # One more for the carriage return that may follow.
        if self._too_long or len(self._held) + len(piece) > self._max_bytes + 1:
            self._too_long = True
            self._held.clear()
        else:
            self._held += piece

    def _line(self) -> tuple[int, bytes | None]:
        self._number += 1
        line = bytes(self._held).removesuffix(b"\r")
        too_long = self._too_long or len(line) > self._max_bytes
        self._held.clear()
        self._too_long = False
        return self._number, None if too_long else line


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One line of the input.

    Attributes:
        line: Its number; the first is 1.
        tool: The name it gives, if it could be read.
        arguments: What it gives as arguments, if that could be read.
        id: The caller's own name for the call, if there is one.
        problem: Why it is no call, or None.
        code: The stable name of the problem.
    """

    line: int
    tool: str | None = None
    arguments: Any = None
    id: str | int | None = None
    problem: str | None = None
    code: str = BAD_LINE

    def call(self, made_up_id: str) -> ToolCall | BatchResult:
        """Return the call to make, or the record of a line that is none."""
        if self.problem is None:
            assert self.tool is not None, "a line without a problem names a tool"
            return ToolCall(self.tool, self.arguments, made_up_id if self.id is None else self.id)
        record = self.record(made_up_id)
        record.error_message, record.error_code = f"line {self.line}: {self.problem}", self.code
        return BatchResult(record, ABSENT, [], self.id)

    def record(self, made_up_id: str) -> CallRecord:
        """Return the receipt of a call that has not been made."""
        return CallRecord(
            id=made_up_id if self.id is None else str(self.id),
            tool=self.tool or "",
            arguments=bounded_arguments(self.arguments),
            line=self.line,
        )

    def matches(self, record: dict[str, Any]) -> bool:
        """Say whether a record of the output can be the one of this line."""
        return (
            record.get("line") == self.line
            and record.get("tool") == (self.tool or "")
            and record.get("arguments") == bounded_arguments(self.arguments)
            and (self.id is None or record.get("id") == self.id)
        )


def parse_line(number: int, line: bytes | None, tools: Container[str], names: list[str]) -> Entry | None:
    """Return what a line holds; None for a blank one.

    Args:
        number: Its number; the first is 1.
        line: Its bytes; None when it is longer than `MAX_LINE_BYTES`.
        tools: The names of the tools there are.
        names: The same, in the order they are listed to a person.
    """
    if line is None:
        return Entry(number, problem=f"it is longer than {MAX_LINE_BYTES} bytes")
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    if not line.strip():
        return None
    try:
        value = decode(line)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x} at offset {error.start}"
        return Entry(number, problem=f"it is not UTF-8 text: {byte}")
    except json.JSONDecodeError as error:
        return Entry(number, problem=f"it is not JSON: {error.msg} (character {error.pos + 1})")
    except ValueError as error:
        return Entry(number, problem=f"it is not JSON: {error}")
    depth = depth_of(value)
    if depth > MAX_DEPTH:
        return Entry(number, problem=f"it is nested {depth} levels deep; at most {MAX_DEPTH} are taken")
    if not isinstance(value, dict):
        return Entry(number, problem=f"it must be a JSON object such as {_EXAMPLE}")
    return _entry(number, value, tools, names, line)


def _entry(number: int, value: dict[str, Any], tools: Container[str], names: list[str], line: bytes) -> Entry:
    tool, arguments, own_id = value.get("tool"), value.get("arguments"), value.get("id")
    problem, code = _problem(value, line), BAD_LINE
    if problem is None and tool not in tools:
        problem, code = f"{tool!r}: {unknown_tool(tool, names)}", UNKNOWN_TOOL  # type: ignore[arg-type]  # text
    return Entry(
        number,
        tool if isinstance(tool, str) else None,
        arguments,
        own_id if _is_id(own_id) else None,
        problem,
        code,
    )


def _problem(value: dict[str, Any], line: bytes) -> str | None:
    twice = repeated_key_problem(line.decode("utf-8"))
    if twice is not None:
        return twice
    for name in value:
        if name not in _MEMBERS:
            return f'there is no member {name!r}; a line has "tool", "arguments" and, if you like, "id"'
    if not isinstance(value.get("tool"), str) or not value["tool"]:
        return f'"tool" must be the name of a tool, as in {_EXAMPLE}'
    if not isinstance(value.get("arguments"), dict):
        return '"arguments" must be a JSON object; write {} for a tool that takes none'
    if value.get("id") is not None and not _is_id(value["id"]):
        return f'"id" must be text of 1 to {MAX_ID_CHARS} characters, or a whole number'
    return None


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= MAX_ID_CHARS
    return type(value) is int and abs(value) < 10**MAX_ID_CHARS
