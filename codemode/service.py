"""The service: runs programs and direct calls against one registry, and records what happened.

Knows: turns, runs, how the parts are joined. Does not know: how each part does its work.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from codemode.errors import ServiceClosedError, SettingsError, translate
from codemode.events import EventListener, EventSink
from codemode.namespace import OfferedTools
from codemode.outcome import RunOutcome, active_walls, run_outcome
from codemode.policies import installed
from codemode.run_code import RunCodeTool, RunRequest
from codemode.settings import Settings
from codemode.turn import Turn
from sandbox.errors import SandboxError
from sandbox.limits import LimitError
from sandbox.supervisor import Sandbox, Stop, open_sandbox
from tool_bindings.annotated import DEFAULT_POLICY
from tool_bindings.registry import RUN_CODE, ToolRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence

    from codemode.batch import BatchResult, ToolCall
    from codemode.helpers import ProgressListener
    from codemode.log_shaping import LogListener as DispatchLogListener
    from codemode.session_log import SessionLog
    from sandbox.vocabulary import Failure
    from tool_bindings.abort import AbortSignal
    from tool_bindings.annotated import ProjectionPolicy
    from tool_bindings.caller import Provenance
    from tool_bindings.redaction import SecretMasker
    from tool_bindings.results import ToolResult
    from tool_bindings.spill import SpillStore

DEFAULT_DESCRIPTION = "run a program"
DISPOSED = "runtime disposed"


class ServiceStatistics(NamedTuple):
    """A service at one moment.

    Attributes:
        running: Runs that have a worker.
        queued: Runs that wait for one.
        completed: Runs that have ended.
        parked: Workers that wait for a run.
    """

    running: int
    queued: int
    completed: int
    parked: int


class CodeService:
    """Runs programs. Made by `open_service`; nobody else constructs it."""

    def __init__(
        self,
        registry: ToolRegistry,
        sandbox: Sandbox,
        settings: Settings,
        sink: EventSink,
        session_log: SessionLog | None,
        masker: SecretMasker | None = None,
    ) -> None:
        self._registry = registry
        self._sandbox = sandbox
        self._settings = settings
        self._limits = settings.limits()
        self._sink = sink
        # Who a call belongs to, for policies and approvals, also when nothing is recorded.
        self._session: object = object() if session_log is None else session_log
        self._masker = masker
        self._run_code = RunCodeTool(
            registry,
            sandbox,
            sink,
            max_parallel=settings.max_parallel_sub_calls,
            grace_seconds=settings.grace_seconds,
            session=self._session,
        )
        self._offered: tuple[object, tuple[str, ...] | None, OfferedTools] | None = None
        """The tools of the last run, and what they were chosen from and by."""
        self._isolation = active_walls(sandbox.isolation)
        self._stops: dict[str, Stop] = {}
        self._quiet: trio.Event | None = None
        self._closed = False

    @property
    def isolation(self) -> tuple[str, ...]:
        """Names of the walls that stand on this machine, as probed when the service opened."""
        return self._isolation

    @property
    def settings(self) -> Settings:
        """The settings it was opened with."""
        return self._settings

    def statistics(self) -> ServiceStatistics:
        """Return how many runs are where, and how many workers wait for one."""
        return ServiceStatistics(*self._sandbox.statistics())

    def stop(self, run_id: str, reason: str = "stopped") -> bool:
        """End a run; it settles as `abort`. Returns whether there was such a run."""
        stop = self._stops.get(run_id)
        if stop is not None:
            stop.request(reason)
        return stop is not None

    def on_dispatch_log(self, listener: DispatchLogListener) -> Callable[[], None]:
        """Let `listener(entry)` change what the log keeps of nested calls; returns what takes it back.

        It changes the record only: the program has its value already. What it raises is logged, and the
        original is recorded. Runs that have begun keep the listeners they began with.
        """
        listeners = self._run_code.log_listeners
        listeners.append(listener)

        def remove() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return remove

    async def run_code(
        self,
        source: str,
        *,
        description: str = DEFAULT_DESCRIPTION,
        tools: Sequence[str] | None = None,
        abort: AbortSignal | None = None,
        on_log: Callable[[str], None] | None = None,
        on_progress: ProgressListener | None = None,
        **limits: float | None,
    ) -> RunOutcome:
        """Run one program and return how it ended.

        Returns only when nothing of the run is left: worker, calls and events are settled.
        Cancelling this call kills the worker; its calls are stopped and awaited first.

        Args:
            source: The program: the body of an async function.
            description: What it is for, in a few words.
            tools: Names of the tools it may call; all of the registry's by default.
            abort: A way to end the run from outside; it then settles as `abort`.
            on_log: Gets printed text as it arrives, in pieces.
            on_progress: Gets what the program says of its progress: done, total, note.
            **limits: Bounds of this run by name (`wall_seconds=5`); they can only tighten the settings.

        Raises:
            SettingsError: An argument or a limit is not valid; nothing was started.
            ServiceBusyError: Too many runs are waiting already.
            ServiceClosedError: The service was closed.
            SandboxUnavailableError: No worker could be started.
        """
        if self._closed:
            raise ServiceClosedError("the service is closed")
        if type(source) is not str:
            raise SettingsError(f"the program must be a str, not {type(source).__name__}")
        if type(description) is not str or not description.strip():
            raise SettingsError("description must say in a few words what the program is for")
        self._sandbox.rouse()
        try:
            run_limits = self._limits.tightened(**limits)
        except LimitError as error:
            raise translate(error) from None
        request = RunRequest(
            f"run-{secrets.token_hex(8)}",
            self._offer(tools),
            run_limits,
            Stop(),
            on_progress=on_progress,
            on_log=on_log,
        )
        self._stops[request.run_id] = request.stop
        self._run_code.expect(request)
        began = trio.current_time()
        try:
            result = await self._dispatch_run(request, {"code": source, "description": description}, abort)
        finally:
            self._run_code.forget(request)
            self._forget(request.run_id)
        if request.error is not None:
            raise translate(request.error) from request.error
        return run_outcome(
            request.run_id,
            request.outcome,
            result,
            calls=[] if request.bridge is None else request.bridge.records,
            isolation=self.isolation,
            duration_ms=(trio.current_time() - began) * 1000,
            masker=self._masker,
        )

    async def _dispatch_run(
        self, request: RunRequest, arguments: dict[str, str], abort: AbortSignal | None
    ) -> ToolResult:
        # Cancelled already: a short program could be over before anybody noticed.
        await trio.lowlevel.checkpoint_if_cancelled()
        turn = Turn(self._sink, request.run_id, RUN_CODE, arguments)
        dispatch = self._registry.begin(
            RUN_CODE,
            arguments,
            call_id=request.run_id,
            session=self._session,
            abort=abort,
            run_id=request.run_id,
            transport=self._run_code.bound,
        )
        request.token = dispatch.token
        result: ToolResult | None = None
        request.on_accepted = lambda: self._accepted(turn, request)
        policies = self._registry.policies(None)
        if policies.before or policies.around:
            # They may take their time, or write events of their own.
            turn.begin()
        else:
            self._run_code.start(request, arguments["code"])
        try:
            await dispatch.prepare()
            await dispatch.execute()
            turn.begin()
            result = await dispatch.finish()
            turn.annotate(dispatch, result)
        finally:
            turn.end(result)
        if request.stop.requested:
            # When that was a cancellation, it goes on from here.
            await trio.lowlevel.checkpoint_if_cancelled()
        return result

    @staticmethod
    def _accepted(turn: Turn, request: RunRequest) -> None:
        """Do what need not be done before the program is sent, while its worker gets going."""
        try:
            turn.begin()
        except Exception as error:  # noqa: BLE001  # what it is, `begin` says again when the run has settled
            request.stop.request(f"its turn could not be recorded: {error}")

    async def call(
        self,
        name: str,
        arguments: Any,
        *,
        abort: AbortSignal | None = None,
        on_progress: ProgressListener | None = None,
        provenance: Provenance = "direct",
    ) -> ToolResult:
        """Call one tool directly, through the same pipeline as a program's calls.

        Args:
            name: The tool's name.
            arguments: A lossless JSON object.
            abort: A way to stop the call; it then fails as aborted.
            on_progress: Gets what the tool says of its progress: done, total, note.
            provenance: Which route the call came by, for policies.

        Raises:
            ServiceClosedError: The service was closed.
        """
        if self._closed:
            raise ServiceClosedError("the service is closed")
        call_id = f"call-{secrets.token_hex(8)}"
        turn = Turn(self._sink, call_id, name, arguments)
        dispatch = self._registry.begin(
            name,
            arguments,
            call_id=call_id,
            session=self._session,
            abort=abort,
            progress=on_progress,
            provenance=provenance,
            grace_seconds=self._settings.grace_seconds,
        )
        result: ToolResult | None = None
        turn.begin()
        try:
            await dispatch.prepare()
            await dispatch.execute()
            result = await dispatch.finish()
            turn.annotate(dispatch, result)
        finally:
            turn.end(result)
        return result

    async def batch(
        self,
        calls: Iterable[ToolCall] | AsyncIterable[ToolCall],
        *,
        max_parallel: int | None = None,
        on_result: Callable[[BatchResult], object] | None = None,
        abort: AbortSignal | None = None,
    ) -> list[BatchResult]:
        """Make many calls without a program, through the same pipeline.

        Calls start in order; parallel-safe ones overlap, an exclusive one runs alone.

        Args:
            calls: The calls; taken as places become free, so they may be endless.
            max_parallel: Parallel-safe calls at the same time; by default `max_parallel_sub_calls`.
            on_result: Gets each result in input order as soon as it is known. With it, nothing is
                collected, and the returned list is empty.
            abort: Stops running calls and starts no more; the rest is recorded as not started.

        Returns:
            The results in input order, without `on_result`.

        Raises:
            ServiceClosedError: The service was closed.
            SettingsError: `max_parallel` is not a whole number of at least 1.
        """
        if self._closed:
            raise ServiceClosedError("the service is closed")
        parallel = self._settings.max_parallel_sub_calls if max_parallel is None else max_parallel
        if type(parallel) is not int or parallel < 1:
            raise SettingsError(f"max_parallel must be a whole number of at least 1, not {max_parallel!r}")
        results: list[BatchResult] = []
        from codemode.batch import run_batch  # noqa: PLC0415  # most services never need it

        await run_batch(
            self._registry,
            calls,
            sink=self._sink,
            max_parallel=parallel,
            on_result=results.append if on_result is None else on_result,
            abort=abort,
            session=self._session,
        )
        return results

    async def check(self, source: str, *, tools: Sequence[str] | None = None) -> Failure | None:
        """Judge a program without running it: its syntax, and whatever in it is bound to fail.

        Args:
            source: The program.
            tools: Names of the tools it would have; all of the registry's by default.

        Returns:
            What `run_code` would fail with before the first statement, or None when it would start.

        Raises:
            SettingsError: An argument is not valid.
            ServiceBusyError: Too many runs are waiting already.
            ServiceClosedError: The service was closed.
            SandboxUnavailableError: No worker could be started.
        """
        if self._closed:
            raise ServiceClosedError("the service is closed")
        if type(source) is not str:
            raise SettingsError(f"the program must be a str, not {type(source).__name__}")
        offered = self._offer(tools)
        judge = not self._registry.policies(None).around
        from codemode.check import check_program  # noqa: PLC0415  # most services never need it

        try:
            outcome = await check_program(self._sandbox, source, offered, self._limits, judge_arguments=judge)
        except SandboxError as error:
            raise translate(error) from error
        return outcome.failure

    def prompt(self, *, tools: Sequence[str] | None = None, max_bytes: int | None = None) -> str:
        """Return what a model is to be told about `run_code` and the tools.

        Args:
            tools: Names of the tools a program may call; all of the registry's by default.
            max_bytes: See `codemode.prompt.render_prompt`, whose default it has.

        Raises:
            SettingsError: There is no such tool.
        """
        from codemode.prompt import PROMPT_BYTES, render_prompt  # noqa: PLC0415  # programs run without it

        limit = PROMPT_BYTES if max_bytes is None else max_bytes
        return render_prompt(self._offer(tools).definitions, self._settings, max_bytes=limit)

    def _offer(self, tools: Sequence[str] | None) -> OfferedTools:
        """Return the tools of these names, by default all; the same object as long as they stay the same."""
        view = self._registry.policies(None).view
        wanted = None if tools is None else tuple(sorted(set(tools)))
        if self._offered is not None and self._offered[0] is view and self._offered[1] == wanted:
            return self._offered[2]
        unknown = [name for name in wanted or () if name not in view]
        if unknown:
            raise SettingsError(f"unknown tool {unknown[0]!r}; the tools are: {', '.join(view) or 'none'}")
        offered = OfferedTools(view[name].definition for name in (view if wanted is None else wanted))
        self._offered = (view, wanted, offered)
        return offered

    def _forget(self, run_id: str) -> None:
        del self._stops[run_id]
        if self._quiet is not None and not self._stops:
            self._quiet.set()

    async def close(self) -> None:
        """Stop what runs and wait until it is gone. `open_service` calls it at its end."""
        self._closed = True
        with trio.CancelScope(shield=True):
            if self._stops:
                self._quiet = trio.Event()
                for stop in self._stops.values():
                    stop.request(DISPOSED)
                await self._quiet.wait()


@contextlib.asynccontextmanager
async def open_service(
    registry: ToolRegistry,
    *,
    settings: Settings | None = None,
    session_log: SessionLog | None = None,
    on_event: EventListener | None = None,
    spill: SpillStore | None = None,
    masker: SecretMasker | None = None,
    projection: ProjectionPolicy = DEFAULT_POLICY,
) -> AsyncIterator[CodeService]:
    """Open a service that exposes the registry's tools, and nothing else, to programs.

    Args:
        registry: The tools.
        settings: Limits and isolation; the defaults are safe.
        session_log: Where events are kept. The caller opens and closes it.
        on_event: Gets every event as it is recorded, also without a log.
        spill: Where texts longer than `max_inline_bytes` are kept whole; without it they are shown
            and recorded whole. It needs a session log, whose id is whose texts they are.
        masker: Hides configured secrets in events, logs, errors, receipts and shown content. Programs
            and results keep them: for those see `tool_bindings.redaction.redact_results`.
        projection: What events and receipts show of the annotations of results.

    Raises:
        SandboxUnavailableError: This machine cannot run programs as the settings ask.
        SettingsError: The caller is not a trio task.
    """
    _require_trio()
    settings = settings or Settings()
    sink = EventSink(session_log, on_event, masker, projection)
    try:
        async with open_sandbox(settings.sandbox_settings()) as sandbox:
            service = CodeService(registry, sandbox, settings, sink, session_log, masker)
            with installed(registry, service.on_dispatch_log, spill, settings.max_inline_bytes):
                try:
                    yield service
                finally:
                    await service.close()
    except SandboxError as error:
        raise translate(error) from error


def _require_trio() -> None:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        raise SettingsError(
            "open_service needs trio: start your program with trio.run(main); inside asyncio,"
            " `await asyncio.to_thread(trio.run, main)` runs one beside it"
        ) from None
