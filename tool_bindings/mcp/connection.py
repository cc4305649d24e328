"""One connection to one server: the official SDK's session, with answers kept as they came.

The SDK checks every answer against its own models and validates structured content itself, which would
lose a whole tool list to one odd tool, and a result to one unknown block type. Its session therefore
talks through a dispatcher of ours that keeps the raw answer and hands the session an empty, valid one.
Handshake, versions, cancellation and progress stay the SDK's.

Knows: transports, handshake, two requests. Does not know: registries, reconnecting. Loading it loads
the MCP SDK.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import mcp_types as types
import pydantic_core
import trio
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, REQUEST_TIMEOUT, UNSUPPORTED_PROTOCOL_VERSION

from tool_bindings.mcp.child import open_child
from tool_bindings.mcp.config import HttpServer, McpServerConfig, StdioServer
from tool_bindings.mcp.errors import McpCallError, McpOutcomeUnknownError, McpUnavailableError
from tool_bindings.mcp.naming import clean_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest

    from tool_bindings.definition import ReportProgress
    from tool_bindings.mcp.child import ChildTransport

__all__ = ["Connection", "open_connection"]

MAX_PAGES: Final = 100
"""Pages of one tool list; a server whose list never ends is given up."""
MAX_TOOLS: Final = 1000
"""Tools of one server. Arbitrary: ten times what any known one has."""
CLIENT_NAME: Final = "codemode"
_CONNECT_SECONDS: Final = 30.0
_READ_SECONDS: Final = 300.0
"""A server may hold a stream open without a word for this long."""
_MAX_ERROR_CHARS: Final = 2000
_EMPTY_RESULTS: Final[dict[str, dict[str, Any]]] = {
    "tools/call": {"content": []},
    "tools/list": {"tools": []},
}
"""What the session gets to see instead of the raw answer; valid in every version of the protocol."""
_MODERN_MEMBERS: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Connection:
    """An open connection. Made by `open_connection`."""

    def __init__(
        self,
        config: McpServerConfig,
        session: ClientSession,
        answers: _RawAnswers,
        child: ChildTransport | None,
    ) -> None:
        self._config = config
        self._session = session
        self._answers = answers
        self._child = child

    @property
    def title(self) -> str:
        """The server's own name and version."""
        info = self._session.server_info
        return "unnamed server" if info is None else clean_text(f"{info.name} {info.version}".strip(), 100)

    @property
    def tells_of_changes(self) -> bool:
        """Whether the server said that it announces changes of its tool list."""
        capabilities = self._session.server_capabilities
        return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)

    async def wait_closed(self) -> None:
        """Return when the server has gone."""
        await self._answers.closed.wait()

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return all pages of the server's tool list, as sent.

        Raises:
            McpUnavailableError: The list is not one.
        """
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            try:
                async with self._answers.keeping() as kept:
                    request = types.ListToolsRequest(params=params)
                    await self._session.send_request(
                        request, types.ListToolsResult, self._config.startup_timeout_seconds
                    )
            except MCPError as error:
                raise McpUnavailableError(f"cannot list its tools: {_words(error)}") from error
            page = kept.answer.get("tools")
            if not isinstance(page, list) or not all(isinstance(tool, dict) for tool in page):
                raise McpUnavailableError("its tool list is not an array of objects")
            tools.extend(page)
            if len(tools) > MAX_TOOLS:
                raise McpUnavailableError(f"it lists more than {MAX_TOOLS} tools")
            cursor = kept.answer.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return tools
        raise McpUnavailableError(f"its tool list has more than {MAX_PAGES} pages")

    async def call_tool(
        self, raw_name: str, arguments: Mapping[str, Any], report: ReportProgress | None
    ) -> dict[str, Any]:
        """Call a tool and return the raw answer. Cancelling this tells the server to stop.

        Raises:
            McpCallError: The server refused the call.
            McpUnavailableError: The server knows this session no more.
            McpOutcomeUnknownError: No answer came.
        """
        name, seconds = self._config.name, self._config.tool_call_timeout_seconds
        if self._child is None:
            _check_serializable(raw_name, arguments)

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            assert report is not None, "only passed when somebody listens"
            report(progress, total, None if message is None else clean_text(message, 200))

        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=raw_name, arguments=dict(arguments))
        )
        try:
            async with self._answers.keeping() as kept:
                await self._session.send_request(
                    request,
                    types.CallToolResult,
                    seconds,
                    progress_callback=None if report is None else on_progress,
                )
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise McpOutcomeUnknownError(
                    f"MCP server {name!r} did not answer {raw_name!r} within {seconds:g} s and was told to"
                    " stop; whether the call had an effect is unknown"
                ) from error
            if error.code == CONNECTION_CLOSED:
                raise McpOutcomeUnknownError(
                    f"MCP server {name!r} went away during {raw_name!r}; whether the call had an effect is"
                    f" unknown{await _last_words(self._child)}"
                ) from error
            if error.code == INVALID_REQUEST and "session" in error.error.message.lower():
                # The server was restarted, or gave the session up; only a new handshake helps.
                self._answers.closed.set()
                raise McpUnavailableError(
                    f"MCP server {name!r} has ended the session and did not carry out {raw_name!r};"
                    " it is being reconnected, so try again"
                ) from error
            raise McpCallError(f"MCP server {name!r} refused {raw_name!r}: {_words(error)}") from error
        return kept.answer


def _check_serializable(raw_name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what the SDK's HTTP transport cannot write, since trying would end the connection."""
    try:
        pydantic_core.to_json(arguments)
    except pydantic_core.PydanticSerializationError as error:
        raise McpCallError(
            f"the arguments of {raw_name!r} cannot be sent over HTTP: {error}; send no lone surrogates and"
            " nothing nested more than 200 levels deep. Nothing was sent"
        ) from None


class _Kept:
    """The raw answer to one request."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {}


class _RawAnswers:
    """A dispatcher that keeps raw answers and knows when the other side has gone."""

    def __init__(self, inner: JSONRPCDispatcher[Any]) -> None:
        self._inner = inner
        self._keepers: dict[trio.lowlevel.Task, _Kept] = {}
        self.closed = trio.Event()

    @contextlib.asynccontextmanager
    async def keeping(self) -> AsyncIterator[_Kept]:
        """Keep the answer to the request that the body makes."""
        # The SDK makes a request in the task that asks, so the task tells requests apart.
        task = trio.lowlevel.current_task()
        kept = self._keepers[task] = _Kept()
        try:
            yield kept
        finally:
            del self._keepers[task]

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        answer = await self._inner.send_raw_request(method, params, opts)
        kept = self._keepers.get(trio.lowlevel.current_task())
        if kept is None or method not in _EMPTY_RESULTS:
            return answer
        kept.answer = answer
        return {**_EMPTY_RESULTS[method], **_MODERN_MEMBERS}

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await self._inner.run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self.closed.set()


@contextlib.asynccontextmanager
async def open_connection(
    config: McpServerConfig, on_list_changed: Callable[[], object]
) -> AsyncIterator[Connection]:
    """Connect to a server and shake hands.

    Args:
        config: The server.
        on_list_changed: Called when the server says that its tools have changed.

    Raises:
        McpUnavailableError: It cannot be reached, or does not speak MCP.
    """

    async def on_message(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_list_changed()

    async with contextlib.AsyncExitStack() as stack:
        child: ChildTransport | None = None
        try:
            if isinstance(config.transport, StdioServer):
                child = await stack.enter_async_context(open_child(config.transport))
                reads, writes = child.reads, child.writes
            else:
                reads, writes = await stack.enter_async_context(_open_http(config.transport))
            answers = _RawAnswers(JSONRPCDispatcher(reads, writes))
            session = await stack.enter_async_context(
                ClientSession(
                    dispatcher=answers,
                    message_handler=on_message,
                    client_info=types.Implementation(
                        name=CLIENT_NAME, version=importlib.metadata.version("codemode")
                    ),
                )
            )
            with trio.fail_after(config.startup_timeout_seconds):
                await _shake_hands(session)
        except Exception as error:
            raise McpUnavailableError(f"{_reason(error, config)}{await _last_words(child)}") from error
        yield Connection(config, session, answers, child)


async def _shake_hands(session: ClientSession) -> None:
    try:
        await session.initialize()
    except MCPError as error:
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        # A server that only speaks the protocol without a handshake.
        await session.discover()


@contextlib.asynccontextmanager
async def _open_http(server: HttpServer) -> AsyncIterator[tuple[Any, Any]]:
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as (reads, writes),
    ):
        yield reads, writes


def _reason(error: Exception, config: McpServerConfig) -> str:
    if isinstance(error, McpUnavailableError):
        return str(error)
    if isinstance(error, trio.TooSlowError):
        return f"did not complete the handshake within {config.startup_timeout_seconds:g} s"
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        return "ended before the handshake was complete"
    if isinstance(error, MCPError):
        return f"refused the handshake: {_words(error)}"
    return f"cannot be used: {clean_text(str(error) or type(error).__name__, _MAX_ERROR_CHARS)}"


async def _last_words(child: ChildTransport | None) -> str:
    words = "" if child is None else await child.last_words()
    return f". It said last: {words}" if words else ""


def _words(error: MCPError) -> str:
    return clean_text(error.error.message, _MAX_ERROR_CHARS) or f"error {error.code}"
