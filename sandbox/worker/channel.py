"""The worker's end of the wire.

Messages wait in a list and leave together in one frame when the loop has nothing else to run;
printed text leaves at once, because a program that is killed must keep what it printed.

Knows: frames and the one socket. Does not know: what messages mean.
"""

from __future__ import annotations

import select
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from sandbox import packed, values, wire
from sandbox.collector import uncollected

if TYPE_CHECKING:
    import socket

_SPACE_BYTES: Final = 16 * 1024
"""Where frames are received, again and again: memory for each one would be asked of the kernel each time.
Arbitrary: every idle worker has it, and a frame that does not fit gets its own."""
_FOR_THE_PROGRAM: Final = frozenset({wire.RESULT, wire.RESULTS})
_LARGE_BYTES: Final = 64 * 1024
"""Frames above this are read without the garbage collector. Arbitrary."""


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

    __slots__ = (
        "_end",
        "_long",
        "_long_end",
        "_look_seconds",
        "_outgoing",
        "_poll",
        "_socket",
        "_space",
        "_start",
        "_unpacker",
    )

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._space = memoryview(bytearray(_SPACE_BYTES))
        self._start = self._end = 0  # What the space holds that has not been read.
        self._long: memoryview | None = None  # The payload being received that does not fit into it.
        self._long_end = 0
        self._look_seconds = 0.0  # How long to look for a message before sleeping.
        self._unpacker = packed.Unpacker()
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
        """Return the messages of the frames that are there, results deep-frozen.

        Args:
            timeout_seconds: How long to wait; None waits for a first whole message, 0 not at all. With a
                timeout there may be none when something has come, but not yet all of a message.

        Raises:
            SupervisorGoneError: The other end is closed.
        """
        messages = self._take_frames() if self._start < self._end else []
        while not messages:
            if timeout_seconds is None:
                self._wait()
            elif not self._poll.poll(max(timeout_seconds, 0) * 1000):
                return messages
            if self._start == self._end and self._long is None:
                count = self._receive_into(self._space)
                if int.from_bytes(self._space[: wire.HEADER_BYTES], "little") == count - wire.HEADER_BYTES:
                    # One whole frame is what nearly all receives give.
                    messages = self._read(self._space[wire.HEADER_BYTES : count])
                else:
                    self._start, self._end = 0, count
                    messages = self._take_frames()
            else:
                self._receive_more()
                messages = self._take_frames()
            if timeout_seconds is not None:
                return messages
        return messages

    def has_heard(self) -> bool:
        """Return whether something has come that has not been read."""
        return self._start < self._end or self._long is not None or bool(self._poll.poll(0))

    def look(self, seconds: float) -> bool:
        """Look so long, without sleeping, for more than has been received; return whether it has come."""
        until = perf_counter() + seconds
        while perf_counter() < until:
            if self._poll.poll(0):
                return True
        return False

    def _wait(self) -> None:
        if self._look_seconds and self.look(self._look_seconds):
            return
        # Not in the receive itself: that is woken whenever the supervisor takes what was sent, too.
        self._poll.poll()

    def _receive_more(self) -> None:
        if self._long is not None:
            self._long_end += self._receive_into(self._long[self._long_end :])
            return
        rest = bytes(self._space[self._start : self._end])
        self._start, self._end = 0, len(rest)
        self._space[: self._end] = rest
        self._end += self._receive_into(self._space[self._end :])

    def _receive_into(self, room: memoryview) -> int:
        try:
            count = self._socket.recv_into(room)
        except ConnectionResetError:
            count = 0
        if not count:
            raise SupervisorGoneError
        return count

    def _take_frames(self) -> list[Any]:
        messages: list[Any] = []
        while (payload := self._next_payload()) is not None:
            messages += self._read(payload)
        return messages

    def _next_payload(self) -> memoryview | None:
        """Return the next whole frame's payload, which is there until the next receive."""
        if self._long is not None:
            if self._long_end < len(self._long):
                return None
            payload, self._long = self._long, None
            return payload
        begin = self._start + wire.HEADER_BYTES
        if begin > self._end:
            return None
        length = int.from_bytes(self._space[self._start : begin], "little")
        end = begin + length
        if end <= self._end:
            self._start = end
            return self._space[begin:end]
        if length > _SPACE_BYTES - wire.HEADER_BYTES:
            self._long = memoryview(bytearray(length))
            self._long_end = self._end - begin
            self._long[: self._long_end] = self._space[begin : self._end]
            self._start = self._end = 0
        return None

    def _read(self, payload: memoryview) -> list[Any]:
        if payload[0] == packed.MARK:
            # Nothing that comes over the wire has cycles.
            message = uncollected(self._unpacker.add, payload)
            return [] if message is None else [message]
        messages = _decoded(payload) if len(payload) <= _LARGE_BYTES else uncollected(_decoded, payload)
        if messages[0][0] == wire.PACE:
            self._look_seconds = messages.pop(0)[1] / 1_000_000
        return messages


def _decoded(payload: memoryview) -> list[Any]:
    messages: Any = values.decode(str(payload, "ascii"))
    for message in messages:
        if message[0] in _FOR_THE_PROGRAM:
            message[-1] = values.freeze_own(message[-1])
    return messages  # type: ignore[no-any-return]  # a list, as the supervisor sends
