"""The service: runs programs and direct calls against one registry, and records what happened.

Knows: turns, runs, how the parts are joined. Does not know: how each part does its work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import trio

from codemode.bridge import Bridge
from codemode.errors import ServiceClosedError, SettingsError, translate
from codemode.events import EventListener, EventSink
from codemode.hints import hints_for
from codemode.run_code import CODE_RUN_FAILED, RUN_FAILED_NAME, RunOutcome, active_walls, model_content
from codemode.settings import Settings
from sandbox.errors import SandboxError
from sandbox.limits import LimitError
from sandbox.supervisor import Sandbox, Stop, open_sandbox
from sandbox.vocabulary import Outcome, Program
from tool_bindings import AbortSignal, ToolRegistry

if TYPE_CHECKING:
    from codemode.session_log import SessionLog
    from tool_bindings.results import ToolResult

DEFAULT_DESCRIPTION = "run a program"
DISPOSED = "runtime disposed"


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceStatistics:
    """A service at one moment.

    Attributes:
        running: Runs that have a worker.
        queued: Runs that wait for one.
        completed: Runs that have ended.
    """

    running: int
    queued: int
    completed: int


class CodeService:
    """Runs programs. Made by `open_service`; nobody else constructs it."""

    def __init__(
        self,
        registry: ToolRegistry,
        sandbox: Sandbox,
        settings: Settings,
        sink: EventSink,
        session_log: SessionLog | None,
    ) -> None:
        self._registry = registry
        self._sandbox = sandbox
        self._settings = settings
        self._limits = settings.limits()
        self._sink = sink
        self._session_log = session_log
        self._stops: dict[str, Stop] = {}
        self._quiet: trio.Event | None = None
        self._closed = False

    @property
    def isolation(self) -> tuple[str, ...]:
        """Names of the walls that stand on this machine, as probed when the service opened."""
        return active_walls(self._sandbox.isolation)

    def statistics(self) -> ServiceStatistics:
        """Return how many runs are where."""
        numbers = self._sandbox.statistics()
        return ServiceStatistics(numbers.running, numbers.queued, numbers.completed)

    def stop(self, run_id: str, reason: str = "stopped") -> bool:
        """End a run; it settles as `abort`. Returns whether there was such a run."""
        stop = self._stops.get(run_id)
        if stop is not None:
            stop.request(reason)
        return stop is not None

    async def run_code(
        self,
        source: str,
        *,
        description: str = DEFAULT_DESCRIPTION,
        tools: Sequence[str] | None = None,
        abort: AbortSignal | None = None,
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
        try:
            run_limits = self._limits.tightened(**limits)
        except LimitError as error:
            raise translate(error) from None
        names = self._visible(tools)
        run_id = f"run-{secrets.token_hex(8)}"
        stop = self._stops[run_id] = Stop()
        bridge = Bridge(
            self._registry,
            names,
            call_id=run_id,
            run_id=run_id,
            token=None,
            sink=self._sink,
            max_parallel=self._settings.max_parallel_sub_calls,
            session=self._session_log,
        )
        program = Program(source, (bridge.namespace(),), hints_for(names))
        turn = _Turn(self._sink, run_id, "run_code", {"code": source, "description": description})
        unlink = _link(abort, stop)
        began = trio.current_time()
        try:
            turn.begin()
            try:
                outcome = await self._sandbox.run(program, limits=run_limits, stop=stop, on_log=None)
            except SandboxError as error:
                raise turn.broken(translate(error)) from error
            except BaseException:
                turn.end_interrupted()
                raise
            finally:
                bridge.close()
            content = model_content(outcome)
            turn.end(content, is_error=outcome.failure is not None, error=_recorded_error(outcome))
        finally:
            unlink()
            self._forget(run_id)
        return RunOutcome(
            run_id=run_id,
            logs=list(outcome.logs),
            result=outcome.value,
            failure=outcome.failure,
            calls=bridge.records,
            content=content,
            isolation=self.isolation,
            duration_ms=(trio.current_time() - began) * 1000,
            hint=outcome.hint,
        )

    async def call(self, name: str, arguments: Any, *, abort: AbortSignal | None = None) -> ToolResult:
        """Call one tool directly, through the same pipeline as a program's calls.

        Args:
            name: The tool's name.
            arguments: A lossless JSON object.
            abort: A way to stop the call; it then fails as aborted.

        Raises:
            ServiceClosedError: The service was closed.
        """
        if self._closed:
            raise ServiceClosedError("the service is closed")
        call_id = f"call-{secrets.token_hex(8)}"
        turn = _Turn(self._sink, call_id, name, arguments)
        turn.begin()
        try:
            result = await self._registry.dispatch(
                name, arguments, call_id=call_id, session=self._session_log, abort=abort or AbortSignal()
            )
        except BaseException:
            turn.end_interrupted()
            raise
        error = None
        if result.is_error and result.error.info is not None:
            error = {"name": result.error.info.name, "code": result.error.info.code}
        turn.end(list(result.content), is_error=result.is_error, error=error, meta=result.meta)
        return result

    def _visible(self, tools: Sequence[str] | None) -> list[str]:
        names = sorted(self._registry.names())
        if tools is None:
            return names
        unknown = sorted(set(tools) - set(names))
        if unknown:
            raise SettingsError(f"unknown tool {unknown[0]!r}; the tools are: {', '.join(names) or 'none'}")
        return sorted(set(tools))

    def _forget(self, run_id: str) -> None:
        del self._stops[run_id]
        if self._quiet is not None and not self._stops:
            self._quiet.set()

    async def _close(self) -> None:
        """Stop what runs and wait until it is gone."""
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
) -> AsyncIterator[CodeService]:
    """Open a service that exposes the registry's tools, and nothing else, to programs.

    Args:
        registry: The tools.
        settings: Limits and isolation; the defaults are safe.
        session_log: Where events are kept. The caller opens and closes it.
        on_event: Gets every event as it is recorded, also without a log.

    Raises:
        SandboxUnavailableError: This machine cannot run programs as the settings ask.
    """
    settings = settings or Settings()
    sink = EventSink(session_log, on_event)
    try:
        async with open_sandbox(settings.sandbox_settings()) as sandbox:
            service = CodeService(registry, sandbox, settings, sink, session_log)
            try:
                yield service
            finally:
                await service._close()
    except SandboxError as error:
        raise translate(error) from error


class _Turn:
    """The events around one direct call: a synthetic turn of one step that holds one tool call."""

    def __init__(self, sink: EventSink, call_id: str, name: str, arguments: Any) -> None:
        self._sink = sink
        self._call_id = call_id
        self._name = name
        self._arguments = arguments
        self._step: dict[str, int] = {}
        self._call_event = 0

    def begin(self) -> None:
        """Open turn and step, and record the call."""
        if not self._sink.wanted:
            return
        turn = self._sink.next_turn()
        self._step = {"turn": turn, "step": 0}
        try:
            arguments = json.dumps(self._arguments)
        except (TypeError, ValueError, RecursionError):
            # What is not JSON fails in the pipeline; the log still says what was tried.
            arguments = json.dumps(None)
        self._sink.emit("turn/start", {"turn": turn})
        self._sink.emit("step/start", self._step)
        call = {"type": "tool-call", "id": self._call_id, "name": self._name, "arguments": arguments}
        message = {"id": f"{self._call_id}:request", "role": "assistant", "content": [call]}
        self._sink.emit("assistant/message", {**self._step, "message": message}, surface=True)
        self._call_event = self._sink.emit(
            "tool/call", {**self._step, "callId": self._call_id, "name": self._name, "arguments": arguments}
        )

    def end(
        self,
        content: list[dict[str, Any]],
        *,
        is_error: bool,
        error: dict[str, str] | None = None,
        meta: Any = None,
        reason: dict[str, Any] | None = None,
    ) -> None:
        """Record the result, and close step and turn."""
        if not self._sink.wanted:
            return
        block = {"type": "tool-result", "toolCallId": self._call_id, "content": content, "isError": is_error}
        message = {
            "id": f"{self._call_id}:result",
            "role": "user",
            "source": {"kind": "tool", "callId": self._call_id},
            "content": [block],
        }
        data: dict[str, Any] = {**self._step, "message": message}
        if error is not None:
            data["error"] = error
        if meta is not None:
            data["meta"] = meta
        self._sink.emit("tool/result", data, surface=True, sources=[self._call_event])
        self._sink.emit("step/end", self._step)
        self._sink.emit("turn/end", {"turn": self._step["turn"], "reason": reason or {"kind": "completed"}})

    def end_interrupted(self) -> None:
        """Record that the call was cancelled from outside."""
        self.end(
            [{"type": "text", "text": "Error: tool call aborted"}],
            is_error=True,
            error={"name": "AbortError", "code": "ABORTED"},
            reason={"kind": "aborted", "reason": {"kind": "user"}},
        )

    def broken(self, error: Exception) -> Exception:
        """Record that the service could not run the call, and return the error to raise."""
        self.end([{"type": "text", "text": f"Error: {error}"}], is_error=True)
        return error


def _recorded_error(outcome: Outcome) -> dict[str, str] | None:
    return None if outcome.failure is None else {"name": RUN_FAILED_NAME, "code": CODE_RUN_FAILED}


def _link(abort: AbortSignal | None, stop: Stop) -> Any:
    """Let the caller's signal stop the run; returns what takes the link back."""
    if abort is None:
        return lambda: None
    return abort.add_callback(lambda: stop.request("aborted" if abort.reason is None else str(abort.reason)))
