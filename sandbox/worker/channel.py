"""The worker's end of the wire.

Messages wait in a list and leave together in one frame when the loop has nothing else to run;
printed text leaves at once, because a program that is killed must keep what it printed.

Knows: frames and the one socket. Does not know: what messages mean.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any, Final, Protocol

from sandbox import values, wire

if TYPE_CHECKING:
    import socket

_RECEIVE_BYTES: Final = 64 * 1024
"""Below what the C library maps and unmaps for every receive, which takes five times as long as receiving."""
_MAX_FRAME_BYTES: Final = 2**32 - 1
"""What the header can say. The supervisor is trusted and bounds what it sends."""


class SupervisorGoneError(Exception):
    """The supervisor closed the wire; there is nobody left to work for."""


class Wire(Protocol):
    """What a program's run needs of a channel."""

    def post(self, message: bytes) -> None:
        """Queue a message."""

    def flush(self) -> None:
        """Send what is queued."""

    def receive(self, timeout_seconds: float | None) -> list[Any]:
        """Wait for messages."""


class Channel:
    """Sends and receives whole messages over a connected stream socket."""

    __slots__ = ("_buffer", "_outgoing", "_poll", "_socket")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = wire.FrameBuffer(_MAX_FRAME_BYTES)
        self._outgoing: list[bytes] = []
        # A poll object and not settimeout: that would call fcntl, which the kernel wall refuses.
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def post(self, message: bytes) -> None:
        """Queue a message for the next flush."""
        self._outgoing.append(message)

    def flush(self) -> None:
        """Send what is queued as one frame.

        Raises:
            SupervisorGoneError: The other end is closed.
        """
        if self._outgoing:
            payload = wire.pack(self._outgoing)
            self._outgoing.clear()
            try:
                self._socket.sendall(payload)
            except (BrokenPipeError, ConnectionResetError):
                # A class of its own: a program may raise those two itself.
                raise SupervisorGoneError from None

    def receive(self, timeout_seconds: float | None) -> list[Any]:
        """Return the messages of the frames that are there, values deep-frozen.

        Args:
            timeout_seconds: How long to wait for a first whole frame; None waits for ever, 0 not at all.

        Raises:
            SupervisorGoneError: The other end is closed.
        """
        messages: list[Any] = []
        while not messages:
            if timeout_seconds is not None and not self._poll.poll(max(timeout_seconds, 0) * 1000):
                return messages
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except ConnectionResetError:
                data = b""
            if not data:
                raise SupervisorGoneError
            payload = self._buffer.only_payload(data)
            if payload is not None:
                return _messages(payload)
            self._buffer.feed(data)
            while (payload := self._buffer.next_payload()) is not None:
                messages += _messages(payload)
        return messages


def _messages(payload: bytes) -> list[Any]:
    messages = values.decode(payload, frozen=True)
    assert isinstance(messages, list)
    return messages
