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
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

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
        id: The caller's own name for the call, text or a number; made up when None.
    """

    tool: str
    arguments: Any
    id: str | int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class BatchResult:
    """How one call of a batch ended.

    Attributes:
        record: Its receipt.
        value: The canonical value, or `ABSENT` when the call failed.
        content: The content blocks a person or model is shown.
        id: The caller's own name for the call, as it was given.
    """

    record: CallRecord
    value: Any
    content: list[dict[str, Any]]
    id: str | int | None = None

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.record.status == "succeeded"

    def to_json(self) -> dict[str, Any]:
        """Return the receipt record, with the value when there is one."""
        record = self.record.to_json()
        if self.id is not None:
            record["id"] = self.id
        if self.value is not ABSENT:
            record["value"] = self.value
        return record

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the result that `to_json` gave; content blocks are not among what it gives."""
        error = data.get("error", {})
        record = CallRecord(
            id=str(data["id"]),
            tool=data["tool"],
            arguments=data["arguments"],
            status=data["status"],
            executed=data["executed"],
            duration_ms=data["durationMs"],
            line=data.get("line"),
            error_message=error.get("message"),
            error_code=error.get("code"),
            annotation=data.get("annotation"),
        )
        return cls(record, data.get("value", ABSENT), [], data["id"])


ResultListener = Callable[[BatchResult], object]


class BatchWatcher(Protocol):
    """Hears of each call before its result is due, by its number in the input; the first is 0."""

    def starting(self, number: int) -> None:
        """Take note that the call's body may run as soon as this returns. What this raises ends the batch."""

    def waiting(self, number: int, result: BatchResult) -> None:
        """Take note of a result that is known, and is handed on only after that of an earlier call."""


async def run_batch(
    registry: ToolRegistry,
    calls: Iterable[ToolCall | BatchResult] | AsyncIterable[ToolCall | BatchResult],
    *,
    sink: EventSink,
    max_parallel: int,
    on_result: ResultListener,
    watcher: BatchWatcher | None = None,
    abort: AbortSignal | None = None,
    session: object = None,
) -> None:
    """Dispatch the calls and hand each result, in input order, to `on_result`.

    Args:
        registry: What the calls are dispatched through.
        calls: The calls; taken one at a time. A result among them is known already: it is handed on in its
            place.
        sink: Where events go.
        max_parallel: Parallel-safe calls that may run at the same time.
        on_result: Gets every result; what it raises ends the batch.
        watcher: Hears of calls before their results are due.
        abort: Stops running calls and starts no more; the rest is recorded as not started.
        session: What tools see as their session.
    """
    batch = _Batch(registry, sink, max_parallel, on_result, watcher, abort or AbortSignal(), session)
    try:
        async with trio.open_nursery() as nursery:
            if isinstance(calls, AsyncIterable):
                async for call in calls:
                    await batch.submit(nursery, call)
            else:
                for call in calls:
                    await batch.submit(nursery, call)
    finally:
        batch.close()


class _Batch:
    def __init__(
        self,
        registry: ToolRegistry,
        sink: EventSink,
        max_parallel: int,
        on_result: ResultListener,
        watcher: BatchWatcher | None,
        abort: AbortSignal,
        session: object,
    ) -> None:
        self._registry = registry
        self._sink = sink
        self._on_result = on_result
        self._watcher = watcher
        self._abort = abort
        self._session = session
        self._lane = Lane(max_parallel)
        self._id = f"batch-{secrets.token_hex(8)}"
        self._submitted = 0
        self._committed = 0
        self._settled: dict[int, _Settled] = {}
        self._turns: dict[str, Turn] = {}
        """Open turns, by the id of their call; a caller's own ids need not differ."""
        self._window = trio.Semaphore(max_parallel * WINDOW_PER_LANE)

    async def submit(self, nursery: trio.Nursery, call: ToolCall | BatchResult) -> None:
        """Take the next call, as soon as the window has room."""
        await self._window.acquire()
        number = self._submitted
        self._submitted += 1
        if isinstance(call, BatchResult):
            self._settle(number, _Settled(call))
        else:
            nursery.start_soon(self._serve, number, call, self._lane.admit())

    def close(self) -> None:
        """Record the end of what was cut off, and of what waits behind it."""
        for settled in self._settled.values():
            self._end_turn(settled)
        for turn in self._turns.values():
            turn.end(None)

    async def _serve(self, number: int, call: ToolCall, ticket: Ticket) -> None:
        made_up = f"{self._id}:{number + 1}"
        record = CallRecord(
            made_up if call.id in (None, "") else str(call.id),
            call.tool,
            _recorded_arguments(call.arguments),
        )
        await self._lane.wait_turn(ticket, lambda: self._is_exclusive(call))
        try:
            if self._abort.aborted:
                self._lane.started(ticket)
                self._settle(number, _Settled(_batch_result(call, record, _NOT_STARTED)))
                return
            began = time.perf_counter()
            call_id = made_up if record.id in self._turns else record.id
            result = await self._dispatch(number, call, call_id, record, ticket)
            record.duration_ms = (time.perf_counter() - began) * 1000
            self._settle(number, _Settled(_batch_result(call, record, result), call_id, result))
        finally:
            self._lane.settle(ticket)

    async def _dispatch(
        self, number: int, call: ToolCall, call_id: str, record: CallRecord, ticket: Ticket
    ) -> ToolResult:
        turn = self._turns[call_id] = Turn(self._sink, call_id, call.tool, call.arguments)
        turn.begin()
        dispatch = self._registry.begin(
            call.tool,
            call.arguments,
            call_id=call_id,
            session=self._session,
            abort=self._abort,
            provenance="batch",
            run_id=self._id,
        )
        await dispatch.prepare()
        self._lane.started(ticket)
        if self._watcher is not None:
            self._watcher.starting(number)
        await dispatch.execute()
        result = await dispatch.finish()
        record.executed = dispatch.executed
        turn.annotate(dispatch, result)
        record.annotation = self._sink.own_annotation(dispatch, result)
        return result

    def _settle(self, number: int, settled: _Settled) -> None:
        self._settled[number] = settled
        if number != self._committed and self._watcher is not None:
            self._watcher.waiting(number, settled.shown)
        while (settled_next := self._settled.pop(self._committed, None)) is not None:
            self._committed += 1
            self._end_turn(settled_next)
            self._window.release()
            self._on_result(settled_next.shown)

    def _end_turn(self, settled: _Settled) -> None:
        if settled.call_id is not None:
            self._turns.pop(settled.call_id).end(settled.result)

    def _is_exclusive(self, call: ToolCall) -> bool:
        return self._registry.execution_mode(call.tool, call.arguments) == "exclusive"


@dataclasses.dataclass(frozen=True, slots=True)
class _Settled:
    """A result that is known, and the turn it ends, if one was begun."""

    shown: BatchResult
    call_id: str | None = None
    result: ToolResult | None = None


def _batch_result(call: ToolCall, record: CallRecord, result: ToolResult) -> BatchResult:
    value: JsonValue | object = ABSENT
    if result.is_error:
        record.error_message = result.error.message
        record.error_code = None if result.error.info is None else result.error.info.code
        if result is not _NOT_STARTED:
            record.status = "unknown" if record.error_code == OUTCOME_UNKNOWN else "failed"
    else:
        record.status = "succeeded"
        value = result.value
    return BatchResult(record, value, [dict(block) for block in result.content], call.id)


_NOT_STARTED: Final = failure_from_message(
    "tool call aborted before dispatch", ErrorInfo("AbortError", "ABORTED_BEFORE_DISPATCH")
)


def _recorded_arguments(arguments: Any) -> JsonValue:
    try:
        return bounded_arguments(snapshot(arguments, "arguments"))
    except NotJsonError as error:
        return f"not JSON: {error}"
