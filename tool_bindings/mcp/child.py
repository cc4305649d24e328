"""A server as a child process: started with little, heard within bounds, gone when its connection ends.

Knows: processes, pipes, the order in which a child is asked, told and made to end.
Does not know: what the messages mean. Loading it loads the MCP SDK.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio
import trio

from tool_bindings.mcp.errors import McpUnavailableError
from tool_bindings.mcp.family import Family
from tool_bindings.mcp.framing import LineSplitter, MalformedLineError, message_from_line, message_line
from tool_bindings.mcp.naming import clean_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    from tool_bindings.mcp.config import StdioServer

__all__ = ["ChildTransport", "child_environment", "open_child"]

EXIT_GRACE_SECONDS: Final = 2.0
"""A child whose input was closed gets this long to end by itself, and as long again after SIGTERM."""
KILL_SECONDS: Final = 10.0
"""Within this a killed process is gone, or never will be. Arbitrary: an idle machine needs milliseconds."""
_FLUSH_SECONDS: Final = 0.5
"""For writing what has been accepted already, before the child's input is closed."""
_LAST_WORDS_SECONDS: Final = 0.3
"""How long the rest of an ending child's standard error may take. Arbitrary."""
_READ_BYTES: Final = 65_536
_WORDS_KEPT: Final = 20
"""Lines of the child's standard error that are kept to explain its end. Arbitrary."""
_WORD_CHARS: Final = 300
_INHERITED: Final = ("PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR")


class ChildTransport:
    """The streams of a running child, and what it said on standard error."""

    def __init__(
        self,
        reads: MemoryObjectReceiveStream[SessionMessage | Exception],
        writes: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        self.reads = reads
        self.writes = writes
        self.junk_lines = 0
        """Lines on its standard output that were no messages."""
        self.said_all = trio.Event()
        """Set when nothing more comes on its standard error."""
        self._words: deque[str] = deque(maxlen=_WORDS_KEPT)

    async def last_words(self) -> str:
        """Return the last line of its standard error, or ''; for a child that has just ended."""
        with trio.move_on_after(_LAST_WORDS_SECONDS):
            await self.said_all.wait()
        return self._words[-1] if self._words else ""

    def note_error_output(self, line: bytes) -> None:
        """Remember one line of standard error."""
        text = clean_text(line.decode("utf-8", "replace"), _WORD_CHARS).strip()
        if text:
            self._words.append(text)


def child_environment(extra: Mapping[str, str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a child's environment: little of ours, so that no secret leaks, and what was configured."""
    ours = os.environ if environ is None else environ
    kept = {name: value for name, value in ours.items() if name in _INHERITED or name.startswith("LC_")}
    return {**kept, **extra}


@contextlib.asynccontextmanager
async def open_child(server: StdioServer) -> AsyncIterator[ChildTransport]:
    """Start a server and give its transport. At the end it, and what it started, are gone.

    Raises:
        McpUnavailableError: It cannot be started.
    """
    process = await _start(server)
    # Nothing may be awaited before the block that ends the process.
    inward, reads = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    writes, outward = anyio.create_memory_object_stream["SessionMessage"](0)
    transport = ChildTransport(reads, writes)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    flushed = trio.Event()
    with inward, reads, writes, outward:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read_messages, process.stdout, inward, transport)
                nursery.start_soon(_read_errors, process.stderr, transport)
                nursery.start_soon(_write_messages, process.stdin, outward, inward, flushed)
                try:
                    yield transport
                finally:
                    with trio.CancelScope(shield=True):
                        writes.close()
                        # Unblocks a reader that is waiting for the session, so that the child can write on.
                        reads.close()
                        with trio.move_on_after(_FLUSH_SECONDS):
                            await flushed.wait()
                        await _stop(process)
                    nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await process.stdin.aclose()
                await process.stdout.aclose()
                await process.stderr.aclose()


async def _start(server: StdioServer) -> trio.Process:
    env = child_environment(server.env)
    try:
        return await trio.lowlevel.open_process(
            [server.command, *server.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=server.cwd,
            # A group of its own: Ctrl-C at our terminal is for us to pass on, and it is killed as a whole.
            start_new_session=True,
        )
    except FileNotFoundError:
        place = f" in {server.cwd!r}" if server.cwd else ""
        raise McpUnavailableError(
            f"cannot start {server.command!r}{place}: no such command or directory"
        ) from None
    except OSError as error:
        raise McpUnavailableError(f"cannot start {server.command!r}: {error.strerror}") from error


async def _read_messages(
    stdout: trio.abc.ReceiveStream,
    inward: MemoryObjectSendStream[SessionMessage | Exception],
    transport: ChildTransport,
) -> None:
    splitter = LineSplitter()
    with inward, contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await stdout.receive_some(_READ_BYTES):
            for line in splitter.feed(bytes(data)):
                message = _message(line, transport)
                if message is None:
                    continue
                try:
                    await inward.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    break  # The session is gone; go on reading, so that the child can end.


def _message(line: bytes | MalformedLineError, transport: ChildTransport) -> SessionMessage | None:
    """Return what the session gets for a line; an answer that cannot be read becomes an error answer."""
    try:
        if isinstance(line, MalformedLineError):
            raise line
        return message_from_line(line)
    except MalformedLineError as error:
        if error.answers and error.request_id is not None:
            return error.as_error()
        # Logging on standard output is the commonest mistake of servers. It costs nobody anything.
        transport.junk_lines += 1
        return None


async def _read_errors(stderr: trio.abc.ReceiveStream, transport: ChildTransport) -> None:
    splitter = LineSplitter(max_bytes=_READ_BYTES)
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await stderr.receive_some(_READ_BYTES):
            for line in splitter.feed(bytes(data)):
                if isinstance(line, bytes):
                    transport.note_error_output(line)
    transport.said_all.set()


async def _write_messages(
    stdin: trio.abc.SendStream,
    outward: MemoryObjectReceiveStream[SessionMessage],
    inward: MemoryObjectSendStream[SessionMessage | Exception],
    flushed: trio.Event,
) -> None:
    try:
        async with outward:
            async for message in outward:
                await stdin.send_all(message_line(message))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        # It no longer reads, so no answer will come either: the session must see an end.
        inward.close()
    finally:
        flushed.set()


async def _stop(process: trio.Process) -> None:
    """Ask, tell, and make the child end; then make sure that nothing it started is left."""
    assert process.stdin is not None
    family = Family(process.pid)
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await process.stdin.aclose()
    if not await _ended(process, EXIT_GRACE_SECONDS):
        _signal_group(process.pid, signal.SIGTERM)
        if not await _ended(process, EXIT_GRACE_SECONDS):
            # It may have started more in the meantime, and would be the way to find them.
            family.look()
    # Also after a clean end: a wrapper such as npx may have left the real server behind.
    _signal_group(process.pid, signal.SIGKILL)
    await family.kill(KILL_SECONDS)
    await _ended(process, KILL_SECONDS if process.returncode is None else math.inf)


async def _ended(process: trio.Process, seconds: float) -> bool:
    with trio.move_on_after(seconds):
        await process.wait()
    return process.returncode is not None


def _signal_group(group: int, number: signal.Signals) -> None:
    # The leader may be gone already; its id stays taken while the group has members.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
