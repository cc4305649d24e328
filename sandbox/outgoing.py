"""Frames on their way to one worker.

Nobody waits for a worker that does not read: what cannot be sent at once is sent by a task of its own, and
what is posted meanwhile waits its turn.

Knows: one socket. Does not know: what messages mean, and what they cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sandbox import wire

if TYPE_CHECKING:
    import socket

_MANY_BYTES: Final = 64 * 1024
"""What is sent although more will be posted soon, so that the worker reads while the host goes on. Arbitrary:
to wake the worker on another core takes as long as some calls."""


class Outgoing:
    """Sends messages, several in a frame, and whole frames.

    Args:
        sock: A connected, non-blocking stream socket.
    """

    __slots__ = ("_frames", "_is_closed", "_is_led", "_socket", "is_sending", "messages", "tasks")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._frames: list[bytes] = []
        self._is_closed = False
        self._is_led = False
        self.messages: list[bytes] = []
        """Messages that leave together in one frame with the next `flush`."""
        self.is_sending = False
        """Whether a task is waiting for the worker to read."""
        self.tasks: trio.Nursery
        """Where such a task runs. Has to be set before anything is sent."""

    def post_frame(self, frame: bytes) -> None:
        """Queue a frame of its own. It leaves before the messages that are posted."""
        self._frames.append(frame)

    def lead(self, message: bytes) -> None:
        """Post a message that goes first in its frame, in place of another such that has not left yet."""
        if self._is_led:
            self.messages[0] = message
        else:
            self._is_led = True
            self.messages.insert(0, message)

    def flush(self) -> None:
        """Send what is posted, as far as it can be sent without waiting."""
        if self.is_sending or self._is_closed:
            return
        if self.messages:
            self._frames.append(wire.pack(self.messages))
            self.messages.clear()
            self._is_led = False
        if not self._frames:
            return
        frame = self._frames[0] if len(self._frames) == 1 else b"".join(self._frames)
        self._frames.clear()
        try:
            sent = self._socket.send(frame)
        except BlockingIOError:
            sent = 0
        except (BrokenPipeError, ConnectionResetError):
            return  # The worker is gone; whoever reads finds out why.
        if sent < len(frame):
            self.send_later(memoryview(frame)[sent:])

    def flush_many(self) -> None:
        """Send what is posted if it is worth a frame; more is about to be posted."""
        if sum(map(len, self.messages)) >= _MANY_BYTES:
            self.flush()

    def send_later(self, rest: memoryview) -> None:
        """Send bytes as the worker takes them; what is posted meanwhile leaves after them."""
        self.is_sending = True
        self.tasks.start_soon(self._send_rest, rest)

    def close(self) -> None:
        """Send nothing more, and forget what is posted."""
        self._is_closed = True
        self._is_led = False
        self.messages.clear()
        self._frames.clear()

    async def _send_rest(self, rest: memoryview) -> None:
        try:
            while rest:
                await trio.lowlevel.wait_writable(self._socket)
                rest = rest[self._socket.send(rest) :]
        except (BrokenPipeError, ConnectionResetError, trio.ClosedResourceError):
            return
        finally:
            self.is_sending = False
        self.flush()
