"""The host's side of runs: gives each program a worker, answers its calls, decides how it ends.

Knows: runs, deadlines, frames, the ledger. Does not know: what a host function does.
The worker is hostile from the moment it has the program: bytes are rebuilt by `wire`, output is
counted here whatever the worker counted, and stopping is SIGKILL, because a program can catch
anything Python can raise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import trio

from sandbox import values, wire
from sandbox.errors import ClosedSandboxError, SandboxBusyError, WireProtocolError
from sandbox.isolation import plan
from sandbox.ledger import OutputLedger
from sandbox.limits import Limits
from sandbox.nursery import open_background_nursery
from sandbox.values import JsonValue
from sandbox.vocabulary import (
    ABSENT,
    Failure,
    FailureKind,
    HostCall,
    HostFunctionError,
    Namespace,
    Outcome,
    Program,
    SandboxSettings,
    TraceFrame,
    Usage,
)
from sandbox.workers import Walls, Worker, WorkerBudget, WorkerPool

_RECEIVE_BYTES: Final = 256 * 1024
_THREAD_DECODE_BYTES: Final = 256 * 1024
"""Frames above this are decoded off the trio thread, which must not stand still for one run."""
_METER_SECONDS: Final = 0.01
"""Shortest pause between two readings of a worker's CPU: the kernel's own resolution."""

LogListener = Callable[[str], None]


class Stop:
    """Asks a run to end from outside, with a reason. One per run; safe to ask twice."""

    __slots__ = ("_asked", "reason")

    def __init__(self) -> None:
        self._asked = trio.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """End the run; it settles as `abort` with this reason."""
        if not self._asked.is_set():
            self.reason = reason
            self._asked.set()

    async def wait_requested(self) -> None:
        """Wait until somebody asks."""
        await self._asked.wait()


@dataclasses.dataclass(frozen=True, slots=True)
class SandboxStatistics:
    """A sandbox at one moment."""

    running: int
    queued: int
    completed: int


class Sandbox:
    """Runs programs. Made by `open_sandbox`; nobody else constructs it."""

    def __init__(self, settings: SandboxSettings, pool: WorkerPool) -> None:
        self._settings = settings
        self._pool = pool
        self._slots = trio.Semaphore(settings.max_concurrent_runs)
        self._queued = 0
        self._running = 0
        self._completed = 0
        self._closed = False

    @property
    def isolation(self) -> tuple[plan.StepReport, ...]:
        """What became of each isolation step on this machine, as a worker reported it."""
        return self._pool.steps

    def statistics(self) -> SandboxStatistics:
        """Return how many runs are where."""
        return SandboxStatistics(self._running, self._queued, self._completed)

    async def run(
        self,
        program: Program,
        *,
        limits: Limits | None = None,
        stop: Stop | None = None,
        on_log: LogListener | None = None,
    ) -> Outcome:
        """Run one program in a worker of its own, from the first instruction to quiescence.

        Returns only when the worker is gone and every host call has ended. Cancelling this call
        kills the worker first.

        Args:
            program: What to run, and what it may call.
            limits: This run's bounds; by default the sandbox's own. Nothing may be looser than those.
            stop: A way to end the run from outside; it then settles as `abort`.
            on_log: Gets printed text as it arrives, in pieces.

        Returns:
            How the run ended; what the program did wrong is its `failure`.

        Raises:
            SandboxBusyError: Too many runs are waiting already.
            WorkerStartError: No worker could be started.
            ClosedSandboxError: The sandbox was closed.
        """
        if self._closed:
            raise ClosedSandboxError("the sandbox is closed")
        limits = self._settings.limits if limits is None else limits
        if (refused := _refuse_source(program.source, limits)) is not None:
            return Outcome((), Usage(0.0, 0.0, 0, 0), failure=refused)
        if self._slots.value == 0 and self._queued >= self._settings.max_queued_runs:
            raise SandboxBusyError(
                f"{self._queued} runs are waiting for a worker; the limit is max_queued_runs"
            )
        self._queued += 1
        try:
            await self._slots.acquire()
        finally:
            self._queued -= 1
        self._running += 1
        try:
            worker = await self._pool.take(WorkerBudget.of(limits))
            try:
                return await _Run(worker, program, limits, on_log).settle(stop or Stop())
            finally:
                await worker.end()
        finally:
            self._running -= 1
            self._completed += 1
            self._slots.release()

    def _close(self) -> None:
        self._closed = True


@contextlib.asynccontextmanager
async def open_sandbox(settings: SandboxSettings | None = None) -> AsyncIterator[Sandbox]:
    """Start a sandbox, and end it with every process it made.

    Raises:
        IsolationUnavailableError: A mandatory wall is missing and the settings require it.
        WorkerStartError: Workers cannot be started on this machine.
    """
    async with open_sandbox_with_walls(settings or SandboxSettings(), Walls()) as sandbox:
        yield sandbox


@contextlib.asynccontextmanager
async def open_sandbox_with_walls(settings: SandboxSettings, walls: Walls) -> AsyncIterator[Sandbox]:
    """`open_sandbox` with one of the walls taken down, for tests; see `sandbox.testing`."""
    pool = WorkerPool(settings.limits, settings.parked_workers, walls)
    async with open_background_nursery() as nursery:
        try:
            await pool.open(nursery, require=settings.isolation == "require")
            sandbox = Sandbox(settings, pool)
            try:
                yield sandbox
            finally:
                sandbox._close()
        finally:
            await pool.close()


class _Run:
    """One program in one worker."""

    def __init__(self, worker: Worker, program: Program, limits: Limits, on_log: LogListener | None) -> None:
        self._worker = worker
        self._program = program
        self._limits = limits
        self._on_log = on_log
        self._namespaces: dict[str, Namespace] = {space.name: space for space in program.namespaces}
        self._ledger = OutputLedger(limits.max_output_bytes, limits.max_log_entries)
        self._done: wire.Done | None = None
        self._failure: Failure | None = None
        self._calls: dict[int, tuple[HostCall, trio.CancelScope]] = {}
        self._calls_started = 0
        self._last_call_id = 0
        self._run_bytes = 0
        self._outgoing: list[bytes] = []
        self._sending = False
        self._reading = trio.CancelScope()

    async def settle(self, stop: Stop) -> Outcome:
        """Run to quiescence and return the outcome."""
        began = trio.current_time()
        self._reading.deadline = began + self._limits.wall_seconds
        ended = began
        async with trio.open_nursery() as calls:
            try:
                async with trio.open_nursery() as watchers:
                    watchers.start_soon(self._meter)
                    watchers.start_soon(self._watch, stop)
                    with self._reading:
                        await self._read(calls)
                    watchers.cancel_scope.cancel()
                ended = trio.current_time()
                if self._done is None and self._failure is None and self._reading.cancelled_caught:
                    self._failure = _wall_timeout(self._limits)
                compute_seconds = self._worker.compute_seconds()
            finally:
                self._worker.kill()
                for call_id in tuple(self._calls):
                    self._abandon(call_id)
        await self._worker.end()
        return self._outcome(Usage(ended - began, compute_seconds, self._calls_started, self._ledger.log_bytes))

    # ---- what ends a run

    def _fail(self, kind: FailureKind, message: str, hint: str | None = None) -> None:
        """Settle as a failure, unless something else settled the run first."""
        if self._failure is None and self._done is None:
            self._failure = Failure(kind, message, hint=hint)
            self._reading.cancel()

    async def _meter(self) -> None:
        budget = self._limits.compute_seconds
        while True:
            # CPU time cannot pass faster than time itself, so the rest of the budget is safe to sleep.
            left = budget - self._worker.compute_seconds()
            if left <= 0:
                self._failure = self._failure or _compute_timeout(self._limits)
                self._reading.cancel()
                return
            await trio.sleep(max(left, _METER_SECONDS))

    async def _watch(self, stop: Stop) -> None:
        await stop.wait_requested()
        self._fail("abort", stop.reason)

    def _outcome(self, usage: Usage) -> Outcome:
        failure = self._failure
        done = self._done
        hint = None
        value: Any = ABSENT
        if failure is None and done is None:
            failure = _exit_failure(self._worker.exit_status, self._limits)
        elif failure is None and done is not None:
            hint = done.hint
            if done.failure is not None:
                failure = _reported_failure(done.failure)
            elif done.has_value:
                value = done.value
                if not self._ledger.admits(value):
                    failure = Failure("output-limit", self._ledger.exceeded)
        if failure is not None:
            value = ABSENT
            if not self._ledger.admits_message(failure.message):
                failure = Failure("output-limit", self._ledger.make_room_for_message(), hint=failure.hint)
        return Outcome(self._ledger.lines, usage, value, failure, hint)

    # ---- frames from the worker

    async def _read(self, calls: trio.Nursery) -> None:
        limits = self._limits
        # ASCII escapes can triple what the ledger counts, so a value that fits may be this long.
        largest = 3 * max(limits.max_output_bytes, limits.max_call_bytes) + wire.FRAME_OVERHEAD_BYTES
        buffer = wire.FrameBuffer(largest)
        sock = self._worker.socket
        try:
            await self._send_now(_run_message(self._program, limits))
            while True:
                try:
                    data = sock.recv(_RECEIVE_BYTES)
                except BlockingIOError:
                    await trio.lowlevel.wait_readable(sock)
                    continue
                except ConnectionResetError:
                    return
                if not data:
                    return
                if not self._charge(len(data)):
                    return
                buffer.feed(data)
                while (payload := buffer.next_payload()) is not None:
                    if not await self._handle_frame(payload, calls):
                        return
        except WireProtocolError:
            self._fail("worker-exit", "the worker broke its protocol and was ended")
        except BrokenPipeError:
            return

    def _charge(self, count: int) -> bool:
        self._run_bytes += count
        if self._run_bytes > self._limits.max_run_bytes:
            self._fail(
                "call-limit",
                f"calls and results of this run passed {self._limits.max_run_bytes} bytes;"
                " the limit is max_run_bytes",
            )
            return False
        return True

    async def _handle_frame(self, payload: bytes, calls: trio.Nursery) -> bool:
        if len(payload) > _THREAD_DECODE_BYTES:
            messages = await trio.to_thread.run_sync(wire.decode_payload, payload)
        else:
            messages = wire.decode_payload(payload)
        going_on = all(self._handle(wire.parse_message(message), calls) for message in messages)
        if self._outgoing:
            # Never send from the reader: a worker that sends and does not read would stop both.
            calls.start_soon(self._flush)
        return going_on

    def _handle(self, message: wire.FromWorker, calls: trio.Nursery) -> bool:
        """Act on one message; returns False when the run has ended."""
        if isinstance(message, wire.Call):
            return self._start_call(message, calls)
        if isinstance(message, wire.Log):
            if self._on_log is not None:
                self._on_log(message.text)
            exceeded = self._ledger.add(message.text)
            if exceeded is not None:
                self._fail("output-limit", exceeded)
            return exceeded is None
        if isinstance(message, wire.Cancel):
            self._abandon(message.id)
            return True
        if isinstance(message, wire.Done):
            if self._failure is None:
                self._done = message
            return False
        raise WireProtocolError("a worker said twice that it is ready")

    # ---- host calls

    def _start_call(self, call: wire.Call, calls: trio.Nursery) -> bool:
        if call.id <= self._last_call_id:
            raise WireProtocolError("a call number was used twice")
        self._last_call_id = call.id
        if self._calls_started >= self._limits.max_calls:
            self._fail(
                "call-limit",
                f"the program made more than {self._limits.max_calls} calls; the limit is max_calls",
                hint="do more per call, or split the work over several runs",
            )
            return False
        namespace = self._namespaces.get(call.namespace)
        if namespace is None or call.member not in namespace.members:
            self._post_error(call.id, f"unknown binding {call.namespace}.{call.member}")
            return True
        if len(self._calls) >= self._limits.max_pending_calls:
            self._post_error(
                call.id,
                f"more than {self._limits.max_pending_calls} calls are waiting for their results;"
                " the limit is max_pending_calls: await some before making more",
            )
            return True
        self._calls_started += 1
        scope = trio.CancelScope()
        request = HostCall(call.id, call.namespace, call.member, call.arguments, call.line)
        self._calls[call.id] = (request, scope)
        calls.start_soon(self._answer, call, namespace.function(request), scope)
        return True

    def _abandon(self, call_id: int) -> None:
        if call_id in self._calls:
            request, scope = self._calls[call_id]
            request.abandon()
            scope.cancel()

    async def _answer(self, call: wire.Call, answer: Awaitable[JsonValue], scope: trio.CancelScope) -> None:
        try:
            with scope:
                try:
                    value = await answer
                except HostFunctionError as error:
                    self._outgoing.append(_error_message(call.id, str(error)))
                else:
                    self._outgoing.append(self._result_message(call, value))
        finally:
            del self._calls[call.id]
        await self._flush()

    def _result_message(self, call: wire.Call, value: JsonValue) -> bytes:
        encoded = values.encode(value)
        if len(encoded) > self._limits.max_call_bytes:
            return _error_message(
                call.id,
                f"the result of {call.member} has {len(encoded)} bytes of JSON, above the limit"
                f" max_call_bytes={self._limits.max_call_bytes}; ask for less at a time",
            )
        return b'["%b",%d,%b]' % (wire.RESULT.encode(), call.id, encoded)

    def _post_error(self, call_id: int, message: str) -> None:
        self._outgoing.append(_error_message(call_id, message))

    # ---- frames to the worker

    async def _flush(self) -> None:
        # One task sends at a time; what others post meanwhile leaves in its next frame.
        if self._sending:
            return
        self._sending = True
        try:
            while self._outgoing:
                messages, self._outgoing = self._outgoing, []
                payload = wire.pack(messages)
                if not self._charge(len(payload)):
                    return
                await self._send(payload)
        except (BrokenPipeError, ConnectionResetError):
            # The worker is gone; the reader finds out why.
            self._outgoing.clear()
        finally:
            self._sending = False

    async def _send_now(self, message: bytes) -> None:
        await self._send(wire.pack([message]))

    async def _send(self, data: bytes) -> None:
        view = memoryview(data)
        sock = self._worker.socket
        while view:
            try:
                sent = sock.send(view)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
            else:
                view = view[sent:]


def _refuse_source(source: str, limits: Limits) -> Failure | None:
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > limits.max_source_bytes:
        return Failure(
            "policy",
            f"the program has {size} bytes; the limit is max_source_bytes={limits.max_source_bytes}",
            hint="pass large data to a tool, or read it from one, instead of writing it into the program",
        )
    return None


def _run_message(program: Program, limits: Limits) -> bytes:
    body: dict[str, Any] = {
        "source": program.source,
        "maxOutputBytes": limits.max_output_bytes,
        "maxCallBytes": limits.max_call_bytes,
        "memoryMb": limits.memory_mb,
        "hints": dict(program.hints),
        "namespaces": [
            {
                "name": space.name,
                "members": dict(space.members),
                "noun": space.noun,
                "importable": space.importable,
                "errorClass": None
                if space.error_class is None
                else {"name": space.error_class.name, "attributes": list(space.error_class.member_attributes)},
            }
            for space in program.namespaces
        ],
    }
    return values.encode([wire.RUN, body])


def _error_message(call_id: int, message: str) -> bytes:
    return values.encode([wire.ERROR, call_id, message])


def _wall_timeout(limits: Limits) -> Failure:
    milliseconds = round(limits.wall_seconds * 1000)
    return Failure(
        "timeout", f"wall-clock ceiling reached ({milliseconds}ms); the limit is wall_seconds={limits.wall_seconds:g}"
    )


def _compute_timeout(limits: Limits) -> Failure:
    milliseconds = round(limits.compute_seconds * 1000)
    return Failure(
        "timeout",
        f"compute budget exhausted ({milliseconds}ms busy); the limit is compute_seconds={limits.compute_seconds:g}",
    )


def _exit_failure(status: int | None, limits: Limits) -> Failure:
    """Say why a worker ended without a word."""
    if status == -signal.SIGXCPU:
        return _compute_timeout(limits)
    if status is None:
        return Failure("worker-exit", "the worker was lost together with the process that looks after workers")
    if status >= 0:
        return Failure("worker-exit", f"worker exited with code {status} before completing")
    name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
    return Failure("worker-exit", f"worker was ended by signal {name} before completing")


def _reported_failure(failure: wire.DoneFailure) -> Failure:
    return Failure(
        failure.kind,
        failure.message,
        failure.error_type,
        failure.line,
        failure.hint,
        tuple(TraceFrame(*frame) for frame in failure.traceback),
    )
