"""An event log as text a person can follow: one line per call, in the order they started.

A nested call that has ended waits with its line until those that started before it have ended, too, so that
the first column, the time of its start, only grows.

Knows: how events look on paper. Does not know: terminals beyond colour and width, reading and writing logs.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from codemode.event_text import (
    arguments_preview,
    call_summary,
    duration,
    ending_of,
    moment,
    plural,
    size,
    text_of,
)
from codemode.log_view import LogView
from codemode.terminal import Paint, cells, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from codemode.session_events import SessionEvent
    from sandbox.values import JsonValue

_HEAD_COLUMNS: Final = 48
"""Columns of a nested call's line before its arguments, and between those and the note."""


@dataclasses.dataclass(slots=True)
class _Call:
    name: str
    began: int
    nested: int = 0
    failed: int = 0


@dataclasses.dataclass(slots=True)
class _Nested:
    name: str
    arguments: Any
    began: int
    line: str | None = None
    """What is shown of it, once it has ended."""


class Timeline(LogView):
    """Turns the lines of one log into lines of text.

    Args:
        paint: Colours, or not.
        width: Columns to fit each line into.
    """

    def __init__(self, paint: Paint, width: int) -> None:
        super().__init__()
        self._paint = paint
        self._width = width
        self._calls: dict[str, _Call] = {}
        # By the id of the call that made them, in the order they started.
        self._nested: dict[str, dict[str, _Nested]] = {}
        self._ok = 0
        self._failed = 0

    def render(self, lines: Iterable[tuple[Path, int, bytes]]) -> Iterator[str]:
        """Yield the text, line by line, while the log is being read; the last lines sum it up.

        Args:
            lines: File, line number and bytes, as `session_file.read_lines` gives them.

        Raises:
            SessionFormatError: This is no event log, or one of another version.
        """
        for event in self.reader.events(lines):
            yield from self.lines_of(event)
        yield from self._summary()

    # --- one event each ---

    def header(self, event: SessionEvent) -> Iterator[str]:
        """Show the header of the first file; those of its successors repeat it."""
        data = event["data"]
        if data["segment"] == 0 or self.reader.seen == 1:
            began = moment(data["createdAt"], day=True)
            yield self._paint.bold(f"session {one_line(data['id'], 40)}") + self._paint.dim(
                f"  {began}  {one_line(data.get('cwd', ''), max(20, self._width - 70))}".rstrip()
            )

    def loss(self, text: str) -> Iterator[str]:
        """Show where events are lost."""
        yield self._paint.warning(f"  lost {text}")

    def turn_start(self, number: int, time: int) -> Iterator[str]:
        """Show when a turn begins."""
        yield f"turn {number}  {self._paint.dim(moment(time))}"

    def turn_end(self, number: int, reason: str) -> Iterator[str]:
        """Show how a turn ends."""
        shown = one_line(reason, 40)
        yield f"turn {number}  {shown if reason == 'completed' else self._paint.warning(shown)}"

    def user_message(self, event: SessionEvent) -> Iterator[str]:
        """Show the beginning of a message."""
        yield f"  user  {self._fit(text_of(event['data']['content']), 8)}"

    def assistant_message(self, event: SessionEvent) -> Iterator[str]:
        """Show the beginning of a message that is more than calls."""
        text = text_of([item for item in event["data"]["message"]["content"] if item["type"] != "tool-call"])
        if text:
            yield f"  assistant  {self._fit(text, 13)}"

    def call(self, event: SessionEvent) -> Iterator[str]:
        """Show what is called, or what a program is for."""
        data = event["data"]
        self._calls[data["callId"]] = _Call(data["name"], event["time"])
        head = f"  {one_line(data['name'], 40)}  {self._paint.dim(one_line(data['callId'], 40))}  "
        yield head + self._fit(call_summary(data["name"], data["arguments"]), 48)

    def result(self, event: SessionEvent) -> Iterator[str]:
        """Show how a call ended, and the beginning of what it gave."""
        block = event["data"]["message"]["content"][0]
        yield from self._rest_of(block["toolCallId"])
        call = self._calls.pop(block["toolCallId"], None)
        name = one_line(call.name, 40) if call else "call"
        took = duration(event["time"] - call.began) if call else ""
        nested = f"  {plural(call.nested, 'nested call')}" if call and call.nested else ""
        failed = self._paint.bad(f", {call.failed} failed") if call and call.failed else ""
        status = self._status("failed" if block["isError"] else "ok")
        yield f"  {name}  {status}  {took}{nested}{failed}".rstrip()
        for line in text_of(block["content"]).splitlines()[:4]:
            yield f"    {self._paint.dim('|')} {self._fit(line, 6)}"

    def nested_start(self, event: SessionEvent) -> tuple[str, ...]:
        """Show nothing yet; a line says when it began and how it ended."""
        data = event["data"]
        nested = _Nested(data["name"], data["arguments"], event["time"])
        self._nested.setdefault(data["rootCallId"], {})[data["subCallId"]] = nested
        return ()

    def nested_end(self, event: SessionEvent) -> Iterator[str]:
        """Show the nested calls that no earlier one holds back any more."""
        data = event["data"]
        call = self._calls.get(data["rootCallId"])
        if call is not None:
            call.nested += 1
            call.failed += data["isError"]
        if data["isError"]:
            self._failed += 1
        else:
            self._ok += 1
        waiting = self._nested.setdefault(data["rootCallId"], {})
        nested = waiting.get(data["subCallId"])
        took = "?"
        if nested is None:
            nested = waiting[data["subCallId"]] = _Nested(data["name"], data["arguments"], event["time"])
        else:
            took = duration(event["time"] - nested.began)
        text = text_of(data["content"])
        note = text if data["isError"] else f"{size(len(text.encode('utf-8', 'surrogatepass')))} shown"
        status = ending_of(data)
        nested.line = self._nested_line(nested, call, took, "ok" if status == "succeeded" else status, note)
        # It is kept no longer than it is needed: the arguments of thousands of calls may be large.
        nested.arguments = None
        while waiting and (first := next(iter(waiting.values()))).line is not None:
            del waiting[next(iter(waiting))]
            yield first.line

    def _rest_of(self, root: str) -> Iterator[str]:
        """Yield the lines of nested calls that are held back by one that has no end, and that one's own."""
        for sub_id, nested in self._nested.pop(root, {}).items():
            if nested.line is None:
                self.note_no_end(nested.name, sub_id)
                yield self._nested_line(nested, self._calls.get(root), "?", "unknown", "")
            else:
                yield nested.line

    def _nested_line(self, nested: _Nested, call: _Call | None, took: str, status: str, note: str) -> str:
        offset = nested.began - call.began if call else 0
        name = one_line(nested.name, 16)
        head = f"    +{offset / 1000:7.3f} s  {took:>8}  {self._status(status, 7)}  {name:<8}"
        room = max(30, self._width - _HEAD_COLUMNS)
        shown_note = one_line(note, room // 2) if note else ""
        arguments: JsonValue = nested.arguments
        shown = one_line(arguments_preview(arguments), room - cells(shown_note))
        return f"{head}  {shown}" + (self._paint.dim(f"  {shown_note}") if note else "")

    # --- the end ---

    def _summary(self) -> Iterator[str]:
        for root in list(self._nested):
            yield from self._rest_of(root)
        for call_id, call in self._calls.items():
            self.note_no_result(call.name, call_id)
        self.note_open_turns()
        nested = self._ok + self._failed
        failed = self._paint.bad(f", {self._failed} failed") if self._failed else ""
        yield f"{plural(self.reader.seen, 'event')}, {plural(nested, 'nested call')}{failed}"
        for text in self.reader.missing:
            yield self._paint.warning(f"missing: {text}")

    def _status(self, word: str, width: int = 0) -> str:
        colours = {"ok": self._paint.good, "failed": self._paint.bad, "unknown": self._paint.warning}
        return colours[word](word.ljust(width))

    def _fit(self, text: str, used: int) -> str:
        return one_line(text, max(20, self._width - used))
