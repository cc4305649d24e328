"""Keeps the servers of a configuration connected, and their tools registered as they are listed.

One task per server connects, lists, and connects again; a connection is opened and closed in that task.
Calls are made from the tasks of their dispatches: the SDK correlates answers by id, and a call's cancel
scope belongs to the call.

Knows: order and delays. Does not know: protocols (`connection`), definitions (`tools`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
from typing import TYPE_CHECKING, Final, Literal

import trio

from tool_bindings.aliases import aliases_of
from tool_bindings.errors import DefinitionError
from tool_bindings.mcp.errors import McpConfigError, McpStartError, McpUnavailableError
from tool_bindings.mcp.tools import define_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from tool_bindings.mcp.config import McpServerConfig
    from tool_bindings.mcp.connection import Connection
    from tool_bindings.registry import Disposer, ToolRegistry

    NoteListener = Callable[[str, bool], object]
    """Gets one line about a server, and whether it is a problem."""

__all__ = ["McpServers", "McpStatus", "ServerState", "open_mcp_servers"]

ServerState = Literal["connecting", "connected", "reconnecting", "given-up"]

_logger: Final = logging.getLogger("tool_bindings.mcp")


@dataclasses.dataclass(frozen=True, slots=True)
class McpStatus:
    """One server at one moment.

    Attributes:
        name: Its name in the configuration.
        state: Where it is.
        title: What it calls itself, once connected.
        tools: Public names of its registered tools.
        error: Why it is not connected, or what was wrong with its last list; None when all is well.
    """

    name: str
    state: ServerState
    title: str
    tools: tuple[str, ...]
    error: str | None


class _Server:
    """Supervises one server; `run` is its task."""

    def __init__(self, config: McpServerConfig, registry: ToolRegistry, note: NoteListener | None) -> None:
        self._config = config
        self._registry = registry
        self._note = note
        self._connection: Connection | None = None
        self._disposers: list[Disposer] = []
        self._names: tuple[str, ...] = ()
        self._state: ServerState = "connecting"
        self._title = ""
        self._error: str | None = None
        self._failures = 0
        self._connected_at = math.inf
        self._list_changed = trio.Event()
        self.tried = trio.Event()

    def status(self) -> McpStatus:
        return McpStatus(self._config.name, self._state, self._title, self._names, self._error)

    def connection(self) -> Connection:
        """Return the current connection, for a call.

        Raises:
            McpUnavailableError: There is none.
        """
        if self._connection is None:
            hope = "; it is being reconnected, so try again later" if self._state == "reconnecting" else ""
            raise McpUnavailableError(
                f"MCP server {self._config.name!r} is not connected ({self._error}){hope}; nothing was sent"
            )
        return self._connection

    async def run(self) -> None:
        """Stay connected until cancelled or given up; `tried` is set after the first attempt."""
        while True:
            self._connected_at = math.inf
            try:
                await self._one_connection()
                self._error = "the connection was lost"
            except Exception as error:  # noqa: BLE001  # whatever a server does must not end the others
                self._error = _text_of(error)
            finally:
                self._connection = None
            if not self.tried.is_set() and self._config.fail_on_startup_error:
                raise McpStartError(f"MCP server {self._config.name!r}: {self._error}")
            if trio.current_time() - self._connected_at >= self._config.reconnect.max_delay_seconds:
                self._failures = 0
            retry = self._may_retry()
            self.tried.set()
            if not retry:
                return
            await trio.sleep(self._next_delay())

    async def _one_connection(self) -> None:
        """Connect, list, and follow changes until the connection ends."""
        # Imported here: the SDK takes most of a second to load.
        from tool_bindings.mcp.connection import open_connection  # noqa: PLC0415

        self._list_changed = trio.Event()
        async with open_connection(self._config, self._on_list_changed) as connection:
            self._title = connection.title
            with trio.move_on_after(self._config.startup_timeout_seconds) as listing:
                await self._sync(connection)
            if listing.cancelled_caught:
                raise McpUnavailableError(
                    f"did not list its tools within {self._config.startup_timeout_seconds:g} s"
                )
            self._connection = connection
            self._error = None
            self._state = "connected"
            self._connected_at = trio.current_time()
            self._tell(f"connected ({self._title}, {self._count()})", problem=False)
            self.tried.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow_changes, connection)
                await connection.wait_closed()
                self._connection = None
                nursery.cancel_scope.cancel()

    def _on_list_changed(self) -> None:
        self._list_changed.set()

    async def _follow_changes(self, connection: Connection) -> None:
        while True:
            await self._list_changed.wait()
            self._list_changed = trio.Event()
            try:
                await self._sync(connection)
            except (McpUnavailableError, DefinitionError) as error:
                self._error = _text_of(error)
                self._tell(f"its new tool list is not used: {self._error}")
            else:
                self._error = None
                self._tell(f"has a new tool list ({self._count()})", problem=False)

    async def _sync(self, connection: Connection) -> None:
        """Register what the server lists now. A list that cannot be had or used changes nothing."""
        definitions = define_tools(self._config, await connection.list_tools(), self.connection)
        self.unregister()
        try:
            for definition in definitions:
                self._disposers.append(self._registry.register(definition))
        except DefinitionError:
            self.unregister()
            raise
        self._names = tuple(sorted(definition.name for definition in definitions))

    def unregister(self) -> None:
        """Take the server's tools out of the registry."""
        disposers, self._disposers = self._disposers, []
        self._names = ()
        for dispose in disposers:
            dispose()

    def _count(self) -> str:
        return "1 tool" if len(self._names) == 1 else f"{len(self._names)} tools"

    def _may_retry(self) -> bool:
        """Count a failure, and say whether another attempt is made; tell the operator either way."""
        self._failures += 1
        limits = self._config.reconnect
        if not limits.enabled:
            # Its tools stay, so that a program is told why they fail.
            self._state = "given-up"
            self._tell(f"{self._error}; reconnecting is switched off, so start again to use it")
        elif self._failures > limits.max_attempts:
            self.unregister()
            self._state = "given-up"
            attempts = "1 attempt" if limits.max_attempts == 1 else f"{limits.max_attempts} attempts"
            self._tell(f"{self._error}; given up after {attempts} to reconnect")
        else:
            self._state = "reconnecting"
            self._tell(f"{self._error}; trying again in {self._next_delay():g} s")
            return True
        return False

    def _next_delay(self) -> float:
        limits = self._config.reconnect
        return min(limits.max_delay_seconds, limits.initial_delay_seconds * 2.0 ** (self._failures - 1))

    def _tell(self, text: str, *, problem: bool = True) -> None:
        if self._note is None:
            return
        try:
            self._note(f"MCP server {self._config.name!r}: {text}", problem)
        except Exception:
            _logger.exception("a listener for notes about MCP servers raised")


class McpServers:
    """The servers of one configuration. Made by `open_mcp_servers`."""

    def __init__(self, servers: Sequence[_Server], registry: ToolRegistry) -> None:
        self._servers = servers
        self._registry = registry

    def statuses(self) -> list[McpStatus]:
        """Return how each server is, in the order of the configuration."""
        return [server.status() for server in self._servers]

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Return the readable names of all tools; see `tool_bindings.aliases`."""
        return aliases_in(self._registry)


def aliases_in(registry: ToolRegistry) -> dict[str, tuple[str, ...]]:
    """Return the readable names of a registry's MCP tools; one with several targets is ambiguous."""
    return aliases_of(registry.definitions())


@contextlib.asynccontextmanager
async def open_mcp_servers(
    registry: ToolRegistry,
    configs: Iterable[McpServerConfig],
    *,
    on_note: NoteListener | None = None,
    patience_seconds: float = math.inf,
) -> AsyncIterator[McpServers]:
    """Connect to servers and keep their tools in a registry until the body ends.

    Enters the body when every server has been tried once, or patience is over. A server that did not come
    up is tried again in the background. At the end every child process is gone.

    Args:
        registry: Where tools are registered and unregistered.
        configs: The servers.
        on_note: Gets a line whenever something becomes of a server, and whether it is a problem.
        patience_seconds: How long to wait for the first attempts.

    Raises:
        McpConfigError: The SDK is not installed, or two servers have one name.
        McpStartError: A server with `fail_on_startup_error` did not come up.
    """
    configs = list(configs)
    names = [config.name for config in configs]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise McpConfigError(f"two MCP servers are named {twice!r}")
    if configs:
        _require_sdk()
    servers = [_Server(config, registry, on_note) for config in configs]
    raised: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                for server in servers:
                    nursery.start_soon(server.run)
                with trio.move_on_after(patience_seconds):
                    for server in servers:
                        await server.tried.wait()
                yield McpServers(servers, registry)
            except BaseException as error:
                raised = error
                raise
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise _bare(group, raised) from None
    finally:
        for server in servers:
            server.unregister()


def _bare(group: BaseExceptionGroup[BaseException], raised: BaseException | None) -> BaseException:
    """Return what the body raised, or the one start error, out of the groups nurseries make."""
    if raised is not None and group.exceptions == (raised,) and not isinstance(raised, BaseExceptionGroup):
        return raised
    start_errors = group.subgroup(McpStartError)
    if start_errors is None:
        return group
    error: BaseException = start_errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _require_sdk() -> None:
    try:
        import mcp  # noqa: F401, PLC0415  # takes most of a second, so only where servers are wanted
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise McpConfigError("MCP servers need the MCP SDK: pip install 'codemode[mcp]'") from None


def _text_of(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
