"""Serving clients over streamable HTTP, with hypercorn on trio.

Knows: sessions, sockets, bounds. Does not know: what requests do, who may make them (`guard`). Loading it
loads the MCP SDK and hypercorn.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

import trio
from hypercorn.config import Config
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from codemode.server.clients import ClientKey
from codemode.server.connections import Connections
from codemode.server.guard import CLIENT_KEY, DISCONNECTED_KEY, Guard, allowed_hosts, token_name
from sandbox.nursery import open_background_nursery

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.server.context import ServerRequestContext

    from codemode.server.guard import Receive, Scope, Send
    from codemode.server.handlers import CodeServer

__all__ = ["PATH", "client_key", "disconnected", "serve_http"]

PATH: Final = "/mcp"
MAX_BODY_BYTES: Final = 4_194_304
"""Bytes of one request: four times the largest program."""
MAX_SESSIONS: Final = 100
"""Sessions of one token at a time. Arbitrary."""
IDLE_SECONDS: Final = 1800.0
"""A session that nobody used for so long is closed."""
_KEEP_ALIVE_SECONDS: Final = 30.0
_SESSION_HEADER: Final = "mcp-session-id"


def client_key(context: ServerRequestContext[Any, Any]) -> ClientKey:
    """Tell clients apart: bounds are per token, logs per session where the protocol version has sessions."""
    request = context.request
    assert request is not None, "over HTTP every message came in a request"
    return ClientKey(request.scope[CLIENT_KEY], request.headers.get(_SESSION_HEADER, ""))


def disconnected(context: ServerRequestContext[Any, Any]) -> trio.Event | None:
    """Return the event that is set when the client has closed the request; None where there is none."""
    event = None if context.request is None else context.request.scope.get(DISCONNECTED_KEY)
    return event if isinstance(event, trio.Event) else None


async def serve_http(
    server: CodeServer,
    listener: socket.socket,
    *,
    host: str,
    tokens: Sequence[str],
    host_names: Sequence[str] = (),
    stopped: Callable[[], Awaitable[None]],
) -> None:
    """Serve until `stopped()` returns; runs that are going on are stopped then.

    Args:
        server: What requests do.
        listener: A socket that listens.
        host: The name it was bound under.
        tokens: Bearer tokens; each is a client of its own.
        host_names: Further values of `Host` to answer to, as a proxy in front sends them.
        stopped: Returns when it is time to end.
    """
    # One for each token, so that nobody can use up the sessions of another.
    managers = {
        token_name(token): StreamableHTTPSessionManager(
            server.mcp,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=MAX_BODY_BYTES,
            max_sessions=MAX_SESSIONS,
        )
        for token in tokens
    }

    config = Config()
    config.accesslog = config.errorlog = None  # A log of requests would have their headers in it.
    config.keep_alive_timeout = _KEEP_ALIVE_SECONDS
    config.include_server_header = False
    config.max_app_queue_size = 16
    connections = Connections(config)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        name = scope[CLIENT_KEY]
        # The SDK binds a session to the client of the request that opened it; another gets "not found".
        user = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        with connections.answering(scope):
            await managers[name].asgi_app({**scope, "user": user}, receive, send)

    # The SDK warns of what clients do wrong, request by request; they are told, and nobody else needs to be.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    port = listener.getsockname()[1]
    guard = Guard(application, tokens, allowed_hosts(host, port) | {name.lower() for name in host_names})
    async with contextlib.AsyncExitStack() as running:
        for manager in managers.values():
            await running.enter_async_context(manager.run())
        nursery = await running.enter_async_context(open_background_nursery())
        nursery.start_soon(server.announce_changes)
        listening = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        async with listening:
            await connections.serve(guard, listening, stopped)
