"""A server over streamable HTTP, in a real process."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio

from tool_bindings import AbortSignal, ToolRegistry
from tool_bindings.mcp import open_mcp_servers, parse_mcp_config

SERVER = str(Path(__file__).resolve().parents[2] / "support" / "mcp_test_server.py")
TIMEOUT_SECONDS = 300

# The SDK's HTTP client leaves generators of responses to the garbage collector, which trio remarks upon.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def port():
    """Start the server on a socket that listens already, and give its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(
            [sys.executable, SERVER, "--http", f"fd://{listener.fileno()}"],
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
        )
        number = listener.getsockname()[1]
    yield number
    process.kill()
    process.wait()


def configs(port, **own):
    entry = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"X-Test": "1"}, "codemode": own}
    return parse_mcp_config({"mcpServers": {"h": entry}})


async def test_a_server_over_http_works_until_it_dies_and_then_says_so(port):
    registry, notes = ToolRegistry(), []
    with trio.fail_after(TIMEOUT_SECONDS):
        send, receive = trio.open_memory_channel(100)
        async with open_mcp_servers(
            registry, configs(port), on_note=lambda text, _problem: send.send_nowait(text)
        ):
            assert "connected (ordinary 1.2, 7 tools)" in await receive.receive()
            result = await registry.dispatch("mcp__h__add", {"a": 1, "b": 2})
            assert 3 == result.value["structuredContent"]["total"]

            abort = AbortSignal()

            def report(*progress):
                notes.append(progress)
                abort.abort("enough")

            result = await registry.dispatch("mcp__h__slow", {}, progress=report, abort=abort)
            assert "ABORTED" == result.error.info.code
            assert [(1, 3, "a third")] == notes

            while "mcp__h__extra" not in registry.names():
                # What a server says before its client listens is lost, so it is asked to say it again.
                await registry.dispatch("mcp__h__grow", {})
                with trio.move_on_after(0.5):
                    assert "new tool list (8 tools)" in await receive.receive()

            # The SDK's writer would fail on it and take the connection along.
            result = await registry.dispatch("mcp__h__greet", {"name": "\ud800"})
            assert "cannot be sent over HTTP" in result.error.message
            assert not (await registry.dispatch("mcp__h__greet", {"name": "x"})).is_error

            result = await registry.dispatch("mcp__h__die", {})
            assert "TOOL_OUTCOME_UNKNOWN" == result.error.info.code
            # HTTP has no connection to lose, so it is the next call that finds nobody there.
            assert (await registry.dispatch("mcp__h__add", {"a": 1})).is_error
            while "trying again" not in await receive.receive():
                pass
            result = await registry.dispatch("mcp__h__add", {"a": 1})
            assert "is being reconnected" in result.error.message
    assert [] == registry.names()


async def test_an_address_where_nobody_listens_is_named_and_tried_again():
    registry, notes = ToolRegistry(), []
    with socket.socket() as silent:
        # Ours, so that nobody else listens there, and neither do we.
        silent.bind(("127.0.0.1", 0))
        async with open_mcp_servers(
            registry, configs(silent.getsockname()[1]), on_note=lambda text, _problem: notes.append(text)
        ):
            assert [] == registry.names()
    assert "failed; trying again in 0.5 s" in notes[0]


class ForgetfulHandler(http.server.BaseHTTPRequestHandler):
    """A server that loses its sessions at the first call of a tool, as one that was restarted does."""

    sessions = 0
    forgot = False

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message["method"]
        if method == "initialize":
            type(self).sessions += 1
            self.answer(
                message,
                {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "forgetful", "version": "0"},
                },
            )
        elif method == "tools/list":
            self.answer(message, {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call" and not self.forgot:
            type(self).forgot = True
            self.reply(404)
        elif method == "tools/call":
            self.answer(message, {"content": [{"type": "text", "text": "remembered"}]})
        else:
            self.reply(202)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)

    def answer(self, message, result):
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.reply(200, body)

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", f"session-{self.sessions}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):
        pass


async def test_a_session_that_the_server_gave_up_is_opened_again():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), ForgetfulHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry = ToolRegistry()
        send, receive = trio.open_memory_channel(100)
        own = {"reconnect": {"initialDelayMs": 1}}
        with trio.fail_after(TIMEOUT_SECONDS):
            async with open_mcp_servers(
                registry,
                configs(server.server_address[1], **own),
                on_note=lambda text, _problem: send.send_nowait(text),
            ):
                result = await registry.dispatch("mcp__h__x", {})
                assert "has ended the session and did not carry out 'x'" in result.error.message
                # Nothing happened, so the outcome is known.
                assert result.error.info is None
                while "trying again" not in await receive.receive():
                    pass
                assert "connected (forgetful 0, 1 tool)" in await receive.receive()
                result = await registry.dispatch("mcp__h__x", {})
                assert "remembered" == result.value["content"][0]["text"]
        server.shutdown()
