"""Turns the host calls of one run into nested dispatches: numbered, ordered, recorded.

Knows: the lane, the pipeline, the two events, the receipt.
Does not know: workers, frames, how a program is run.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import trio

from codemode.dispatch_events import DispatchEvents
from codemode.lane import Abandoned, Lane, Ticket
from codemode.receipts import SHORT_TEXT_BYTES, CallRecord, bounded_arguments
from codemode.stages import result_of
from codemode.waves import Waves
from sandbox.vocabulary import HostCall, HostFunctionError, Namespace
from tool_bindings.abort import AbortSignal
from tool_bindings.caller import Caller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence

    from codemode.events import EventSink
    from codemode.log_shaping import LogShaper
    from codemode.namespace import OfferedTools
    from sandbox.values import JsonValue
    from sandbox.vocabulary import Step
    from tool_bindings.caller import DispatchToken
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.registry import ToolRegistry
    from tool_bindings.results import ToolResult

RUN_SETTLED = "run_code settled"
"""Why calls that outlive their program are stopped."""
OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"
"""Code of a call whose body was left running: it may have had its effect."""


class Bridge:
    """The nested calls of one `run_code`.

    Args:
        registry: What the calls are dispatched through.
        call_id: Id of the outer call.
        run_id: Id of the run, for policies and approvals.
        token: The outer call's dispatch token.
        sink: Where events go.
        max_parallel: See `Settings.max_parallel_sub_calls`.
        grace_seconds: See `Settings.grace_seconds`.
        session: What tools see as their session.
        scope: Registry scope of the run.
        log_shaper: Shapes what the log keeps of each call, off the program's path.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        call_id: str,
        run_id: str,
        token: DispatchToken,
        sink: EventSink,
        max_parallel: int,
        grace_seconds: float,
        session: object = None,
        scope: Any = None,
        log_shaper: LogShaper | None = None,
    ) -> None:
        self._registry = registry
        self._call_id = call_id
        self._sink = sink
        self._scope = scope
        self._lane = Lane(max_parallel)
        self._run_id = run_id
        self._token = token
        self._session = session
        self._grace_seconds = grace_seconds
        self._caller: Caller | None = None
        """Made by the first call, which brings what stops the run's clock."""
        self._log_shaper = log_shaper
        self._numbers = 0
        self._running: dict[str, AbortSignal] = {}
        self._contexts: list[tuple[int, JsonValue]] = []
        self._over: str | None = None
        self.records: list[CallRecord] = []
        """The receipt, in submission order."""
        self.concludes_turn = False

    # These are made by the first call that needs them: a run waits for its bridge, and many make no call.

    @functools.cached_property
    def _events(self) -> DispatchEvents:
        return DispatchEvents(self._sink, self._call_id)

    @functools.cached_property
    def _waves(self) -> Waves:
        return Waves(
            self._registry,
            self._scope,
            self._lane,
            self._events,
            self._running,
            accept=self._accept,
            note=self._note,
            begin=self._begin,
            commit=self._commit,
            abandon=self._stop,
        )

    def namespace(self, tools: OfferedTools, source: str) -> Namespace:
        """Return what the program calls tools through.

        Args:
            tools: Those that it may call.
            source: The program.
        """
        # An around listener may answer a call that the tool itself would refuse.
        judge = not self._registry.policies(self._scope).around
        many = self._serve_together if self._log_shaper is None else None
        return tools.namespace(source, self._accept, many, judge_arguments=judge)

    def close(self, reason: str = RUN_SETTLED) -> None:
        """Abandon what has not started and stop what runs. The calls' own tasks then end by themselves."""
        if self._over is None:
            self._over = reason
            self._lane.close()
            for signal in tuple(self._running.values()):
                signal.abort(reason)

    def additional_contexts(self) -> tuple[JsonValue, ...]:
        """Return the messages nested calls deferred to the conversation, in submission order."""
        return tuple(context for _, context in sorted(self._contexts, key=lambda item: item[0]))

    def _serve_together(
        self, calls: Iterator[HostCall], is_over: Callable[[], bool]
    ) -> Generator[Step, None, None]:
        return self._waves.serve(calls, is_over)

    # ---- one call

    def _accept(self, call: HostCall) -> Awaitable[JsonValue]:
        """Number and admit a call. Runs in arrival order, before the call has a task of its own."""
        if self._over is not None:
            return _refuse(f"the run is over ({self._over}); {call.member} was not dispatched")
        record, number = self._note(call)
        return self._serve(call, record, self._lane.admit(), number)

    def _note(self, call: HostCall) -> tuple[CallRecord, int]:
        """Number a call and open its record."""
        self._numbers += 1
        record = CallRecord(
            f"{self._call_id}:code:{self._numbers}",
            call.member,
            call.arguments,
            line=call.line,
        )
        self.records.append(record)
        return record, self._numbers

    def _begin(self, call: HostCall, record: CallRecord, signal: AbortSignal) -> Dispatch:
        caller = self._caller or self._make_caller(call)
        return self._registry.begin_for(caller, call.member, call.arguments, record.id, signal, call)

    async def _serve(self, call: HostCall, record: CallRecord, ticket: Ticket, number: int) -> JsonValue:
        signal = AbortSignal()
        # The work ends through the signal: only the body is cut off, and its events must be written whatever
        # becomes of the program that asked.
        call.on_abandoned(lambda: self._abandon(ticket, signal))
        lane = self._lane

        def is_exclusive() -> bool:
            mode = self._registry.execution_mode(call.member, call.arguments, self._scope, nested=True)
            return mode == "exclusive"

        if not lane.start_now(ticket, is_exclusive):
            try:
                await lane.wait_turn(ticket, is_exclusive)
            except Abandoned:
                record.arguments = bounded_arguments(call.arguments)
                record.error_message = "tool call abandoned"
                reason = self._over or "the program no longer waits for it"
                raise HostFunctionError(f"{reason}; tool call abandoned") from None
        self._running[record.id] = signal
        began = time.perf_counter()
        try:
            started = self._events.started(record.id, call.member, call.arguments)
            record.status = "unknown"
            if started is None or len(started[1]) > SHORT_TEXT_BYTES:
                record.arguments = bounded_arguments(call.arguments)
            dispatch = self._begin(call, record, signal)
            if not dispatch.prepare_nowait():
                await dispatch.prepare()
            lane.started(ticket)
            result = await result_of(dispatch, signal)
            if not result.is_error:
                # The program has its value; what happened is recorded while it goes on.
                call.answer(result.value)
            self._commit(record, dispatch, result, number)
            if self._log_shaper is None:
                self._events.ended(started, record.id, call.member, call.arguments, dispatch, result)
            elif self._sink.wanted:
                event = self._events.end(record.id, call.member, call.arguments, dispatch, result)
                with trio.CancelScope(shield=True):
                    await self._log_shaper.record(event)
        finally:
            record.duration_ms = (time.perf_counter() - began) * 1000
            del self._running[record.id]
            lane.settle(ticket)
        if result.is_error:
            raise HostFunctionError(result.error.message)
        return result.value

    def _make_caller(self, call: HostCall) -> Caller:
        self._caller = Caller(
            root_call_id=self._call_id,
            parent_call_id=self._call_id,
            parent=self._token,
            session=self._session,
            scope=self._scope,
            provenance="code",
            run_id=self._run_id,
            approval_pending=call.hold_wall,
            grace_seconds=self._grace_seconds,
        )
        return self._caller

    def _commit(self, record: CallRecord, dispatch: Dispatch, result: ToolResult, number: int) -> None:
        record.executed = dispatch.executed
        if result.annotation is not None:
            record.annotation = self._sink.own_annotation(dispatch, result)
        if result.is_error:
            record.error_message = result.error.message
            record.error_code = None if result.error.info is None else result.error.info.code
            record.status = "unknown" if record.error_code == OUTCOME_UNKNOWN else "failed"
        else:
            record.status = "succeeded"
            if result.concludes_turn:
                self.concludes_turn = True
            for block in result.content:
                if block["type"] == "image":
                    # A program gets values; a picture is for the model, so it joins the conversation.
                    self._contexts.append((number, _image_message(record, result.content)))
                    break
        if result.additional_contexts:
            self._contexts.extend((number, context) for context in result.additional_contexts)

    def _abandon(self, ticket: Ticket, signal: AbortSignal) -> None:
        if not self._lane.give_up(ticket):
            self._stop(signal)

    def _stop(self, signal: AbortSignal) -> None:
        signal.abort(self._over or "the program no longer waits for this call")


def _image_message(record: CallRecord, content: Sequence[JsonValue]) -> JsonValue:
    return {
        "id": f"{record.id}:images",
        "role": "user",
        "content": list(content),
        "source": {"kind": "plugin", "plugin": "tools-code-mode"},
    }


async def _refuse(message: str) -> JsonValue:
    raise HostFunctionError(message)
