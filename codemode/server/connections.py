"""The connections of the HTTP server: how many there are, how long a write may stall, how they end.

hypercorn speaks HTTP over each. Its own loop has no bound on connections, and waits for ever for a client
that reads nothing: such a client would also keep the server from ending.

Knows: streams, bounds. Does not know: HTTP, who the clients are. Loading it loads hypercorn.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from typing import TYPE_CHECKING, Final

import trio
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from hypercorn.config import Config

    from codemode.server.guard import Application, Scope

__all__ = ["Connections"]

MAX_CONNECTIONS: Final = 512
"""Connections at a time. Arbitrary: half of the descriptors that a process usually has."""
STALLED_SECONDS: Final = 60.0
"""A client that takes none of an answer for so long is gone. Arbitrary."""
GRACEFUL_SECONDS: Final = 1.0
"""For answers on their way when the server stops; what stays open is cut off then."""
_PIECE_BYTES: Final = 65_536
_RETRY_SECONDS: Final = 0.1
_OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_logger: Final = logging.getLogger("codemode.server")


class _Connection:
    """One connection, in the shape that hypercorn uses."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.socket = stream.socket
        self.requests = 0
        """Good requests that are being answered on it."""

    async def send_all(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), _PIECE_BYTES):
            with trio.move_on_after(STALLED_SECONDS) as stalling:
                await self._stream.send_all(view[start : start + _PIECE_BYTES])
            if stalling.cancelled_caught:
                self.cut()
                raise trio.BrokenResourceError

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def cut(self) -> None:
        """Close it at once: whoever reads or writes on it is told."""
        self.socket.close()


class Connections:
    """Serves an ASGI application on every connection that a listener accepts.

    Args:
        config: Settings of hypercorn that are about one connection.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._open: dict[object, _Connection] = {}
        """By the address of the other end, which is how a request names it; the oldest first."""
        self._closed = trio.Event()

    async def serve(
        self, application: Application, listener: trio.SocketListener, stopped: Callable[[], Awaitable[None]]
    ) -> None:
        """Serve until `stopped()` returns and every connection is closed."""
        wrapped = wrap_app(application, 0, "asgi")  # type: ignore[arg-type]  # its scopes are closed records
        context = WorkerContext(None)

        async def serve_one(connection: _Connection, client: object) -> None:
            try:
                # It has what is used of a stream.
                await TCPServer(wrapped, self._config, context, ConnectionState({}), connection)  # type: ignore[arg-type]
            except Exception:
                # One connection must not end the others.
                _logger.exception("a connection failed")
            finally:
                connection.cut()
                self._forget(client, connection)

        async with trio.open_nursery() as serving:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(self._accept, listener, serve_one, serving)
                await stopped()
                accepting.cancel_scope.cancel()
            await context.terminated.set()
            with trio.move_on_after(GRACEFUL_SECONDS):
                while self._open:
                    self._closed = trio.Event()
                    await self._closed.wait()
            # hypercorn shields what it writes, so a connection that is stuck is closed under its hands.
            for connection in tuple(self._open.values()):
                connection.cut()
            serving.cancel_scope.cancel()

    @contextlib.contextmanager
    def answering(self, scope: Scope) -> Iterator[None]:
        """Hold a good request's connection: it is not given up for another while the body runs."""
        connection = self._open.get(scope.get("client"))
        if connection is None:
            yield
            return
        connection.requests += 1
        try:
            yield
        finally:
            connection.requests -= 1

    async def _accept(
        self,
        listener: trio.SocketListener,
        serve_one: Callable[[_Connection, object], Awaitable[None]],
        serving: trio.Nursery,
    ) -> None:
        while True:
            try:
                stream = await listener.accept()
                client = stream.socket.getpeername()[:2]
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    await trio.sleep(_RETRY_SECONDS)
                continue  # The other end has gone already.
            connection = _Connection(stream)
            if self._has_room():
                self._open[client] = connection
                serving.start_soon(serve_one, connection, client)
            else:
                connection.cut()

    def _has_room(self) -> bool:
        """Say whether one more may be open; the oldest that answers no good request makes room."""
        if len(self._open) < MAX_CONNECTIONS:
            return True
        for client, connection in self._open.items():
            if not connection.requests:
                connection.cut()
                self._forget(client, connection)
                return True
        return False

    def _forget(self, client: object, connection: _Connection) -> None:
        if self._open.get(client) is connection:
            del self._open[client]
            self._closed.set()
