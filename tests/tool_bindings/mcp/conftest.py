"""Real MCP servers in real processes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import psutil
import pytest
import trio

from tool_bindings import ToolRegistry
from tool_bindings.mcp import open_mcp_servers, parse_mcp_config

SERVER = str(Path(__file__).resolve().parents[2] / "support" / "mcp_test_server.py")
TIMEOUT_SECONDS = 300
"""For a test that hangs; none of them takes a tenth of it, whatever else the machine does."""


def is_alive(process):
    """Whether a process runs; one that only its new parent has not yet waited for does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Opened:
    """Servers of one test: registry, supervisor, and the notes about them as they come."""

    def __init__(self):
        self.registry = ToolRegistry()
        self.said = []
        self._send, self._receive = trio.open_memory_channel(100)
        self.servers = None
        self.started = set()
        """Processes that there were when all servers had been tried."""

    def note(self, text, problem):
        self.said.append((text, problem))
        self._send.send_nowait(text)

    async def wait_for(self, words):
        """Return the next note that has these words in it."""
        while words not in (text := await self._receive.receive()):
            pass
        return text

    async def call(self, name, arguments=None, **options):
        return await self.registry.dispatch(name, {} if arguments is None else arguments, **options)


@pytest.fixture
def behave():
    """Give a function that opens servers by name and behaviour, and proves that they end with it."""

    @contextlib.asynccontextmanager
    async def behave(*, seconds=TIMEOUT_SECONDS, **servers):
        opened = Opened()
        entries = {}
        for name, (behaviour, own) in servers.items():
            arguments = [SERVER, "--wire", *behaviour.split()] if behaviour else [SERVER]
            entries[name] = {"command": sys.executable, "args": arguments, "codemode": own}
        before = set(psutil.Process().children(recursive=True))
        with trio.fail_after(seconds):
            configs = parse_mcp_config({"mcpServers": entries})
            async with open_mcp_servers(opened.registry, configs, on_note=opened.note) as opened.servers:
                opened.started = set(psutil.Process().children(recursive=True)) - before
                yield opened
        assert [] == opened.registry.names()
        # Not eventually: the supervisor only returns when it is so.
        assert [] == [process for process in opened.started if is_alive(process)]
        assert before >= set(psutil.Process().children(recursive=True))

    return behave
