"""`run_code` as a tool: its definition, and the body that runs one program.

It goes through the same pipeline as every tool, so a policy can read a program before it runs, and
judge, replace or block what it gave.

Knows: one run, from arguments to value or failure.
Does not know: turns, who asked, processes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import trio

from codemode.bridge import Bridge
from codemode.catalogues import Catalogues
from codemode.helpers import Helpers
from codemode.log_shaping import LogShaper
from codemode.outcome import failure_text, success_content
from sandbox.errors import SandboxError
from sandbox.nursery import open_background_nursery
from sandbox.vocabulary import ABSENT, Namespace, Outcome, Program
from tool_bindings.binding import BoundTool
from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition, ToolRunContext
from tool_bindings.errors import HarnessError
from tool_bindings.registry import RUN_CODE, ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codemode.events import EventSink
    from codemode.helpers import ProgressListener
    from codemode.log_shaping import LogListener as DispatchLogListener
    from codemode.namespace import OfferedTools
    from sandbox.limits import Limits
    from sandbox.run import LogListener
    from sandbox.supervisor import Sandbox, Started, Stop
    from tool_bindings.caller import DispatchToken
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.registry import Scope
    from tool_bindings.results import ToolResult

_PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "description": "A Python program: the body of an async function. Call tools with"
            " `await tools.name(key=value)`, print what you want to read, `return` a JSON value.",
        },
        "description": {
            "type": "string",
            "description": "What the program is for, in 5 to 10 words.",
        },
    },
    "required": ["code", "description"],
}
_OUTPUT: Final = {
    "type": "object",
    "properties": {"logs": {"type": "array", "items": {"type": "string"}}, "result": {}},
    "required": ["logs"],
    "additionalProperties": False,
}


class CodeRunFailedError(HarnessError):
    """The program's run failed. The message has kind, reason and captured output."""

    default_code = "CODE_RUN_FAILED"


@dataclasses.dataclass(slots=True)
class RunRequest:
    """What one run is given beside its arguments, and what it leaves beside its result."""

    run_id: str
    tools: OfferedTools
    limits: Limits
    stop: Stop
    on_progress: ProgressListener | None = None
    on_log: LogListener | None = None
    on_accepted: Callable[[], object] | None = None
    """Called when the program is on its way, or has to wait; not at all for one that is never sent."""
    scope: Scope | None = None
    token: DispatchToken | None = None
    bridge: Bridge | None = None
    program: Program | None = None
    started: Started | None = None
    """The program under way already; see `RunCodeTool.start`."""
    outcome: Outcome | None = None
    error: SandboxError | None = None
    """Why no program was run, when that is the host's fault."""


class RunCodeTool:
    """The tool, and the runs it has been asked for.

    Args:
        registry: What programs call through.
        sandbox: Where programs run.
        sink: Where nested calls' events go.
        max_parallel: See `Settings.max_parallel_sub_calls`.
        grace_seconds: See `Settings.grace_seconds`.
        session: What tools see as their session.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        sandbox: Sandbox,
        sink: EventSink,
        *,
        max_parallel: int,
        grace_seconds: float,
        session: object,
    ) -> None:
        self._registry = registry
        self._sandbox = sandbox
        self._sink = sink
        self._max_parallel = max_parallel
        self._grace_seconds = grace_seconds
        self._session = session
        self._requests: dict[str, RunRequest] = {}
        self._catalogues = Catalogues()
        self._known_helpers: tuple[OfferedTools, Namespace] | None = None
        self.log_listeners: list[DispatchLogListener] = []
        """Shape what the log keeps of nested calls; see `log_shaping`."""
        self.bound = BoundTool(
            ToolDefinition(
                name=RUN_CODE,
                description="Run one Python program that calls tools, instead of calling them one by one.",
                parameters=_PARAMETERS,
                output=Output(schema=_OUTPUT, render=_render),
                execute=self._execute,
                finalize_content=self._with_hint,
            ),
            is_transport=True,
        )

    def expect(self, request: RunRequest) -> None:
        """Take note of a run whose dispatch is about to begin under its id."""
        self._requests[request.run_id] = request

    def forget(self, request: RunRequest) -> None:
        """Drop a run that has ended."""
        del self._requests[request.run_id]
        if request.started is not None:
            self._sandbox.give_up(request.started)

    def start(self, request: RunRequest, source: str) -> None:
        """Send a program to a worker that is free at once, before its dispatch goes through the pipeline.

        Only where nobody is asked on that way. What the program says is heard when the dispatch gets to it;
        if it never does, the program is given up, and nothing of it has happened.
        """
        if not self.log_listeners:
            request.program = self._program(source, request, self._bridge(request, None))
            request.started = self._sandbox.start(request.program, request.limits)

    async def _execute(self, arguments: Mapping[str, Any], context: ToolRunContext) -> Any:
        if not arguments["description"].strip():
            raise ValueError("description must say in a few words what the program is for")
        request = self._requests[context.call_id]
        # An abort or a cancellation ends the run through `stop`, so that its logs and receipt are kept.
        unlink = context.abort.add_callback(lambda: request.stop.request(_reason(context.abort.reason)))
        try:
            if await self._is_over_at_once(request):
                outcome = await self._run(arguments["code"], request, context)
            else:
                async with open_background_nursery() as nursery:
                    nursery.start_soon(_stop_when_cancelled, request.stop)
                    try:
                        outcome = await self._run(arguments["code"], request, context)
                    finally:
                        # A cancellation has ended the run by now. It goes on when the result is recorded.
                        nursery.cancel_scope.shield = True
        finally:
            unlink()
        if outcome.failure is not None:
            calls = [] if request.bridge is None else request.bridge.records
            raise CodeRunFailedError(failure_text(outcome.failure, outcome.logs, calls))
        value: dict[str, Any] = {"logs": list(outcome.logs)}
        if outcome.value is not ABSENT:
            value["result"] = outcome.value
        return value

    def _with_hint(self, dispatch: Dispatch, result: ToolResult) -> list[Any] | None:
        """Tell the model, too, what is odd about a run that ended well."""
        request = self._requests.get(dispatch.call_id)
        outcome = None if request is None else request.outcome
        if result.is_error or outcome is None or outcome.hint is None:
            return None
        return [*result.content, text_block(f"Hint: {outcome.hint}")]

    async def _is_over_at_once(self, request: RunRequest) -> bool:
        """Hear what a program that was started says within a moment; return whether it is over by then."""
        return request.started is not None and await self._sandbox.hear(
            request.started, stop=request.stop, on_log=request.on_log, on_accepted=request.on_accepted
        )

    async def _run(self, source: str, request: RunRequest, context: ToolRunContext) -> Outcome:
        with trio.CancelScope(shield=True):
            if self.log_listeners:
                async with trio.open_nursery() as nursery:
                    shaper = LogShaper(
                        tuple(self.log_listeners),
                        self._sink,
                        nursery,
                        max_waiting=self._max_parallel,
                        session=self._session,
                    )
                    bridge = await self._run_bridged(source, request, shaper)
            else:
                bridge = await self._run_bridged(source, request, None)
        for message in bridge.additional_contexts():
            context.defer_context(message)
        if request.outcome is None:
            assert request.error is not None, "a run ends with an outcome or with an error"
            raise request.error
        if bridge.concludes_turn and request.outcome.failure is None:
            context.conclude_turn()
        return request.outcome

    async def _run_bridged(self, source: str, request: RunRequest, shaper: LogShaper | None) -> Bridge:
        bridge, program = request.bridge, request.program
        if bridge is None or program is None or program.source != source:
            bridge = self._bridge(request, shaper)
            program = self._program(source, request, bridge)
        try:
            request.outcome = await self._sandbox.run(
                program,
                limits=request.limits,
                stop=request.stop,
                on_log=request.on_log,
                on_accepted=request.on_accepted,
                started=request.started if program is request.program else None,
            )
        except SandboxError as error:
            request.error = error
        finally:
            bridge.close()
        return bridge

    def _program(self, source: str, request: RunRequest, bridge: Bridge) -> Program:
        tools = bridge.namespace(request.tools, source)
        return Program(source, (tools, self._helpers_of(request, tools.name)), request.tools.hints)

    def _helpers_of(self, request: RunRequest, batches: str) -> Namespace:
        """Return what the program sees as `codemode`: of runs nobody listens to mostly the same."""
        known = self._known_helpers
        if known is not None and known[0] is request.tools and request.on_progress is None:
            return known[1]
        helpers = Helpers(request.tools.definitions, request.on_progress, self._catalogues).namespace(batches)
        if request.on_progress is None:
            self._known_helpers = request.tools, helpers
        return helpers

    def _bridge(self, request: RunRequest, shaper: LogShaper | None) -> Bridge:
        assert request.token is not None, "the service sets it before the body runs"
        request.bridge = Bridge(
            self._registry,
            call_id=request.run_id,
            run_id=request.run_id,
            token=request.token,
            sink=self._sink,
            max_parallel=self._max_parallel,
            grace_seconds=self._grace_seconds,
            session=self._session,
            scope=request.scope,
            log_shaper=shaper,
        )
        return request.bridge


def _render(_arguments: Mapping[str, Any], value: Mapping[str, Any]) -> list[dict[str, Any]]:
    return success_content(value["logs"], value.get("result", ABSENT))


async def _stop_when_cancelled(stop: Stop) -> None:
    """Turn a cancellation from outside into a stop: the run itself is shielded until it is quiet."""
    try:
        await trio.sleep_forever()
    finally:
        stop.request("cancelled")


def _reason(reason: object) -> str:
    return "aborted" if reason is None else str(reason)
