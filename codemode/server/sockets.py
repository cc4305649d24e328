"""What an HTTP server needs before it is one: a socket that listens, and a token.

Knows: addresses, randomness. Does not know: HTTP. Loads nothing heavy, so that a wrong address is told
at once.
"""

from __future__ import annotations

import secrets
import socket

__all__ = ["listening_socket", "new_token"]

_BACKLOG = 128
"""Connections that may wait to be accepted. Arbitrary."""
_TOKEN_BYTES = 32


def new_token() -> str:
    """Make a bearer token."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind to an address and listen; port 0 takes a free one.

    Raises:
        OSError: It cannot be bound.
    """
    family, kind, number, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
