"""The events around one direct call: a synthetic turn of one step that holds one tool call.

Knows: the order of these events and what goes into them. Does not know: how the call is made.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from codemode.session_events import SessionOrderError
from sandbox import values
from sandbox.values import NotJsonError

if TYPE_CHECKING:
    from codemode.events import EventSink
    from codemode.session_log import Draft
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.results import ToolResult

_logger = logging.getLogger(__name__)


class Turn:
    """Records one call. `begin` first, which counts once, then `end` once.

    Args:
        sink: Where events go.
        call_id: The call's id.
        name: The tool, as the caller named it.
        arguments: What the caller sent; need not be JSON.
    """

    def __init__(self, sink: EventSink, call_id: str, name: object, arguments: object) -> None:
        self._sink = sink
        self._call_id = call_id
        # Whoever calls may have sent anything for a name; the pipeline refuses it, and the log says so.
        self._name = name if isinstance(name, str) and name else repr(name)
        self._arguments = arguments
        self._step: dict[str, int] = {}
        self._call_event = 0
        self._is_open = False
        self._annotation: dict[str, Any] = {}

    def begin(self) -> None:
        """Open turn and step, and record the request and the call."""
        if self._is_open or not self._sink.wanted:
            return
        try:
            arguments = values.encode(values.snapshot(self._arguments)).decode("ascii")
        except NotJsonError:
            # The pipeline refuses such a call; the log still says that it was made.
            arguments = "null"
        turn = self._sink.next_turn()
        step = self._step = {"turn": turn, "step": 0}
        call_id, name = self._call_id, self._name
        call = {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}
        message = {"id": f"{call_id}:request", "role": "assistant", "content": [call]}
        self._call_event = self._record(
            ("turn/start", {"turn": turn}, False, None),
            ("step/start", step, False, None),
            ("assistant/message", {**step, "message": message}, True, None),
            ("tool/call", {**step, "callId": call_id, "name": name, "arguments": arguments}, False, None),
        )
        self._is_open = True

    def _record(self, *drafts: Draft) -> int:
        """Record events that happen together, and return the seq of the last."""
        log = self._sink.text_log
        if log is not None and log.only_writes:
            return log.append_all(drafts)
        seq = 0
        for name, data, is_surface, sources in drafts:
            seq = self._sink.emit(name, data, surface=is_surface, sources=sources)
        return seq

    def annotate(self, call: Dispatch, result: ToolResult) -> None:
        """Note what the result's event will say about its meaning. Before `end`, if at all."""
        if self._sink.wanted:
            self._annotation = self._sink.annotation(call, result)

    def end(self, result: ToolResult | None) -> None:
        """Record the result and what it adds to the conversation, and close step and turn.

        Args:
            result: How the call ended; None when it was cancelled from outside before it could.
        """
        if not self._is_open:
            return
        said: Draft = ("tool/result", self._result_data(result), True, [self._call_event])
        reason: dict[str, Any] = {"kind": "completed"}
        if result is None:
            reason = {"kind": "aborted", "reason": {"kind": "user"}}
        ends: tuple[Draft, Draft] = (
            ("step/end", self._step, False, None),
            ("turn/end", {"turn": self._step["turn"], "reason": reason}, False, None),
        )
        if result is None or not result.additional_contexts:
            self._record(said, *ends)
            return
        self._record(said)
        for context in result.additional_contexts:
            self._add(context)
        self._record(*ends)

    def _add(self, context: Any) -> None:
        """Record a message that a tool or a policy made up; leave out what is none."""
        problem: object = "it is no object"
        if isinstance(context, dict):
            try:
                self._sink.emit("user/message", context, surface=True)
            except SessionOrderError as error:
                problem = error
            else:
                return
        _logger.warning("%s added no user message to the conversation: %s", self._name, problem)

    def _result_data(self, result: ToolResult | None) -> dict[str, Any]:
        data: dict[str, Any] = {**self._annotation}
        content: Any = [{"type": "text", "text": "Error: tool call aborted"}]
        if result is None:
            data["error"] = {"name": "AbortError", "code": "ABORTED"}
        else:
            content = result.content
            if result.is_error and result.error.info is not None:
                data["error"] = {"name": result.error.info.name, "code": result.error.info.code}
            if result.meta is not None:
                data["meta"] = result.meta
        block = {
            "type": "tool-result",
            "toolCallId": self._call_id,
            "content": content,
            "isError": result is None or result.is_error,
        }
        message = {
            "id": f"{self._call_id}:result",
            "role": "user",
            "source": {"kind": "tool", "callId": self._call_id},
            "content": [block],
        }
        return {**self._step, "message": message, **data}
