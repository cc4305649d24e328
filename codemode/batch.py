"""Many tool calls without a program: the same pipeline, policies, events and receipts.

Calls start in input order; parallel-safe ones overlap up to a bound, each exclusive one runs alone.
Results come in input order. Input may be endless: only a window of it is held at a time.

Knows: order, the window, records. Does not know: files, command lines.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import AsyncIterable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import trio

from codemode.bridge import OUTCOME_UNKNOWN
from codemode.lane import Lane, Ticket
from codemode.receipts import CallRecord, bounded_arguments
from codemode.turn import Turn
from sandbox.values import JsonValue, NotJsonError, snapshot
from sandbox.vocabulary import ABSENT
from tool_bindings.abort import AbortSignal
from tool_bindings.results import ErrorInfo, failure_from_message

if TYPE_CHECKING:
    from codemode.events import EventSink
    from tool_bindings.registry import ToolRegistry
    from tool_bindings.results import ToolResult

WINDOW_PER_LANE: Final = 8
"""Calls held per parallel place: enough to look past a slow one, bounded for endless input. Arbitrary."""


@dataclasses.dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch.

    Attributes:
        tool: The tool's name.
        arguments: A lossless JSON object.
        id: The caller's own name for the call; made up when None.
    """

    tool: str
    arguments: Any
    id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class BatchResult:
    """How one call of a batch ended.

    Attributes:
        record: Its receipt.
        value: The canonical value, or `ABSENT` when the call failed.
        content: The content blocks a person or model is shown.
    """

    record: CallRecord
    value: Any
    content: list[dict[str, Any]]

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.record.status == "succeeded"

    def to_json(self) -> dict[str, Any]:
        """Return the receipt record, with the value when there is one."""
        record = self.record.to_json()
        if self.value is not ABSENT:
            record["value"] = self.value
        return record


ResultListener = Callable[[BatchResult], object]


async def run_batch(
    registry: ToolRegistry,
    calls: Iterable[ToolCall] | AsyncIterable[ToolCall],
    *,
    sink: EventSink,
    max_parallel: int,
    on_result: ResultListener,
    abort: AbortSignal | None = None,
    session: object = None,
) -> None:
    """Dispatch the calls and hand each result, in input order, to `on_result`.

    Args:
        registry: What the calls are dispatched through.
        calls: The calls; taken one at a time.
        sink: Where events go.
        max_parallel: Parallel-safe calls that may run at the same time.
        on_result: Gets every result; what it raises ends the batch.
        abort: Stops running calls and starts no more; the rest is recorded as not started.
        session: What tools see as their session.
    """
    batch = _Batch(registry, sink, max_parallel, on_result, abort or AbortSignal(), session)
    async with trio.open_nursery() as nursery:
        if isinstance(calls, AsyncIterable):
            async for call in calls:
                await batch.submit(nursery, call)
        else:
            for call in calls:
                await batch.submit(nursery, call)


class _Batch:
    def __init__(
        self,
        registry: ToolRegistry,
        sink: EventSink,
        max_parallel: int,
        on_result: ResultListener,
        abort: AbortSignal,
        session: object,
    ) -> None:
        self._registry = registry
        self._sink = sink
        self._on_result = on_result
        self._abort = abort
        self._session = session
        self._lane = Lane(max_parallel)
        self._id = f"batch-{secrets.token_hex(8)}"
        self._submitted = 0
        self._committed = 0
        self._settled: dict[int, tuple[Turn | None, BatchResult, ToolResult]] = {}
        self._window = trio.Semaphore(max_parallel * WINDOW_PER_LANE)

    async def submit(self, nursery: trio.Nursery, call: ToolCall) -> None:
        """Take the next call, as soon as the window has room."""
        await self._window.acquire()
        number = self._submitted
        self._submitted += 1
        nursery.start_soon(self._serve, number, call, self._lane.admit())

    async def _serve(self, number: int, call: ToolCall, ticket: Ticket) -> None:
        record = CallRecord(
            call.id or f"{self._id}:{number + 1}", call.tool, _recorded_arguments(call.arguments)
        )
        await self._lane.wait_turn(ticket, lambda: self._is_exclusive(call))
        try:
            began = time.perf_counter()
            if self._abort.aborted:
                turn: Turn | None = None
                result: ToolResult = _NOT_STARTED
                self._lane.started(ticket)
            else:
                turn = Turn(self._sink, record.id, call.tool, call.arguments)
                result = await self._dispatch(call, record, ticket, turn)
                record.duration_ms = (time.perf_counter() - began) * 1000
            self._settle(number, record, turn, result)
        finally:
            self._lane.settle(ticket)

    async def _dispatch(self, call: ToolCall, record: CallRecord, ticket: Ticket, turn: Turn) -> ToolResult:
        turn.begin()
        dispatch = self._registry.begin(
            call.tool,
            call.arguments,
            call_id=record.id,
            session=self._session,
            abort=self._abort,
            provenance="batch",
            run_id=self._id,
        )
        await dispatch.prepare()
        self._lane.started(ticket)
        await dispatch.execute()
        result = await dispatch.finish()
        record.executed = dispatch.executed
        turn.annotate(dispatch, result)
        record.annotation = self._sink.own_annotation(dispatch, result)
        return result

    def _settle(self, number: int, record: CallRecord, turn: Turn | None, result: ToolResult) -> None:
        value: JsonValue | object = ABSENT
        if result.is_error:
            record.error_message = result.error.message
            record.error_code = None if result.error.info is None else result.error.info.code
            record.status = "unknown" if record.error_code == OUTCOME_UNKNOWN else "failed"
            if turn is None:
                record.status = "not_started"
        else:
            record.status = "succeeded"
            value = result.value
        content: list[dict[str, Any]] = [dict(block) for block in result.content]
        self._settled[number] = (turn, BatchResult(record, value, content), result)
        while self._committed in self._settled:
            turn, settled, result = self._settled.pop(self._committed)
            self._committed += 1
            if turn is not None:
                turn.end(result)
            self._window.release()
            self._on_result(settled)

    def _is_exclusive(self, call: ToolCall) -> bool:
        return self._registry.execution_mode(call.tool, call.arguments) == "exclusive"


_NOT_STARTED: Final = failure_from_message(
    "tool call aborted before dispatch", ErrorInfo("AbortError", "ABORTED_BEFORE_DISPATCH")
)


def _recorded_arguments(arguments: Any) -> JsonValue:
    try:
        return bounded_arguments(snapshot(arguments, "arguments"))
    except NotJsonError as error:
        return f"not JSON: {error}"
