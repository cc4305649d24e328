"""The MCP server: what each request of a client does.

Knows: MCP requests, the service. Does not know: transports. Loading it loads the MCP SDK.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
import trio
from mcp import MCPError
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp_types import INVALID_PARAMS

from codemode.errors import CodeModeError
from codemode.server.answers import (
    RUN_OUTPUT,
    RUN_PARAMETERS,
    advertised_output,
    refusal,
    run_answer,
    tool_answer,
)
from codemode.server.clients import ClientBusyError, ClientKey, Clients, RunLogs
from sandbox.nursery import open_background_nursery
from sandbox.values import thaw
from tool_bindings.registry import RUN_CODE
from tool_bindings.stubs import render_stubs
from tool_bindings.validation import validate_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession

    from codemode.server.clients import Bounds, Client, Journal
    from codemode.service import CodeService
    from tool_bindings.definition import ToolDefinition
    from tool_bindings.registry import ToolRegistry

__all__ = ["CodeServer", "never_gone", "one_client"]

STUBS_URI: Final = "codemode://stubs"
_RUNS_URI: Final = "codemode://runs/"
_EVENTS: Final = "/events"
_INSTRUCTIONS: Final = (
    "Call run_code with one Python program that calls the tools it describes, instead of calling tools one by"
    " one; return only what you need. The resource codemode://stubs declares all tools, and"
    " codemode://runs/ID/events is the event log of a run."
)
_LISTENERS_KEPT: Final = 1000
_TELL_SECONDS: Final = 5.0
"""A client that does not take a notification for so long is not told any more."""


def one_client(_context: ServerRequestContext[Any, Any]) -> ClientKey:
    """Tell clients apart where there is one."""
    return ClientKey("stdio")


def never_gone(_context: ServerRequestContext[Any, Any]) -> trio.Event | None:
    """Say that a client which leaves takes the whole connection with it."""
    return None


class CodeServer:
    """Answers MCP requests with one service.

    Args:
        service: Runs programs and calls tools. Its `on_event` must reach `journal`.
        registry: The service's tools.
        journal: Collects the events of runs.
        bounds: How much one client may ask for at a time.
        allowed: Names of the tools to offer; None for all, also those registered later.
        expose_tools: Whether the tools are offered one by one beside `run_code`.
        key_of: Tells clients apart.
        gone_of: Gives an event that is set when nobody waits for a request's answer any more.
    """

    def __init__(
        self,
        service: CodeService,
        registry: ToolRegistry,
        journal: Journal,
        *,
        bounds: Bounds,
        allowed: Iterable[str] | None = None,
        expose_tools: bool = False,
        key_of: Callable[[ServerRequestContext[Any, Any]], ClientKey] = one_client,
        gone_of: Callable[[ServerRequestContext[Any, Any]], trio.Event | None] = never_gone,
    ) -> None:
        self._service = service
        self._registry = registry
        self._journal = journal
        self._allowed = None if allowed is None else frozenset(allowed)
        self._expose_tools = expose_tools
        self._key_of = key_of
        self._gone_of = gone_of
        self._clients = Clients(bounds)
        self._logs = RunLogs()
        self._description: str | None = None
        self._sessions: dict[ClientKey, ServerSession] = {}
        self.changed = trio.Event()
        """Set when the tools have changed; see `announce_changes`."""
        self.mcp: Server[Any] = Server(
            "codemode",
            version=importlib.metadata.version("codemode"),
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    def initialization(self) -> InitializationOptions:
        """Return what a client is told when it connects."""
        return self.mcp.create_initialization_options(NotificationOptions(tools_changed=True))

    # ---- tools

    def _definitions(self) -> list[ToolDefinition]:
        return [
            definition
            for definition in self._registry.definitions()
            if self._allowed is None or definition.name in self._allowed
        ]

    def _described(self) -> str:
        if self._description is None:
            names = [definition.name for definition in self._definitions()]
            self._description = _without_surrogates(self._service.prompt(tools=names))
        return self._description

    async def _list_tools(
        self, context: ServerRequestContext[Any, Any], _params: Any
    ) -> types.ListToolsResult:
        self._remember(context)
        tools = [
            types.Tool(
                name=RUN_CODE,
                title="Run a program",
                description=self._described(),
                input_schema=RUN_PARAMETERS,
                output_schema=RUN_OUTPUT,
            )
        ]
        if self._expose_tools:
            tools.extend(map(_advertised, self._definitions()))
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client = self._clients.of(self._key_of(context))
        gone = self._gone_of(context)
        answer = refusal("the client has closed the request")
        with trio.CancelScope() as asked:
            try:
                async with open_background_nursery() as nursery:
                    if gone is not None:
                        nursery.start_soon(_cancel_when, gone, asked)
                    async with client.place():
                        answer = await self._answer(context, client, params.name, params.arguments or {})
            except (ClientBusyError, CodeModeError) as error:
                answer = refusal(str(error))
        return types.CallToolResult.model_validate(_without_surrogates(answer))

    async def _answer(
        self, context: ServerRequestContext[Any, Any], client: Client, name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if name == RUN_CODE:
            return await self._run(context, arguments)
        return await self._call(client, name, arguments)

    async def _run(
        self, context: ServerRequestContext[Any, Any], arguments: dict[str, Any]
    ) -> dict[str, Any]:
        wrong = validate_value(RUN_PARAMETERS, arguments, "")
        if not wrong and not arguments["description"].strip():
            wrong = ["description must say in a few words what the program is for"]
        if wrong:
            return refusal(f"invalid arguments: {'; '.join(wrong)}")
        visible = None if self._allowed is None else [definition.name for definition in self._definitions()]
        progress = _Progress()
        async with open_background_nursery() as nursery:
            nursery.start_soon(progress.forward, context.session)
            outcome = await self._service.run_code(
                arguments["code"],
                description=arguments["description"],
                tools=visible,
                on_progress=progress.note,
            )
            await progress.finish()
        self._logs.keep(self._key_of(context), outcome.run_id, self._journal.take(outcome.run_id))
        return run_answer(outcome)

    async def _call(self, client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        definition = self._registry.get(name)
        offered = self._expose_tools and (self._allowed is None or name in self._allowed)
        if definition is None or not offered:
            raise MCPError(
                code=INVALID_PARAMS, message=f"unknown tool {name!r}; tools/list lists what there is"
            )
        exclusive = self._registry.execution_mode(name, arguments) == "exclusive"
        async with client.turn(exclusive=exclusive):
            return tool_answer(definition, await self._service.call(name, arguments, provenance="mcp"))

    # ---- resources

    async def _list_resources(
        self, context: ServerRequestContext[Any, Any], _params: Any
    ) -> types.ListResourcesResult:
        resources = [
            types.Resource(
                uri=STUBS_URI,
                name="stubs",
                description="Python declarations of all tools a program can call.",
                mime_type="text/x-python",
            )
        ]
        resources.extend(
            types.Resource(
                uri=f"{_RUNS_URI}{run_id}{_EVENTS}",
                name=run_id,
                description="Event log of one of your last runs, oldest first, as JSON Lines.",
                mime_type="application/jsonl",
            )
            for run_id in self._logs.of(self._key_of(context))
        )
        return types.ListResourcesResult(resources=resources)

    async def _read_resource(
        self, context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri == STUBS_URI:
            text: str | None = render_stubs(self._definitions())
            kind = "text/x-python"
        else:
            run_id = uri.removeprefix(_RUNS_URI).removesuffix(_EVENTS)
            text = self._logs.of(self._key_of(context)).get(run_id)
            kind = "application/jsonl"
        if text is None or (uri != STUBS_URI and uri != f"{_RUNS_URI}{run_id}{_EVENTS}"):
            raise MCPError(
                code=INVALID_PARAMS, message=f"no such resource {uri!r}; resources/list lists yours"
            )
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=_without_surrogates(text))
        return types.ReadResourceResult(contents=[contents])

    # ---- changes of the tools

    def _remember(self, context: ServerRequestContext[Any, Any]) -> None:
        """Remember who has seen the list, to tell it of changes."""
        key = self._key_of(context)
        self._sessions.pop(key, None)
        self._sessions[key] = context.session
        if len(self._sessions) > _LISTENERS_KEPT:
            del self._sessions[next(iter(self._sessions))]

    def on_tools_changed(self) -> None:
        """Forget the description and wake `announce_changes`. For `ToolRegistry.on_change`."""
        self._description = None
        self.changed.set()

    async def announce_changes(self) -> None:
        """Tell every client that has seen the list when it has changed. Runs until cancelled."""
        while True:
            await self.changed.wait()
            # A server's new list is many changes in a row.
            await trio.lowlevel.checkpoint()
            self.changed = trio.Event()
            for key, session in list(self._sessions.items()):
                with trio.move_on_after(_TELL_SECONDS) as telling:
                    try:
                        await session.send_tool_list_changed()
                    except Exception:  # noqa: BLE001  # the client has gone, in whichever way
                        self._sessions.pop(key, None)
                if telling.cancelled_caught:
                    self._sessions.pop(key, None)


def _advertised(definition: ToolDefinition) -> types.Tool:
    return types.Tool(
        name=definition.name,
        description=_without_surrogates(definition.description),
        input_schema=_without_surrogates(thaw(definition.parameters)),  # type: ignore[arg-type]  # JSON
        output_schema=_without_surrogates(advertised_output(definition)),
    )


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class _Progress:
    """Takes a program's progress reports at its pace, and sends the latest at the client's."""

    def __init__(self) -> None:
        self._latest: tuple[float, float | None, str | None] | None = None
        self._news = trio.Event()
        self._is_over = False
        self._all_sent = trio.Event()
        self._sent = -1.0

    def note(self, done: float, total: float | None, note: str | None) -> None:
        self._latest = (done, total, note)
        self._news.set()

    async def forward(self, session: ServerSession) -> None:
        """Send until `finish`. Numbers that do not rise are left out, as the protocol wants."""
        while not self._is_over:
            await self._news.wait()
            self._news = trio.Event()
            if self._latest is None or self._latest[0] <= self._sent:
                continue
            self._sent, total, note = self._latest
            shown = None if note is None else _without_surrogates(note)
            await session.report_progress(self._sent, total, shown)
        self._all_sent.set()

    async def finish(self) -> None:
        """Wait until the last report is sent, so that it comes before the result; not for ever."""
        self._is_over = True
        self._news.set()
        with trio.move_on_after(_TELL_SECONDS):
            await self._all_sent.wait()


def _without_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which no UTF-8 can carry, by U+FFFD."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(child) for key, child in value.items()}
    return [_without_surrogates(child) for child in value] if isinstance(value, list) else value
