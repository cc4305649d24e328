"""An event log as text a person can follow: one line per call, in the order things ended.

Reads tolerantly, one line at a time: what is damaged, cut off or missing is named at the end, and everything
else is shown. Strict reading is `SessionLog.load`.

Knows: how events look on paper. Does not know: terminals beyond colour and width, writing logs.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from codemode.event_text import (
    arguments_preview,
    call_summary,
    duration,
    moment,
    plural,
    size,
    text_of,
)
from codemode.session_events import HEADER, LOSS, SessionEvent, SessionFormatError, problem_with
from codemode.terminal import Paint, cells, one_line
from sandbox.values import JsonValue, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_HEAD_COLUMNS: Final = 48
"""Columns of a nested call's line before its arguments, and between those and the note."""

_SHOWN_PROBLEMS: Final = 10
"""Lines about damaged records before they are only counted. Arbitrary."""


@dataclasses.dataclass(slots=True)
class _Call:
    name: str
    began: int
    nested: int = 0
    failed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Nested:
    name: str
    arguments: Any
    began: int
    root: str


class TolerantReader:
    """Gives the events of a log and takes note of what is damaged.

    Attributes:
        seen: Events given so far.
        missing: What is damaged, cut off or not there, a line each.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.missing: list[str] = []
        self._next_seq = 0
        self._unreadable = 0

    def events(self, lines: Iterable[tuple[Path, int, bytes]]) -> Iterator[SessionEvent]:
        """Yield every event that can be read.

        Args:
            lines: File, line number and bytes, as `session_file.read_lines` gives them.

        Raises:
            SessionFormatError: This is no event log, or one of another version.
        """
        for path, number, line in lines:
            event = self._read(path, number, line)
            if event is not None:
                self.seen += 1
                yield event
        if not self.seen:
            raise SessionFormatError("the file holds no event")
        if self._unreadable > _SHOWN_PROBLEMS:
            self.missing.append(f"{self._unreadable - _SHOWN_PROBLEMS} more lines that are no events")

    def _read(self, path: Path, number: int, line: bytes) -> SessionEvent | None:
        try:
            event: Any = decode(line)
        except ValueError:
            problem: str | None = "is not a JSON record"
        else:
            problem = problem_with(event)
            if problem is None and line.endswith(b"\n"):
                self._check_seq(event)
                return event  # type: ignore[no-any-return]  # problem_with has looked at it
        if not line.endswith(b"\n"):
            self.missing.append(f"the last line of {path.name} broke off after {len(line)} bytes")
            return None
        if not self.seen:
            raise SessionFormatError(f"{path.name}, line {number} {problem}; is this an event log?", number)
        self._unreadable += 1
        if self._unreadable <= _SHOWN_PROBLEMS:
            self.missing.append(f"{path.name}, line {number} {problem}")
        self._next_seq += 1
        return None

    def _check_seq(self, event: SessionEvent) -> None:
        seq = event["seq"]
        if seq != self._next_seq and event["type"] != LOSS:
            if not self.seen:
                self.missing.append(f"events before seq {seq} are not in this file")
            else:
                self.missing.append(f"seq {seq} follows seq {self._next_seq - 1}")
        self._next_seq = seq + 1


class Timeline:
    """Turns the lines of one log into lines of text.

    Args:
        paint: Colours, or not.
        width: Columns to fit each line into.
    """

    def __init__(self, paint: Paint, width: int) -> None:
        self._paint = paint
        self._width = width
        self._reader = TolerantReader()
        self._missing = self._reader.missing
        self._calls: dict[str, _Call] = {}
        self._nested: dict[str, _Nested] = {}
        self._turns: dict[int, None] = {}
        self._ok = 0
        self._failed = 0
        self._show: dict[str, Callable[[SessionEvent], Iterator[str]]] = {
            HEADER: self._header,
            LOSS: self._loss,
            "turn/start": self._turn_start,
            "turn/end": self._turn_end,
            "user/message": self._user,
            "assistant/message": self._assistant,
            "tool/call": self._call,
            "tool/result": self._result,
            "tool/code-dispatch-start": self._nested_start,
            "tool/code-dispatch": self._nested_end,
        }

    def render(self, lines: Iterable[tuple[Path, int, bytes]]) -> Iterator[str]:
        """Yield the text, line by line, while the log is being read; the last lines sum it up.

        Args:
            lines: File, line number and bytes, as `session_file.read_lines` gives them.

        Raises:
            SessionFormatError: This is no event log, or one of another version.
        """
        for event in self._reader.events(lines):
            show = self._show.get(event["type"])
            if show is not None:
                yield from show(event)
        yield from self._summary()

    # --- one event each ---

    def _header(self, event: SessionEvent) -> Iterator[str]:
        data = event["data"]
        if data["segment"] == 0 or self._reader.seen == 1:
            began = moment(data["createdAt"], day=True)
            yield self._paint.bold(f"session {one_line(data['id'], 40)}") + self._paint.dim(
                f"  {began}  {one_line(data.get('cwd', ''), max(20, self._width - 70))}".rstrip()
            )

    def _loss(self, event: SessionEvent) -> Iterator[str]:
        data = event["data"]
        events = plural(data["count"], "event")
        text = f"{events} from seq {data['firstSeq']} on: {one_line(data['reason'], 200)}"
        self._missing.append(text)
        yield self._paint.warning(f"  lost {text}")

    def _turn_start(self, event: SessionEvent) -> Iterator[str]:
        number = event["data"]["turn"]
        self._turns[number] = None
        yield f"turn {number}  {self._paint.dim(moment(event['time']))}"

    def _turn_end(self, event: SessionEvent) -> Iterator[str]:
        number, reason = event["data"]["turn"], event["data"]["reason"]["kind"]
        self._turns.pop(number, None)
        shown = one_line(reason, 40)
        yield f"turn {number}  {shown if reason == 'completed' else self._paint.warning(shown)}"

    def _user(self, event: SessionEvent) -> Iterator[str]:
        yield f"  user  {self._fit(text_of(event['data']['content']), 8)}"

    def _assistant(self, event: SessionEvent) -> Iterator[str]:
        text = text_of([item for item in event["data"]["message"]["content"] if item["type"] != "tool-call"])
        if text:
            yield f"  assistant  {self._fit(text, 13)}"

    def _call(self, event: SessionEvent) -> Iterator[str]:
        data = event["data"]
        self._calls[data["callId"]] = _Call(data["name"], event["time"])
        head = f"  {one_line(data['name'], 40)}  {self._paint.dim(one_line(data['callId'], 40))}  "
        yield head + self._fit(call_summary(data["name"], data["arguments"]), 48)

    def _result(self, event: SessionEvent) -> Iterator[str]:
        block = event["data"]["message"]["content"][0]
        call = self._calls.pop(block["toolCallId"], None)
        name = one_line(call.name, 40) if call else "call"
        for sub_id in [sub for sub, nested in self._nested.items() if nested.root == block["toolCallId"]]:
            yield from self._unfinished(sub_id)
        took = duration(event["time"] - call.began) if call else ""
        nested = f"  {plural(call.nested, 'nested call')}" if call and call.nested else ""
        failed = self._paint.bad(f", {call.failed} failed") if call and call.failed else ""
        status = self._status("failed" if block["isError"] else "ok")
        yield f"  {name}  {status}  {took}{nested}{failed}".rstrip()
        for line in text_of(block["content"]).splitlines()[:4]:
            yield f"    {self._paint.dim('|')} {self._fit(line, 6)}"

    def _nested_start(self, event: SessionEvent) -> Iterator[str]:
        data = event["data"]
        self._nested[data["subCallId"]] = _Nested(
            data["name"], data["arguments"], event["time"], data["rootCallId"]
        )
        return iter(())

    def _nested_end(self, event: SessionEvent) -> Iterator[str]:
        data = event["data"]
        started = self._nested.pop(data["subCallId"], None)
        call = self._calls.get(data["rootCallId"])
        if call is not None:
            call.nested += 1
            call.failed += data["isError"]
        if data["isError"]:
            self._failed += 1
        else:
            self._ok += 1
        began = started.began if started else event["time"]
        text = text_of(data["content"])
        yield self._nested_line(
            began - call.began if call else 0,
            duration(event["time"] - began) if started else "?",
            "failed" if data["isError"] else "ok",
            data["name"],
            data["arguments"],
            text if data["isError"] else f"{size(len(text.encode('utf-8', 'surrogatepass')))} shown",
        )

    def _unfinished(self, sub_id: str) -> Iterator[str]:
        nested = self._nested.pop(sub_id)
        call = self._calls.get(nested.root)
        named = f"{one_line(nested.name, 40)} ({one_line(sub_id, 60)})"
        self._missing.append(f"no end of {named}: it may have taken effect")
        offset = nested.began - call.began if call else 0
        yield self._nested_line(offset, "?", "unknown", nested.name, nested.arguments, "")

    def _nested_line(
        self, offset: int, took: str, status: str, name: str, arguments: JsonValue, note: str
    ) -> str:
        head = f"    +{offset / 1000:7.3f} s  {took:>8}  {self._status(status, 7)}  {one_line(name, 16):<8}"
        room = max(30, self._width - _HEAD_COLUMNS)
        shown_note = one_line(note, room // 2) if note else ""
        shown = one_line(arguments_preview(arguments), room - cells(shown_note))
        return f"{head}  {shown}" + (self._paint.dim(f"  {shown_note}") if note else "")

    # --- the end ---

    def _summary(self) -> Iterator[str]:
        for sub_id in list(self._nested):
            yield from self._unfinished(sub_id)
        for call_id, call in self._calls.items():
            self._missing.append(f"no result of {one_line(call.name, 40)} ({one_line(call_id, 60)})")
        for number in self._turns:
            self._missing.append(f"no end of turn {number}; the session may still be running")
        nested = self._ok + self._failed
        failed = self._paint.bad(f", {self._failed} failed") if self._failed else ""
        yield f"{plural(self._reader.seen, 'event')}, {plural(nested, 'nested call')}{failed}"
        for text in self._missing:
            yield self._paint.warning(f"missing: {text}")

    def _status(self, word: str, width: int = 0) -> str:
        colours = {"ok": self._paint.good, "failed": self._paint.bad, "unknown": self._paint.warning}
        return colours[word](word.ljust(width))

    def _fit(self, text: str, used: int) -> str:
        return one_line(text, max(20, self._width - used))
