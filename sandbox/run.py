"""One program in one worker: sends it, answers its calls, decides how it ends.

Knows: one run's deadlines, frames, calls and ledger. Does not know: where the worker came from, what a
host function does.
The worker is hostile from the moment it has the program: bytes are rebuilt by `wire`, output is
counted here whatever the worker counted, and stopping is SIGKILL, because a program can catch
anything Python can raise.

One task reads. A call is served by the reader itself as long as serving it does not wait for anything;
when it has to wait, another reader takes over and the first one becomes that call's own task.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import trio

from sandbox import endings, values, wire
from sandbox.answers import (
    decoded_frame,
    error_message,
    makes_calls,
    messages_together,
    result_message,
    too_many_pending_message,
)
from sandbox.batch import Batch
from sandbox.errors import WireProtocolError
from sandbox.handover import await_noticing
from sandbox.ledger import OutputLedger
from sandbox.outgoing import Outgoing
from sandbox.pace import QUICK_SECONDS, Pace
from sandbox.vocabulary import (
    Failure,
    FailureKind,
    HostCall,
    HostFunctionError,
    Namespace,
    Outcome,
    Program,
    Usage,
)
from sandbox.wall_clock import WallClock

if TYPE_CHECKING:
    from sandbox.handover import Begun
    from sandbox.limits import Limits
    from sandbox.stop import Stop
    from sandbox.stuck_calls import StuckCalls
    from sandbox.values import JsonValue
    from sandbox.vocabulary import Answer, Cancellable
    from sandbox.workers import Worker

_RECEIVE_BYTES: Final = 64 * 1024
"""Below what the C library maps and unmaps for every receive, which takes five times as long as receiving."""
_THREAD_DECODE_BYTES: Final = 256 * 1024
"""Frames above this are decoded off the trio thread, which must not stand still for one run."""
_METER_SECONDS: Final = 0.01
"""Shortest pause between two readings of a worker's CPU. Arbitrary: how far a budget may be overrun."""
_UNITS_PER_TURN: Final = 256
"""Frames, messages and 4 KiB pieces of frames a reader takes before it lets other tasks run. About 2 ms."""
_UNIT_BYTES: Final = 4096
_SECONDS_PER_TURN: Final = 0.005
"""Or for how long, because bodies of calls that wait for nothing run in the reader."""
_UNITS_PER_BRIEF_WAIT: Final = 8
_PACE: Final = wire.PACE.encode()
_MOMENT_SECONDS: Final = 0.001
"""How long a run is waited for without giving way to other tasks when it has just begun. Arbitrary: what a
program that does nearly nothing takes."""

_logger = logging.getLogger("sandbox")

LogListener = Callable[[str], None]


class Run:
    """One program in one worker. Made by the supervisor, heard and settled once.

    Args:
        worker: Has been sent the program.
        program: What it runs.
        limits: The run's bounds.
        unsent: What the worker has not been sent yet of its program.
        stop: A way to end it from outside.
        on_log: Gets printed text as it arrives, in pieces.
        stuck_calls: Reports those of this run.
        is_alone: Whether no other program runs.
    """

    def __init__(
        self,
        worker: Worker,
        program: Program,
        limits: Limits,
        *,
        unsent: memoryview,
        stop: Stop,
        on_log: LogListener | None,
        stuck_calls: StuckCalls,
        is_alone: Callable[[], bool],
    ) -> None:
        self._worker = worker
        self._unsent = unsent
        self._stop = stop
        self._began_at = trio.current_time()
        self._ended_at: float | None = None
        self._compute_used = 0.0
        self._is_alone = is_alone
        self._had_one_call = False
        """Whether the last frame was a call by itself, as from a program that awaits one after the other."""
        self._is_quick = False
        """Whether the worker's last frame came so soon that the next one is waited for briefly."""
        self._pace = Pace(worker.socket, worker.placement, self._tell_pace)
        self.limits = limits
        self._on_log = on_log
        self._stuck_calls = stuck_calls
        self.namespaces: dict[str, Namespace] = {space.name: space for space in program.namespaces}
        self._ledger = OutputLedger(limits.max_output_bytes, limits.max_log_entries)
        # ASCII escapes can triple what the ledger counts, so a value that fits may be this long.
        largest = 3 * max(limits.max_output_bytes, limits.max_call_bytes) + wire.FRAME_OVERHEAD_BYTES
        self._frames = wire.FrameBuffer(largest)
        self._max_received_bytes = largest + limits.max_run_bytes
        """Everything an honest worker can send is charged to the ledger or to the run; the rest is junk."""
        self._received_bytes = 0
        self._frame_bytes = self._value_bytes = self._run_bytes = 0
        self._units = 0
        self._rested_at = 0.0
        """When other tasks last had their turn, on the clock of `time.perf_counter`."""
        self._done: wire.Done | None = None
        self._failure: Failure | None = None
        self._ended = trio.Event()
        self.is_over = self._ended.is_set
        self._over = False
        self._calls: dict[int, HostCall] = {}
        self.calls_seen = 0
        self.calls_started = 0
        self._cancels_seen = 0
        self._last_call_id = 0
        self._outgoing = Outgoing(worker.socket)
        self._clock = WallClock()
        self.batch: Batch | None = None
        """The one at hand: only when it is through, the next message is looked at."""
        self._tasks: trio.Nursery

    @property
    def calls_pending(self) -> int:
        """How many calls wait."""
        return len(self._calls)

    @property
    def reported_its_end(self) -> bool:
        """Whether the program came to its own end, as opposed to having been ended."""
        return self._done is not None

    async def hear(self, on_sent: Callable[[], object] | None) -> None:
        """Hear what the program says within a moment, by which most short ones are over. Before `settle`.

        Args:
            on_sent: Called when nothing that the program says has been heard yet.
        """
        self._stop.listen(lambda: self._fail("abort", self._stop.reason))
        if on_sent is not None:
            on_sent()
        if not self._unsent:
            await self._hear_at_once()
        # It was placed for the moment in which both had work to do.
        self._worker.placement.let_go()
        if self._ended.is_set():
            self._note_end()

    async def settle(self) -> Outcome:
        """Run to the program's end and to that of its calls, and return the outcome.

        The worker has been killed by then, but need not be gone yet, except where its status counts.
        """
        try:
            if self._ended_at is None:
                async with trio.open_nursery() as self._tasks:
                    self._outgoing.tasks = self._tasks
                    try:
                        if self._unsent:
                            self._outgoing.send_later(self._unsent)
                        self._tasks.start_soon(self._read, iter(()))
                        self._clock.start(self._began_at + self.limits.wall_seconds)
                        await self._wait_ended()
                    finally:
                        self._note_end()
        finally:
            self._stop.listen(None)
        if self._done is None and self._failure is None:
            self._failure = endings.exit_failure(await self._worker.wait_exit_status(), self.limits)
            self._compute_used = self._compute_seconds()
        assert self._ended_at is not None
        usage = Usage(
            self._ended_at - self._began_at,
            self._compute_used,
            self.calls_started,
            self._ledger.log_bytes,
        )
        return endings.outcome(self._done, self._failure, self._ledger, self._value_bytes, usage)

    async def _hear_at_once(self) -> None:
        """Hear what the program says within a moment, as long as it makes no calls.

        Most short programs are over by then, and have needed no task. Whatever else came is kept for the
        reader. Only an only run is waited for without giving way to other tasks, who have their turn before.
        """
        await trio.lowlevel.checkpoint()
        self._rested_at = time.perf_counter()
        sock = self._worker.socket
        while not self._ended.is_set() and time.perf_counter() - self._rested_at < _MOMENT_SECONDS:
            try:
                data = sock.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                if not self._is_alone():
                    return
                self._worker.placement.let_go()
                self._pace.sleep()
                continue
            except ConnectionResetError:
                return  # Which the reader will see, too.
            self._received_bytes += len(data)
            self._frames.feed(data)
            for message in self._frames.plain_messages(_UNIT_BYTES):
                if await self._act(message) or self._failure is not None:
                    return
            if not data or self._frames:
                return

    # ---- what ends a run

    def _fail(self, kind: FailureKind, message: str, hint: str | None = None) -> None:
        """Settle as a failure, unless something else settled the run first."""
        if self._failure is None and self._done is None:
            self._failure = Failure(kind, message, hint=hint)
        self._ended.set()

    def _compute_seconds(self) -> float:
        """Return the CPU time the program has used, as opposed to waiting for its calls."""
        return max(self._worker.compute_seconds() - self._pace.looking_seconds, 0.0)

    async def _wait_ended(self) -> None:
        budget = self.limits.compute_seconds
        while not self._ended.is_set():
            left = budget - self._compute_seconds()
            if left < 0:
                self._fail_compute()
            elif self._clock.is_over():
                self._fail("timeout", endings.wall_message(self.limits))
            else:
                # CPU time cannot pass faster than time itself, so the rest of the budget is safe to sleep.
                await self._clock.wait(self._ended, max(left, _METER_SECONDS))

    def _note_end(self) -> None:
        self._ended_at = trio.current_time()
        self._compute_used = self._compute_seconds()
        self._finish()

    def _fail_compute(self) -> None:
        self._fail("timeout", endings.compute_message(self.limits))

    def _finish(self) -> None:
        """Kill the worker, give up its calls, let the readers go."""
        self._end_service()
        self._worker.kill()
        if self.batch is not None:
            self.batch.close()
        if self._done is None or self._outgoing.is_sending:
            # Somebody waits for the wire. Whoever has heard the end of the program is done with reading.
            trio.lowlevel.notify_closing(self._worker.socket)
        for call_id in tuple(self._calls):
            self._abandon(call_id)
        if self._calls:
            self._tasks.start_soon(self._stuck_calls.report, self._calls)

    # ---- frames from the worker

    async def _read(self, messages: Iterator[wire.FromWorker]) -> None:
        """Act on messages until the run ends or another reader takes over.

        Args:
            messages: The rest of a frame that an earlier reader began.
        """
        # Scopes for the task and not for each call, which costs more than all else about a short call: only
        # one that waits can be given up, and by then this task is that call's own and will never read again.
        # Shielded, because a reader ends with its wire, and a call by its scope or its function's own way.
        with trio.CancelScope(shield=True), trio.CancelScope() as scope:
            await self._read_in(scope, messages)

    async def _read_in(self, scope: trio.CancelScope, messages: Iterator[wire.FromWorker]) -> None:
        try:
            while True:
                if self.batch is not None and await self.batch.serve(self, messages, scope):
                    return
                for message in messages:
                    if not await self.may_go_on():
                        return  # Asked to stop meanwhile: what is left of the frame is not begun.
                    if type(message) is wire.Call:
                        if await self.serve(message, messages, scope) or self._over:
                            return
                    elif type(message) is wire.Batch:
                        self.batch = Batch(message.calls)
                        if await self.batch.serve(self, messages, scope):
                            return
                    elif await self._act(message) or self._over:
                        return
                if self._had_one_call:
                    self._outgoing.flush()
                payload = await self._next_payload()
                if payload is None:
                    break
                if len(payload) <= _THREAD_DECODE_BYTES:
                    decoded = decoded_frame(payload, self.limits)
                else:
                    decoded = await self._decode_in_thread(payload)
                messages = self._begun(payload, decoded)
                if self._over or self._ended.is_set():
                    break
        except WireProtocolError:
            self._fail("worker-exit", endings.BROKEN_PROTOCOL)
        except (ConnectionResetError, trio.ClosedResourceError):
            pass
        self._ended.set()

    async def may_go_on(self) -> bool:
        """Let other tasks have their turn where it is time; returns whether the run goes on."""
        if self._units > _UNITS_PER_TURN or time.perf_counter() - self._rested_at > _SECONDS_PER_TURN:
            await self._rest()
        self._units += 1
        return self._failure is None and self._done is None

    async def _next_payload(self) -> bytes | None:
        """Return the next frame's payload, None at the end of the wire."""
        sock = self._worker.socket
        frames = self._frames
        while (payload := frames.next_payload()) is None:
            try:
                data = sock.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                # What is answered is sent when nothing more is to be answered at once.
                self._outgoing.flush()
                if self._is_quick and await self._wait_briefly():
                    continue
                self._units = 0
                takes_turns = self._had_one_call and self._is_alone()
                if not takes_turns:
                    self._pace.interrupt()
                elif not self._pace.is_apart:
                    self._worker.placement.settle()
                began = time.perf_counter()
                await trio.lowlevel.wait_readable(sock)
                self._rested_at = time.perf_counter()
                self._is_quick = takes_turns and self._rested_at - began < QUICK_SECONDS
                continue
            if not data:
                return None
            self._received_bytes += len(data)
            if self._received_bytes > self._max_received_bytes:
                raise WireProtocolError("a worker sent more than a program can make it send")
            if (payload := frames.only_payload(data)) is not None:
                break
            frames.feed(data)
        self._frame_bytes = len(payload)
        self._units += 1 + len(payload) // _UNIT_BYTES
        if self._units > _UNITS_PER_TURN:
            await self._rest()
        return payload

    async def _wait_briefly(self) -> bool:
        """Wait a moment for the next frame without giving way to other tasks.

        Returns whether it has waited; where it has not, the scheduler has to.
        Going through the scheduler for every frame would double what a short call costs. Only for the only
        run, while its program answers at once, and every few frames other tasks have their turn.
        """
        self._units += _UNITS_PER_BRIEF_WAIT
        if self._units > _UNITS_PER_TURN:
            await self._rest()
        self._is_quick = self._is_alone() and not self._outgoing.is_sending
        if self._is_quick:
            self._is_quick = self._pace.wait()
            return True
        return False

    async def _decode_in_thread(self, payload: bytes) -> list[Any]:
        digits = await trio.to_thread.run_sync(wire.long_digits, payload)
        if digits > wire.MAX_LONG_DIGITS:
            self._fail("invalid-output", endings.digits_message(digits))
            return []
        return await trio.to_thread.run_sync(decoded_frame, payload, self.limits)

    def _begun(self, payload: bytes, decoded: list[Any]) -> Iterator[wire.FromWorker]:
        """Charge a frame to the run, if it makes calls, and return its messages."""
        only = wire.parse_message(decoded[0]) if len(decoded) == 1 else None
        self._had_one_call = only is not None and self.calls_seen > 0 and type(only) is not wire.Batch
        if self._had_one_call and not self._outgoing.is_sending:
            self._pace.exchange()
        else:
            self._pace.interrupt()
        if makes_calls(decoded) if only is None else isinstance(only, (wire.Call, wire.Batch)):
            self._charge(len(payload))
        return wire.parse_messages(decoded) if only is None else iter((only,))

    async def _size(self, value: JsonValue) -> int:
        if self._frame_bytes > _THREAD_DECODE_BYTES:
            return await trio.to_thread.run_sync(values.json_size, value)
        return values.json_size(value)

    async def _rest(self) -> None:
        """Let other tasks run: a worker that sends without end must not stop the host."""
        self._units = 0
        self._outgoing.flush()
        await trio.lowlevel.checkpoint()
        self._rested_at = time.perf_counter()

    def _charge(self, count: int) -> None:
        self._run_bytes += count
        if self._run_bytes > self.limits.max_run_bytes:
            self._fail("call-limit", *endings.run_bytes_message(self.limits))
            self._end_service()

    async def _act(self, message: wire.FromWorker) -> bool:
        """Act on a message that is no call; returns whether this reader is done with reading."""
        if isinstance(message, wire.Log):
            exceeded = self._ledger.add(message.text)
            if self._on_log is not None:
                try:
                    self._on_log(message.text)
                except Exception:
                    _logger.exception("a listener of printed text failed")
            if exceeded is not None:
                self._fail("output-limit", exceeded)
            return exceeded is not None
        if isinstance(message, wire.Cancel):
            self._cancels_seen += 1
            if self._cancels_seen > self.calls_seen:
                raise WireProtocolError("a worker gave up more calls than it made")
            self._abandon(message.id)
            return False
        if isinstance(message, wire.Done):
            # Whether the meter or the program comes first here is chance, so the budget decides.
            await self._worker.wait_metered()
            if self._compute_seconds() > self.limits.compute_seconds:
                self._fail_compute()
            elif self._failure is None:
                if message.has_value:
                    self._value_bytes = await self._size(message.value)
                self._done = message
            self._ended.set()
            return True
        assert isinstance(message, wire.Ready), "a call is served"
        self._fail("worker-exit", endings.broken_worker_message(message))
        return True

    # ---- host calls

    async def serve(self, call: wire.Call, rest: Iterator[wire.FromWorker], scope: trio.CancelScope) -> bool:
        """Serve one call, in this task; returns whether another reader took over meanwhile."""
        accepted = self._accept(call, scope)
        return accepted is not None and await self.await_answer(*accepted, rest)

    def hand_over(self, rest: Iterator[wire.FromWorker]) -> None:
        """Let another reader go on."""
        self._outgoing.flush()
        self._tasks.start_soon(self._read, rest)

    async def await_answer(
        self,
        request: HostCall,
        answer: Awaitable[JsonValue] | Begun[JsonValue],
        rest: Iterator[wire.FromWorker],
    ) -> bool:
        """Await a call's answer and post it; returns whether another reader took over meanwhile."""
        self._calls[request.id] = request
        handed_over = False

        def hand_over() -> None:
            nonlocal handed_over
            handed_over = True
            self.hand_over(rest)

        try:
            value = await await_noticing(answer, hand_over)
        except HostFunctionError as error:
            self._post_reply(error_message(request.id, str(error)))
        else:
            if not request.answered:
                self._answer(request, value)
        finally:
            del self._calls[request.id]
            if self._over and not self._calls:
                self._stuck_calls.end()
        if request.cut_off and not handed_over:
            hand_over()  # The call cut itself off: nothing can be waited for in this task any more.
        if handed_over and not self._over:
            if self._calls:
                # Answers that are ready at the same moment leave in one frame.
                await trio.lowlevel.cancel_shielded_checkpoint()
            self._outgoing.flush()
        return handed_over

    def _accept(
        self, call: wire.Call, scope: trio.CancelScope
    ) -> tuple[HostCall, Awaitable[JsonValue]] | None:
        """Check a call and begin it; None when it was refused."""
        if (request := self.request(call, scope)) is None:
            return None
        try:
            answer = self.namespaces[call.namespace].function(request)
        except HostFunctionError as error:
            self._post(error_message(call.id, str(error)))
            return None
        self.calls_started += 1
        return request, answer

    def request(self, call: wire.Call, scope: Cancellable) -> HostCall | None:
        """Check a call; None when it was refused."""
        if call.id <= self._last_call_id:
            raise WireProtocolError("a call number was used twice")
        self._last_call_id = call.id
        if self._over:
            return None
        # Refused calls count as well: refusing is work, and each makes a reply.
        if self.calls_seen >= self.limits.max_calls:
            self._fail("call-limit", *endings.calls_message(self.limits))
            self._end_service()
            return None
        self.calls_seen += 1
        namespace = self.namespaces.get(call.namespace)
        if namespace is None or call.member not in namespace.members:
            self._post(error_message(call.id, f'unknown binding "{call.namespace}.{call.member}"'))
            return None
        if len(self._calls) >= self.limits.max_pending_calls:
            self._post(too_many_pending_message(call, self.limits))
            return None
        return HostCall(
            call.id,
            call.namespace,
            call.member,
            call.arguments,
            call.line,
            scope,
            self._answer,
            self._clock.hold,
        )

    def _abandon(self, call_id: int) -> None:
        request = self._calls.get(call_id)
        if request is not None and not request.answered:
            request.abandon()
            if not self.namespaces[request.namespace].ends_calls:
                request.cancel()

    # ---- frames to the worker

    def _post(self, message: bytes) -> None:
        self._outgoing.messages.append(message)
        # Charged now: a worker that does not read must not make the host keep results without end.
        self._charge(len(message))

    def _answer(self, call: HostCall, value: JsonValue) -> None:
        """Post a call's result; that of a call by itself is sent at once to a worker on another core."""
        self._post_reply(result_message(call, value, self.limits))
        if self._had_one_call and self._pace.is_apart and not self._over:
            # Not on one core: there the worker would run at once, and this thread wait for its turn.
            self._outgoing.flush()
            self._pace.answered()

    def answer_together(self, answers: list[tuple[HostCall, Answer]]) -> None:
        """Post what calls of a batch are answered."""
        for reply in messages_together(answers, self.limits):
            self._post_reply(reply)
        self._outgoing.flush_many()

    def _post_reply(self, reply: bytes | Iterator[bytes]) -> None:
        if not self._over:
            self._post(reply) if isinstance(reply, bytes) else self._post_parts(reply)

    def _tell_pace(self, look_seconds: float) -> None:
        self._outgoing.lead(b'["%b",%d]' % (_PACE, round(look_seconds * 1_000_000)))

    def _post_parts(self, parts: Iterator[bytes]) -> None:
        """Post a large result, sending the first parts while the others are packed."""
        for frame in parts:
            self._outgoing.post_frame(frame)
            self._charge(len(frame))
            if self._over:
                return
            self._outgoing.flush()

    def _end_service(self) -> None:
        """Begin no more calls, and answer none."""
        self._over = True
        self._outgoing.close()
