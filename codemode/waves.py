"""Calls that came together, in waves: as many as may overlap start at once, then their bodies run one by one.

A wave is served where it was read, stage by stage, without a task and a place in the lane for each call. What
goes through without waiting is over when the next wave starts; its ends and the next starts share a write to
the log. A body that waits gets its place in the lane and a task of its own, and the others go on. What needs
more than that, an exclusive tool, a policy that has to be asked, a body in a thread, is served as a single
call is.

Knows: which calls can go this way, and in which order their stages come. Does not know: how single calls are
served (`bridge`), frames.
"""

from __future__ import annotations

import contextvars
import time
from typing import TYPE_CHECKING, Final

from codemode.dispatch_events import NestedCall
from codemode.receipts import SHORT_TEXT_BYTES, bounded_arguments
from codemode.stages import result_of
from sandbox.handover import Begun
from sandbox.vocabulary import HostCall, HostFunctionError, Step
from tool_bindings.abort import AbortSignal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator

    from codemode.dispatch_events import DispatchEvents
    from codemode.lane import Lane, Ticket
    from codemode.receipts import CallRecord
    from sandbox.values import JsonValue
    from sandbox.vocabulary import Answer
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.registry import ToolRegistry
    from tool_bindings.results import ToolResult
    from tool_bindings.scope import Scope

_SHORT_TYPES: Final = frozenset({int, float, bool, type(None)})
_SHORT_CHARS: Final = 1000
_SECONDS_PER_TURN: Final = 0.002
"""After this time other tasks have their turn. Arbitrary: a few waves of bodies that do little."""


class _Member(NestedCall):
    """One call of a wave."""

    __slots__ = ("began", "call", "ended", "number", "record", "signal", "ticket")

    def __init__(self, call: HostCall, record: CallRecord, number: int) -> None:
        # What the base would do, without a call of its own for each.
        self.id = record.id
        self.name = call.member
        self.arguments = call.arguments
        self.start_text = None
        self.call = call
        self.record = record
        self.number = number
        self.signal = AbortSignal()
        self.began = self.ended = 0.0
        self.ticket: Ticket | None = None
        """Its place in the lane, once it waits."""


class Waves:
    """Serves the calls of one run that came together.

    Args:
        registry: What the calls are dispatched through.
        scope: Registry scope of the run.
        lane: The run's lane.
        events: Where starts and ends are recorded.
        running: Signals of the calls that run, by id.
        accept: Serves a call in the usual way.
        note: Numbers a call and opens its record.
        begin: Begins the dispatch of a call.
        commit: Takes a result into the receipt.
        abandon: Fires the signal of a call that nobody waits for any more.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        scope: Scope | None,
        lane: Lane,
        events: DispatchEvents,
        running: dict[str, AbortSignal],
        *,
        accept: Callable[[HostCall], Awaitable[JsonValue]],
        note: Callable[[HostCall], tuple[CallRecord, int]],
        begin: Callable[[HostCall, CallRecord, AbortSignal], Dispatch],
        commit: Callable[[CallRecord, Dispatch, ToolResult, int], None],
        abandon: Callable[[AbortSignal], None],
    ) -> None:
        self._registry = registry
        self._scope = scope
        self._lane = lane
        self._events = events
        self._running = running
        self._accept = accept
        self._note = note
        self._begin = begin
        self._commit = commit
        self._abandon = abandon
        self._unrecorded: list[_Member] = []
        """Calls whose end is still to be recorded."""

    def serve(self, calls: Iterator[HostCall], is_over: Callable[[], bool]) -> Generator[Step, None, None]:
        """Serve the calls of a batch; see `Namespace.many`."""
        left: Iterator[_Member] = iter(())
        until = time.perf_counter() + _SECONDS_PER_TURN
        try:
            while True:
                wave, other = self._next_wave(calls)
                self._start(wave)
                left = iter(wave)
                answers: list[tuple[HostCall, Answer]] = []
                for member in left:
                    waiting = self._run(member)
                    if waiting is None:
                        self._unrecorded.append(member)
                        answers.append((member.call, answer := _answer(member.result)))
                        if member.ended < until and not member.call.cut_off and not is_over():
                            if not _is_short(answer):
                                # Counted before the next body runs, which it may be too much for.
                                yield Step(answers)
                                answers = []
                            continue
                    self._record_ends()
                    yield Step(answers, waiting, is_turn=True)
                    answers = []
                    until = time.perf_counter() + _SECONDS_PER_TURN
                if other is not None:
                    self._record_ends()
                    if answers:
                        # By themselves: with them the run may be over, and then the next call does not begin.
                        yield Step(answers)
                    yield Step([], (other, self._accept(other)))
                    until = time.perf_counter() + _SECONDS_PER_TURN
                elif wave:
                    yield Step(answers)
                else:
                    return
        finally:
            # Nobody waits any more: what has started comes to its end all the same, but without its body.
            for member in left:
                self._abandon(member.signal)
                self._run(member)
                self._unrecorded.append(member)
            self._record_ends()

    def _next_wave(self, calls: Iterator[HostCall]) -> tuple[list[_Member], HostCall | None]:
        """Take as many calls as may start now, and the next one if it has to be served in the usual way."""
        policies = self._registry.policies(self._scope)
        room = self._lane.room()
        if policies.before or policies.around or policies.post or not self._events.are_only_written:
            room = 0
        wave: list[_Member] = []
        for call in calls:
            bound = policies.view.get(call.member)
            if (
                not room
                or bound is None
                or bound.runs_in_thread
                or bound.definition.concurrency_safe is not True
            ):
                return wave, call
            wave.append(_Member(call, *self._note(call)))
            if len(wave) == room:
                break
        return wave, None

    def _start(self, wave: list[_Member]) -> None:
        for member in wave:
            self._running[member.id] = member.signal
        ended, self._unrecorded = self._unrecorded, []
        self._events.record(ended, wave)
        for member in wave:
            member.record.status = "unknown"
            if member.start_text is None or len(member.start_text[1]) > SHORT_TEXT_BYTES:
                member.record.arguments = bounded_arguments(member.arguments)

    def _run(self, member: _Member) -> tuple[HostCall, Begun[JsonValue]] | None:
        """Run a call's body and what follows it; returns the call when it has to wait."""
        context = contextvars.copy_context()
        coroutine = self._serve_started(member)
        try:
            trap = context.run(coroutine.send, None)
        except StopIteration:
            return None
        member.ticket = self._lane.take()
        member.call.on_abandoned(lambda: self._abandon(member.signal))
        return member.call, Begun(coroutine, trap, context)

    async def _serve_started(self, member: _Member) -> JsonValue:
        """Take one call through its stages; once it has waited, its end is recorded here, too."""
        signal = member.signal
        member.began = time.perf_counter()
        try:
            dispatch = member.dispatch = self._begin(member.call, member.record, signal)
            if not dispatch.prepare_nowait():
                await dispatch.prepare()
            result = member.result = await result_of(dispatch, signal)
            if member.ticket is not None and not result.is_error:
                member.call.answer(result.value)
            self._commit(member.record, dispatch, result, member.number)
            if member.ticket is not None:
                self._events.record([member], [])
        finally:
            member.ended = time.perf_counter()
            member.record.duration_ms = (member.ended - member.began) * 1000
            del self._running[member.id]
            if member.ticket is not None:
                self._lane.settle(member.ticket)
        if result.is_error and member.ticket is not None:
            raise HostFunctionError(result.error.message)
        return None

    def _record_ends(self) -> None:
        if self._unrecorded:
            ended, self._unrecorded = self._unrecorded, []
            self._events.record(ended, [])


def _is_short(answer: Answer) -> bool:
    """Return whether an answer surely takes few bytes."""
    return type(answer) in _SHORT_TYPES or (type(answer) is str and len(answer) <= _SHORT_CHARS)


def _answer(result: ToolResult) -> Answer:
    return HostFunctionError(result.error.message) if result.is_error else result.value
