"""The two events of every nested call of one run: that it starts, and how it ended.

Their text is put together from pieces. Ids and names are alike from call to call, so nearly all of an event
is known before it happens; arguments and content are encoded once.

Knows: what the two events hold. Does not know: where events go (`events`), what comes before and after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from codemode.session_events import DISPATCH_END, DISPATCH_START
from sandbox.values import encode, encode_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codemode.events import EventSink
    from sandbox.values import JsonValue
    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolDefinition
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.results import ToolResult

_TEXT_BLOCK: Final = ["type", "text"]
"""Members of the block that holds a text, in order."""

StartText: TypeAlias = tuple[bytes, bytes]
"""A call's id and the whole data of its start, as text."""


class NestedCall:
    """What is recorded of a call that is recorded together with others."""

    __slots__ = ("arguments", "dispatch", "id", "name", "result", "start_text")

    def __init__(self, id: str, name: str, arguments: JsonValue) -> None:  # noqa: A002  # as in receipts
        self.id = id
        self.name = name
        self.arguments = arguments
        self.start_text: StartText | None = None
        self.dispatch: Dispatch
        self.result: ToolResult


class DispatchEvents:
    """Records the nested calls of one outer call.

    Args:
        sink: Where events go.
        call_id: Id of the outer call, which is root and parent of them all.
    """

    def __init__(self, sink: EventSink, call_id: str) -> None:
        self._sink = sink
        self._log = sink.text_log
        self._call_id = call_id
        outer = encode(call_id)
        self._before_id = b'{"rootCallId":%b,"parentCallId":%b,"subCallId":' % (outer, outer)
        self._between: dict[str, bytes] = {}
        """Name of a tool to what stands between the id of a call and its arguments."""
        self._annotations: dict[str, tuple[ToolDefinition, list[bytes]]] = {}
        """Name of a tool to its definition, and what an ordinary success says around the id of a call."""

    @property
    def are_only_written(self) -> bool:
        """Whether events only have to get into a file, or nobody wants them at all."""
        return not self._sink.wanted if self._log is None else self._log.only_writes

    def record(self, ended: Sequence[NestedCall], starting: Sequence[NestedCall]) -> None:
        """Record how some calls ended, and then that others start; in one write where events are written."""
        log = self._log
        if log is not None and log.only_writes:
            drafts = []
            for call in ended:
                if call.start_text is None:
                    # Somebody listened when it started.
                    self.ended(None, call.id, call.name, call.arguments, call.dispatch, call.result)
                    continue
                text = self._end_text(call.start_text, call.name, call.dispatch, call.result)
                drafts.append((DISPATCH_END, call.id, call.name, text))
            for call in starting:
                call.start_text = self._start_text(call.id, call.name, call.arguments)
                drafts.append((DISPATCH_START, call.id, call.name, call.start_text[1]))
            if drafts:
                log.append_dispatches(self._call_id, drafts)
        else:
            for call in ended:
                self.ended(call.start_text, call.id, call.name, call.arguments, call.dispatch, call.result)
            for call in starting:
                call.start_text = self.started(call.id, call.name, call.arguments)

    def started(self, sub_call_id: str, name: str, arguments: JsonValue) -> StartText | None:
        """Record that a call starts; return what `ended` wants back."""
        log = self._log
        if log is None or not log.only_writes:
            if self._sink.wanted:
                self._sink.emit(DISPATCH_START, self._start(sub_call_id, name, arguments))
            return None
        text = self._start_text(sub_call_id, name, arguments)
        log.append_dispatch(DISPATCH_START, self._call_id, sub_call_id, name, text[1])
        return text

    def ended(
        self,
        started: StartText | None,
        sub_call_id: str,
        name: str,
        arguments: JsonValue,
        dispatch: Dispatch,
        result: ToolResult,
    ) -> None:
        """Record how a call ended.

        Args:
            started: What `started` returned.
            sub_call_id: Id of the call.
            name: Its tool.
            arguments: What it was called with.
            dispatch: The call.
            result: Its result.
        """
        log = self._log
        if started is not None and log is not None and log.only_writes:
            text = self._end_text(started, name, dispatch, result)
            log.append_dispatch(DISPATCH_END, self._call_id, sub_call_id, name, text)
        elif self._sink.wanted:
            self._sink.emit(DISPATCH_END, self.end(sub_call_id, name, arguments, dispatch, result))

    def end(
        self, sub_call_id: str, name: str, arguments: JsonValue, dispatch: Dispatch, result: ToolResult
    ) -> dict[str, JsonValue]:
        """Return what the event of a call's end holds."""
        return {
            **self._start(sub_call_id, name, arguments),
            "isError": result.is_error,
            "content": result.content,  # type: ignore[dict-item]  # frozen blocks, which are JSON
            **self._sink.annotation(dispatch, result),
        }

    def _start(self, sub_call_id: str, name: str, arguments: JsonValue) -> dict[str, JsonValue]:
        return {
            "rootCallId": self._call_id,
            "parentCallId": self._call_id,
            "subCallId": sub_call_id,
            "name": name,
            "arguments": arguments,
        }

    def _start_text(self, sub_call_id: str, name: str, arguments: JsonValue) -> StartText:
        between = self._between.get(name)
        if between is None:
            between = self._between[name] = b',"name":%b,"arguments":' % encode(name)
        own_id = encode_string(sub_call_id)
        return own_id, b"%b%b%b%b}" % (self._before_id, own_id, between, encode(arguments))

    def _end_text(self, started: StartText, name: str, dispatch: Dispatch, result: ToolResult) -> bytes:
        own_id, start = started
        return b'%b,"isError":%b,"content":%b%b}' % (
            start[:-1],
            b"true" if result.is_error else b"false",
            _content_text(result.content),
            self._annotation(own_id, name, dispatch, result),
        )

    def _annotation(self, own_id: bytes, name: str, dispatch: Dispatch, result: ToolResult) -> bytes:
        """Return the members that say what a result means, each after a comma."""
        definition = dispatch.definition
        ordinary = result.annotation is None and not result.is_error and self._sink.hides_payload
        if ordinary and definition is not None:
            # Of an ordinary success nothing is shown that differs from call to call, but the id.
            known = self._annotations.get(name)
            if known is not None and known[0] is definition:
                return own_id.join(known[1])
        fields = self._sink.annotation(dispatch, result)
        text = b"," + encode(fields)[1:-1] if fields else b""
        around = text.split(own_id)
        if ordinary and definition is not None and len(around) <= 2:
            self._annotations[name] = (definition, around)
        return text


def _content_text(content: Sequence[ContentBlock]) -> bytes:
    if len(content) == 1:
        # One text, as nearly always.
        (block,) = content
        if list(block) == _TEXT_BLOCK and block["type"] == "text" and type(text := block["text"]) is str:
            return b'[{"type":"text","text":%b}]' % encode_string(text)
    return encode(content)  # type: ignore[arg-type]  # frozen blocks, which are JSON
