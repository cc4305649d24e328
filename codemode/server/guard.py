"""Who may talk to the HTTP server at all: checks before anything reads a body.

    Host and Origin   a web page in a browser must not reach a server on loopback (DNS rebinding)
    bearer token      always; compared in constant time, known only by its digest from here on
    bounds            requests of one token at a time, time for a body

Knows: ASGI, headers. Does not know: MCP.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

__all__ = ["CLIENT_KEY", "DISCONNECTED_KEY", "Guard", "allowed_hosts", "token_name"]

CLIENT_KEY: Final = "codemode.client"
"""Member of an ASGI scope with the name of the token, which tells nothing of the token itself."""
DISCONNECTED_KEY: Final = "codemode.disconnected"
"""Member of an ASGI scope with an event that is set when the client has closed the request."""
MAX_REQUESTS: Final = 128
"""Requests of one token at a time, open streams included. Arbitrary."""
BODY_SECONDS: Final = 60.0
"""A request that is not complete by then counts as given up. Arbitrary."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_MAX_TOKEN_BYTES: Final = 4096


def token_name(token: str) -> str:
    """Return a name for a token under which it can be kept and logged."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """Return the `Host` headers that a server bound to this address answers to."""
    names = _LOOPBACK if host in (*_LOOPBACK, "0.0.0.0", "::", "") else (host, *_LOOPBACK)  # noqa: S104  # compared
    shown = [f"[{name}]" if ":" in name else name for name in names]
    return frozenset(f"{name}:{port}" for name in shown) | (
        frozenset(shown) if port in (80, 443) else frozenset()
    )


class Guard:
    """An ASGI application that lets good requests through to another.

    Args:
        application: What answers good requests.
        tokens: The bearer tokens that are accepted; at least one.
        hosts: `Host` headers that are accepted, with the port, in lower case.
    """

    def __init__(self, application: Application, tokens: Iterable[str], hosts: Iterable[str]) -> None:
        self._application = application
        self._tokens = {token_name(token): hashlib.sha256(token.encode()).digest() for token in tokens}
        assert self._tokens, "a server without a token would be open to everybody"
        self._hosts = frozenset(hosts)
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            # Nothing here speaks WebSocket; the server closes it with a 403.
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        if not self._host_is_ours(headers):
            await _refuse(send, 421, "this server is not known under that Host")
            return
        if not self._origin_is_ours(headers):
            await _refuse(send, 403, "requests from web pages of other origins are refused")
            return
        name = self._token_of(headers)
        if name is None:
            await _refuse(send, 401, "a bearer token is needed: Authorization: Bearer TOKEN")
            return
        if self._open[name] >= MAX_REQUESTS:
            await _refuse(send, 429, f"this token has {MAX_REQUESTS} requests open already")
            return
        self._open[name] += 1
        try:
            await self._pass_on(scope, receive, send, name)
        finally:
            self._open[name] -= 1

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, name: str) -> None:
        gone = trio.Event()
        # Until the body is there; after that, a message is the end of the connection.
        deadline = trio.current_time() + BODY_SECONDS

        async def watched() -> Message:
            nonlocal deadline
            message: Message = {"type": "http.disconnect"}
            with trio.move_on_at(deadline):
                message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            elif not message.get("more_body", False):
                deadline = math.inf
            return message

        await self._application({**scope, CLIENT_KEY: name, DISCONNECTED_KEY: gone}, watched, send)

    def _host_is_ours(self, headers: list[tuple[str, str]]) -> bool:
        hosts = [value.lower() for key, value in headers if key == "host"]
        return len(hosts) == 1 and hosts[0] in self._hosts

    def _origin_is_ours(self, headers: list[tuple[str, str]]) -> bool:
        """Accept no Origin, as programs send none, or one that is this server itself."""
        for key, value in headers:
            if key == "origin":
                parts = urlsplit(value.lower())
                if parts.scheme not in ("http", "https") or parts.netloc not in self._hosts:
                    return False
        return True

    def _token_of(self, headers: list[tuple[str, str]]) -> str | None:
        given = [value for key, value in headers if key == "authorization"]
        if len(given) != 1 or given[0][:7].lower() != "bearer " or len(given[0]) > _MAX_TOKEN_BYTES:
            return None
        digest = hashlib.sha256(given[0][7:].strip().encode("latin-1", "replace")).digest()
        found: str | None = None
        # Every token is compared, in constant time: neither which one nor how much of it was right shows.
        for name, known in self._tokens.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def _headers(scope: Scope) -> list[tuple[str, str]]:
    return [(key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in scope["headers"]]


async def _refuse(send: Send, status: int, why: str) -> None:
    body = f"{why}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="codemode"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
