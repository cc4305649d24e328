"""Reading an event log to show it: tolerantly, one line at a time, each event to what shows its type.

What is damaged, cut off or missing is named at the end, and everything else is shown. Strict reading is
`SessionLog.load`.

Knows: which events there are, and what a log may lack. Does not know: how anything looks.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Final

from codemode.event_text import plural
from codemode.session_events import HEADER, LOSS, SessionEvent, SessionFormatError, problem_with
from codemode.terminal import one_line
from sandbox.values import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_SHOWN_PROBLEMS: Final = 10
"""Lines about damaged records before they are only counted. Arbitrary."""


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
            SessionFormatError: This is no event log, or one of another version. Which file was meant, the
                caller knows.
        """
        for path, number, line in lines:
            event = self._read(path, number, line)
            if event is not None:
                self.seen += 1
                yield event
        if not self.seen:
            raise SessionFormatError("it holds no event; is this an event log?")
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
            raise SessionFormatError(f"line {number} {problem}; is this an event log?", number)
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


class LogView(abc.ABC):
    """Turns the events of one log into lines; a subclass says how each type looks."""

    def __init__(self) -> None:
        self.reader = TolerantReader()
        self.open_turns: dict[int, None] = {}
        self._show: dict[str, Callable[[SessionEvent], Iterable[str]]] = {
            HEADER: self.header,
            LOSS: self._lost,
            "turn/start": self._turn_started,
            "turn/end": self._turn_ended,
            "user/message": self.user_message,
            "assistant/message": self.assistant_message,
            "tool/call": self.call,
            "tool/result": self.result,
            "tool/code-dispatch-start": self.nested_start,
            "tool/code-dispatch": self.nested_end,
        }

    def lines_of(self, event: SessionEvent) -> Iterable[str]:
        """Return what one event shows; those of other types show nothing."""
        show = self._show.get(event["type"])
        return () if show is None else show(event)

    def note_no_end(self, name: str, sub_id: str) -> None:
        """Take note of a nested call without an end."""
        named = f"{one_line(name, 40)} ({one_line(sub_id, 60)})"
        self.reader.missing.append(f"no end of {named}: it may have taken effect")

    def note_no_result(self, name: str, call_id: str) -> None:
        """Take note of a call without a result."""
        self.reader.missing.append(f"no result of {one_line(name, 40)} ({one_line(call_id, 60)})")

    def note_open_turns(self) -> None:
        """Take note of turns without an end."""
        for number in self.open_turns:
            self.reader.missing.append(f"no end of turn {number}; the session may still be running")

    def _lost(self, event: SessionEvent) -> Iterable[str]:
        data = event["data"]
        events = plural(data["count"], "event")
        text = f"{events} from seq {data['firstSeq']} on: {one_line(data['reason'], 200)}"
        self.reader.missing.append(text)
        return self.loss(text)

    def _turn_started(self, event: SessionEvent) -> Iterable[str]:
        number = event["data"]["turn"]
        self.open_turns[number] = None
        return self.turn_start(number, event["time"])

    def _turn_ended(self, event: SessionEvent) -> Iterable[str]:
        number, reason = event["data"]["turn"], event["data"]["reason"]["kind"]
        self.open_turns.pop(number, None)
        return self.turn_end(number, reason)

    def header(self, event: SessionEvent) -> Iterable[str]:  # subclasses use it
        """Return what stands for the header of a file."""
        return ()

    def turn_start(self, number: int, time: int) -> Iterable[str]:  # as above
        """Return what stands for the beginning of a turn."""
        return ()

    @abc.abstractmethod
    def loss(self, text: str) -> Iterable[str]:
        """Return what stands for events that were never written."""

    @abc.abstractmethod
    def turn_end(self, number: int, reason: str) -> Iterable[str]:
        """Return what stands for the end of a turn."""

    @abc.abstractmethod
    def user_message(self, event: SessionEvent) -> Iterable[str]:
        """Return what stands for a message of the user."""

    @abc.abstractmethod
    def assistant_message(self, event: SessionEvent) -> Iterable[str]:
        """Return what stands for a message of the model."""

    @abc.abstractmethod
    def call(self, event: SessionEvent) -> Iterable[str]:
        """Return what stands for the start of a call."""

    @abc.abstractmethod
    def result(self, event: SessionEvent) -> Iterable[str]:
        """Return what stands for the result of a call."""

    @abc.abstractmethod
    def nested_start(self, event: SessionEvent) -> Iterable[str]:
        """Return what stands for the start of a nested call."""

    @abc.abstractmethod
    def nested_end(self, event: SessionEvent) -> Iterable[str]:
        """Return what stands for the end of a nested call."""
