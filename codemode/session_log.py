"""The durable record of a session: an append-only sequence of events, in a file or in memory.

`SessionLog.open` writes, `SessionLog.load` only reads, `SessionLog.in_memory` keeps events without a file.
What goes in is what a model or a person is shown; canonical values are the caller's to leave out.

A write that fails never reaches the run whose event it was: the session goes on, `losses` says what the
file lacks, and so does the file as soon as it can be written again.

Knows: sequence, time, observers, what happens on a full disk.
Does not know: tools, programs, turns' meaning (`session_order`), presentation (`session_replay`).
"""

from __future__ import annotations

import dataclasses
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from codemode import session_replay
from codemode.private_file import reason
from codemode.session_events import (
    APPEND,
    DISPATCH_END,
    DISPATCH_START,
    EVENT_TYPES,
    FORMAT_VERSION,
    HEADER,
    LOSS,
    Loss,
    SessionEvent,
    SessionFileError,
    SessionFormatError,
    SessionLogError,
    SessionOrderError,
    problem_with,
)
from codemode.session_file import LogFile, read_lines
from codemode.session_order import SessionState
from codemode.session_repair import closers
from sandbox.values import decode, encode, snapshot_frozen

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from codemode.receipts import CallRecord

SyncPolicy = Literal["never", "turn", "event"]
"""When an append waits for the disk: not at all (survives a killed process, not a power cut), at the end of
each turn, or at every event."""

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""Size at which a file is set aside, in bytes. Arbitrary."""
KEEP_FILES: Final = 8
"""Older files kept beside the one being written. Arbitrary; with the size it bounds a log to 576 MiB."""

Observer = Callable[[SessionEvent], None]
Draft = tuple[str, dict[str, Any], bool, list[int] | None]
"""An event to be: its type and data, whether it takes part in what a model sees, and the events it cites."""
DispatchDraft = tuple[str, str, str, bytes]
"""An event of a nested call to be: its type, the call's id, its tool, its whole data as `encode` gives it."""

_logger = logging.getLogger(__name__)


class SessionLog:
    """A session's events. Made by `open`, `load` or `in_memory`; close it, or use it in a `with`.

    Not thread-safe: one thread (the trio one) appends.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Callable[[], int],
        sync: SyncPolicy = "never",
        max_file_bytes: int | None = MAX_FILE_BYTES,
        keep_files: int = KEEP_FILES,
    ) -> None:
        self.path = path
        self.losses: list[Loss] = []
        """What the file lacks, oldest first. Not empty means: the record is incomplete."""
        self.repaired = 0
        """Events that were appended because an earlier session had been cut off."""
        self._clock = clock
        self._sync = sync
        self._max_file_bytes = max_file_bytes
        self._rotate_at = max_file_bytes
        self._keep_files = keep_files
        self._file: LogFile | None = None
        self._memory: list[SessionEvent] | None = None
        self._state = SessionState(self._find)
        self._header: dict[str, Any] = {}
        self._observers: list[Observer] = []
        self._publishing = False
        self._pending: Loss | None = None
        self._torn_bytes = 0
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        sync: SyncPolicy = "never",
        max_file_bytes: int | None = MAX_FILE_BYTES,
        keep_files: int = KEEP_FILES,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> Self:
        """Open a log for writing: create it privately, or continue it after checking and repairing it.

        Args:
            path: The file. Its directory must exist; the last part must not be a link.
            sync: When an append waits for the disk.
            max_file_bytes: Size at which the file is set aside and a new one begun; None for never.
            keep_files: Older files kept then.
            clock: Gives the time in epoch milliseconds.

        Raises:
            SessionFileError: The file cannot be opened, or another process writes it.
            SessionFormatError: The file is there and is not a log this version reads.
        """
        log = cls(Path(path), clock=clock, sync=sync, max_file_bytes=max_file_bytes, keep_files=keep_files)
        log._file = LogFile.open(log._require_path())
        try:
            if log._file.size:
                log._continue()
            else:
                log._begin()
        except BaseException:
            log._file.close()
            raise
        return log

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a log without changing it; an interrupted one is completed in memory only.

        Raises:
            SessionFileError: The file cannot be read.
            SessionFormatError: It is not a log this version reads.
        """
        log = cls(Path(path), clock=lambda: 0)
        log._memory = list(log._read())
        log._note_torn_line()
        log._repair()
        log._closed = True
        return log

    @classmethod
    def in_memory(cls, *, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> Self:
        """Begin a log that lives as long as this object."""
        log = cls(None, clock=clock)
        log._memory = []
        log._begin()
        return log

    @property
    def id(self) -> str:
        """The session's id, from the header."""
        return str(self._header["id"])

    @property
    def next_turn(self) -> int:
        """The number the next turn takes."""
        return self._state.last_turn + 1

    def append(
        self,
        type: str,  # noqa: A002  # the envelope's own word
        data: Mapping[str, Any],
        surface_op: Mapping[str, Any] | None = None,
        source_event_seqs: list[int] | None = None,
    ) -> SessionEvent:
        """Add one event and return it, deep-frozen, after telling the observers.

        The line is with the operating system when this returns. A failing disk does not raise: see `losses`.

        Args:
            type: One of `session_events.EVENT_TYPES`.
            data: Its content, lossless JSON. It is copied.
            surface_op: Only for `user/message`, `assistant/message` and `tool/result`, and needed there:
                `session_events.APPEND`, or `{"kind": "replace", "start": seq, "end": seq}`.
            source_event_seqs: Earlier events this one comes from; a `tool/result` cites its `tool/call`.

        Raises:
            NotJsonError: The data is not lossless JSON.
            SessionOrderError: The event cannot stand here.
            SessionLogError: The log is closed, or an observer tried to append.
        """
        if self._closed:
            raise SessionLogError("this session log is closed or was loaded for reading; open it to append")
        if self._publishing:
            raise SessionLogError("an observer of a session log cannot append to it; do it after the event")
        self._before_append()
        return self._append(type, data, surface_op, source_event_seqs)

    @property
    def only_writes(self) -> bool:
        """Whether an event only has to get into the file: nobody observes, and nothing is kept or wrong."""
        return self._file is not None and not (self._observers or self._closed or self._pending)

    def append_dispatch(
        self,
        type: str,  # noqa: A002  # as for `append`
        outer_call_id: str,
        sub_call_id: str,
        name: str,
        text: bytes,
    ) -> None:
        """Add one of the two events of a nested call, written out by the caller; the cheap way of `append`.

        Only while the log `only_writes`.

        Args:
            type: `tool/code-dispatch-start` or `tool/code-dispatch`.
            outer_call_id: Its root and its parent.
            sub_call_id: Its id.
            name: Its tool.
            text: Its whole `data`, as `encode` writes it.

        Raises:
            SessionOrderError: The event cannot stand here.
        """
        self._make_room()
        seq, time_ms = self._state.next_seq or 0, max(self._state.last_time, self._clock())
        line = self._accepted_line(outer_call_id, (type, sub_call_id, name, text), seq, time_ms)
        self._state.next_seq, self._state.last_time = seq + 1, time_ms
        self._write_lines(line, seq, 1, type)

    def append_dispatches(self, outer_call_id: str, drafts: Iterable[DispatchDraft]) -> None:
        """Add events of nested calls in one write; each as `append_dispatch` would.

        Args:
            outer_call_id: The root and the parent of them all.
            drafts: The events.

        Raises:
            SessionOrderError: One of them cannot stand here; those before it are recorded.
        """
        self._make_room()
        state = self._state
        time_ms = max(state.last_time, self._clock())
        first_seq = seq = state.next_seq or 0
        lines: list[bytes] = []
        try:
            for draft in drafts:
                lines.append(self._accepted_line(outer_call_id, draft, seq, time_ms))
                seq += 1
        finally:
            state.next_seq = seq
            state.last_time = time_ms
            if lines:
                self._write_lines(b"".join(lines), first_seq, len(lines), DISPATCH_END)

    def _accepted_line(self, outer_call_id: str, draft: DispatchDraft, seq: int, time_ms: int) -> bytes:
        """Take an event of a nested call into the state, and return its line.

        Raises:
            SessionOrderError: It cannot stand here.
        """
        type_, sub_call_id, name, text = draft
        accept = self._state.start_dispatch if type_ == DISPATCH_START else self._state.end_dispatch
        accept(outer_call_id, outer_call_id, sub_call_id, name)
        return _DISPATCH_LINES[type_] % (seq, time_ms, text)

    def _make_room(self) -> None:
        """Go on in a new file where this one has grown past its cap."""
        assert self._file is not None, "a log that only writes has a file"
        if self._rotate_at is not None and self._file.size >= self._rotate_at:
            self._rotate(self._file)

    def append_all(self, drafts: Iterable[Draft]) -> int:
        """Add events that happen together, in one write; the cheap way of `append` for the events of a turn.

        Only as `append_dispatch`.

        Args:
            drafts: The events.

        Returns:
            The seq of the last one.

        Raises:
            SessionOrderError: One of them has not the shape of its type, or cannot stand here; those before
                it are recorded.
        """
        self._make_room()
        state = self._state
        time_ms = max(state.last_time, self._clock())
        events: list[SessionEvent] = []
        try:
            for name, data, is_surface, sources in drafts:
                event: SessionEvent = {
                    "type": name,
                    "seq": state.next_seq or 0,
                    "time": time_ms,
                    "data": data,
                }
                if is_surface:
                    event["surfaceOp"] = APPEND
                if sources is not None:
                    event["sourceEventSeqs"] = sources
                if (problem := problem_with(event)) is not None:
                    raise SessionOrderError(f"the event to append {problem}")
                state.accept(event)
                events.append(event)
        finally:
            if events:
                text = b"".join(map(_line, events))
                self._write_lines(text, events[0]["seq"], len(events), events[-1]["type"])
        return int(events[-1]["seq"])

    def _write_lines(self, lines: bytes, first_seq: int, count: int, last_type: str) -> None:
        assert self._file is not None, "only a log with a file is written"
        try:
            self._file.append(lines)
        except OSError as error:
            for seq in range(first_seq, first_seq + count):
                self._lose(seq, reason(error))
            return
        if self._sync == "event" or (self._sync == "turn" and last_type == "turn/end"):
            self._sync_file()

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with every event from now on; return what ends that. Its errors are contained."""
        self._observers.append(observer)

        def remove() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return remove

    def events(self) -> Iterator[SessionEvent]:
        """Yield every recorded event, oldest first, as frozen values."""
        return iter(list(self._memory)) if self._memory is not None else self._decoded()

    def replay(self) -> session_replay.Replay:
        """Derive the model's messages and the shown results from what is recorded."""
        return session_replay.replay(self.events())

    def receipt(self, call_id: str) -> tuple[CallRecord, ...]:
        """Rebuild the receipt of one call: its nested calls in order, `unknown` where no end is recorded.

        Raises:
            SessionLogError: The log knows no such call.
        """
        found = session_replay.receipt(self.events(), call_id)
        if found is None:
            raise SessionLogError(f"the log has no call {call_id!r}")
        return found

    def close(self) -> None:
        """Write what is left to say and release the file. Safe to call twice."""
        if self._closed:
            return
        self._state_loss()
        self._closed = True
        if self._file is not None:
            if self._sync != "never":
                self._sync_file()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    # --- beginning and continuing ---

    def _begin(self) -> None:
        self._header = {
            "version": FORMAT_VERSION,
            "id": uuid.uuid4().hex,
            "createdAt": self._clock(),
            "segment": 0,
            "cwd": str(Path.cwd()),
        }
        event = self._build(HEADER, self._header, self._header["createdAt"])
        self._state.accept(event)
        if self._memory is not None:
            self._memory.append(event)
        if self._file is not None:
            try:
                self._file.append(_line(event))
            except OSError as error:
                raise SessionFileError(
                    f"cannot write events to {str(self.path)!r}: {reason(error)}"
                ) from error

    def _continue(self) -> None:
        for _event in self._read():
            pass
        assert self._file is not None, "only a log with a file is continued"
        self._file.cut_torn_line()
        self._note_torn_line()
        self._repair()

    def _note_torn_line(self) -> None:
        if self._torn_bytes:
            self._pending = Loss(
                self._next_seq(), 1, f"the last line broke off after {self._torn_bytes} bytes"
            )
            self.losses.append(self._pending)
            self._state.skip(1)
            self._state_loss()

    def _repair(self) -> None:
        for closer in list(closers(self._state)):
            surface_op = APPEND if EVENT_TYPES[closer.type].surface else None
            self._append(
                closer.type, closer.data, surface_op, closer.source_event_seqs, at=self._state.last_time
            )
            self.repaired += 1

    def _read(self) -> Iterator[SessionEvent]:
        """Yield the file's events after checking each; a last line that broke off is left out."""
        for event, part, line in self._numbered():
            problem = problem_with(event)
            if problem is not None:
                raise SessionFormatError(f"{str(part)!r}, line {line}: the record {problem}", line)
            try:
                self._state.accept(event)
            except SessionOrderError as error:
                raise SessionFormatError(f"{str(part)!r}, line {line}: {error}", line) from error
            if event["type"] == HEADER:
                self._header = event["data"]
            elif event["type"] == LOSS:
                data = event["data"]
                self.losses.append(Loss(data["firstSeq"], data["count"], data["reason"]))
            yield event
        if not self._header:
            raise SessionFormatError(f"{str(self.path)!r} holds no complete event")

    def _numbered(self) -> Iterator[tuple[SessionEvent, Path, int]]:
        for part, number, line in read_lines(self._require_path()):
            if not line.endswith(b"\n"):
                self._torn_bytes = len(line)
                continue
            try:
                event: Any = decode(line, frozen=True)
            except ValueError:
                raise SessionFormatError(
                    f"{str(part)!r}, line {number}: not a JSON record; is this an event log?", number
                ) from None
            yield event, part, number

    def _decoded(self) -> Iterator[SessionEvent]:
        return (event for event, _part, _number in self._numbered())

    # --- appending ---

    def _append(
        self,
        name: str,
        data: Mapping[str, Any],
        surface_op: Mapping[str, Any] | None,
        source_event_seqs: list[int] | None,
        at: int | None = None,
    ) -> SessionEvent:
        time_ms = max(self._state.last_time, self._clock() if at is None else at)
        event = self._build(name, data, time_ms, surface_op, source_event_seqs)
        self._state.accept(event)
        self._store(event)
        self._publish(event)
        return event

    def _build(
        self,
        name: str,
        data: Mapping[str, Any],
        time_ms: int,
        surface_op: Mapping[str, Any] | None = None,
        source_event_seqs: list[int] | None = None,
    ) -> SessionEvent:
        draft: dict[str, Any] = {"type": name, "seq": self._next_seq(), "time": time_ms, "data": dict(data)}
        kind = EVENT_TYPES.get(name)
        if kind is not None and kind.ignorable:
            draft["ignorable"] = True
        if surface_op is not None:
            draft["surfaceOp"] = dict(surface_op)
        if source_event_seqs is not None:
            draft["sourceEventSeqs"] = list(source_event_seqs)
        event: Any = snapshot_frozen(draft, "event")
        problem = problem_with(event)
        if problem is not None:
            raise SessionOrderError(f"the event to append {problem}")
        return event  # type: ignore[no-any-return]  # a frozen dict, as problem_with has checked

    def _next_seq(self) -> int:
        return self._state.next_seq or 0

    def _before_append(self) -> None:
        if self._pending is not None:
            self._state_loss()
        if self._file is None or self._pending is not None or self._rotate_at is None:
            return
        if self._file.size >= self._rotate_at:
            self._rotate(self._file)

    def _rotate(self, file: LogFile) -> None:
        assert self._max_file_bytes is not None, "only a log with a cap is rotated"
        header = {**self._header, "segment": self._header["segment"] + 1}
        event = self._build(HEADER, header, self._state.last_time)
        try:
            file.rotate(_line(event), keep=self._keep_files)
        except OSError as error:
            # The cap is a courtesy, the record is not: go on in the large file, and try again somewhat later.
            self._rotate_at = file.size + self._max_file_bytes // 8
            _logger.warning("event log not rotated: %s", reason(error))
            return
        self._rotate_at = self._max_file_bytes
        self._header = header
        self._state.accept(event)
        self._publish(event)

    def _store(self, event: SessionEvent) -> None:
        if self._memory is not None:
            self._memory.append(event)
        if self._file is None:
            return
        if self._pending is not None:
            # The record that states the earlier loss comes first, and could not be written just now.
            self._lose(event["seq"], self._pending.reason)
            return
        self._write_lines(_line(event), event["seq"], 1, event["type"])

    def _sync_file(self) -> None:
        assert self._file is not None, "only a log with a file is synced"
        try:
            self._file.sync()
        except OSError as error:
            _logger.warning("event log not synced to disk: %s", reason(error))

    def _lose(self, seq: int, why: str) -> None:
        if self._pending is None:
            self._pending = Loss(seq, 1, why)
            self.losses.append(self._pending)
            _logger.warning("event log cannot be written: %s", why)
        else:
            self._pending = dataclasses.replace(self._pending, count=self._pending.count + 1)
            self.losses[-1] = self._pending

    def _state_loss(self) -> None:
        """Record a loss in the log itself, as soon as its file can be written again."""
        if self._pending is None:
            return
        lost = self._pending
        data = {"firstSeq": lost.first_seq, "count": lost.count, "reason": lost.reason}
        event = self._build(LOSS, data, self._state.last_time)
        try:
            if self._file is not None:
                self._file.append(_line(event))
        except OSError:
            return
        if self._memory is not None:
            self._memory.append(event)
        self._pending = None
        self._state.accept(event)
        self._publish(event)

    def _publish(self, event: SessionEvent) -> None:
        self._publishing = True
        try:
            for observer in tuple(self._observers):
                try:
                    observer(event)
                except Exception:
                    _logger.exception("an observer of the session log failed")
        finally:
            self._publishing = False

    def _find(self, seq: int) -> SessionEvent:
        for event in self.events():
            if event["seq"] == seq:
                return event
        raise SessionOrderError(f"the log no longer has the event with seq {seq}")

    def _require_path(self) -> Path:
        assert self.path is not None, "only a log with a path has a file"
        return self.path


_DISPATCH_LINES: Final = {
    type: b'{"type":"%b","seq":%%d,"time":%%d,"data":%%b}\n' % type.encode()
    for type in (DISPATCH_START, DISPATCH_END)  # noqa: A001  # the envelope's own word
}


def _line(event: SessionEvent) -> bytes:
    return encode(event) + b"\n"
