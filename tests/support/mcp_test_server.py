"""A real MCP server, written with the official SDK, that behaves or misbehaves as its arguments say.

usage: python mcp_test_server.py [--http ADDRESS]   an ordinary server with a few tools
       python mcp_test_server.py --wire BEHAVIOUR   raw lines on stdio, for what the SDK would not let through
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
from typing import TypedDict


class Total(TypedDict):
    total: int
    parts: list[int]


def sdk_server():
    from mcp.server.mcpserver import Context, MCPServer

    # Annotations of tools are looked up among the module's names.
    globals()["Context"] = Context

    server = MCPServer("ordinary", version="1.2", log_level="CRITICAL")
    state = {"extra": False}

    @server.tool()
    def add(a: int, b: int = 1) -> Total:
        """Add two integers."""
        return {"total": a + b, "parts": [a, b]}

    @server.tool(structured_output=False)
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}!"

    @server.tool()
    def fail(reason: str) -> str:
        """Fail, as a tool does."""
        raise ValueError(reason)

    @server.tool(structured_output=False)
    async def slow(ctx: Context) -> str:
        """Report progress, then never end."""
        import anyio

        await ctx.report_progress(1, 3, "a third")
        await anyio.sleep_forever()
        return "never"

    @server.tool(structured_output=False)
    async def grow(ctx: Context) -> str:
        """Add a tool while running."""
        if not state["extra"]:
            state["extra"] = True

            @server.tool()
            def extra() -> int:
                """Came later."""
                return 7

        await ctx.session.send_tool_list_changed()
        return "grown"

    @server.tool(structured_output=False)
    def environment() -> str:
        """Name the variables of the environment."""
        return json.dumps(sorted(os.environ))

    @server.tool(structured_output=False)
    def die() -> str:
        """Say a word and end the process."""
        print("fatal: out of cheese", file=sys.stderr, flush=True)
        os._exit(3)

    return server


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


BIG = 10_000_000
PNG = b"\x89PNG\r\n\x1a\n and so on"
IMAGE = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()}


class Wire:
    """Answers line by line; each behaviour changes one thing."""

    def __init__(self, behaviour):
        self.behaviour = behaviour
        self.tools = {
            "collide": [tool("a.b"), tool("a_b"), tool("a b")],
            "twice": [tool("same"), tool("same")],
            "hidden": [tool("x", description="plain\u202e text\x07" + "y" * 9000)],
            "task": [tool("x", execution={"taskSupport": "required"})],
            "many": [tool(f"t{number}") for number in range(250)],
            "liar": [tool("x", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}})],
        }.get(behaviour, [tool("x")])

    def run(self):
        if self.behaviour == "late":
            time.sleep(float(sys.argv[3]))
        if self.behaviour == "junk":
            print("Starting up ...\n{not json\n[1, 2]", flush=True)
        if self.behaviour == "never":
            time.sleep(3600)
        if self.behaviour == "dead":
            sys.exit("cannot find my configuration")
        if self.behaviour == "stubborn":
            self.cling()
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("method") == "notifications/cancelled":
                # The one way to show a client that its word has arrived.
                self.send(method="notifications/tools/list_changed")
            if "id" in message and "method" in message:
                self.answer(message["id"], message["method"], message.get("params", {}))
        if self.behaviour == "stubborn":
            time.sleep(3600)

    def cling(self):
        """Outlive the end of input and every polite signal, and have children that do, too."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for begin in (os.getpid, os.setsid):
            if os.fork() == 0:
                # The second hides in a session of its own, as browsers are started.
                begin()
                os.close(1)
                time.sleep(3600)

    def send(self, **message):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def answer(self, number, method, params):
        if method == "initialize":
            self.send(
                id=number,
                result={
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "wire", "version": "0"},
                },
            )
        elif method == "tools/list" and self.behaviour == "refuse":
            self.send(id=number, error={"code": -32601, "message": "no tools\u202e here"})
        elif method == "tools/list" and self.behaviour == "many":
            start = int(params.get("cursor", "0"))
            result = {"tools": self.tools[start : start + 100]}
            if start + 100 < len(self.tools):
                result["nextCursor"] = str(start + 100)
            self.send(id=number, result=result)
        elif method == "tools/list" and self.behaviour == "endless":
            self.send(id=number, result={"tools": [], "nextCursor": "again"})
        elif method == "tools/list":
            self.send(id=number, result={"tools": self.tools})
        elif method == "tools/call":
            self.call(number, params)

    def call(self, number, params):
        text = {"type": "text", "text": json.dumps(params, sort_keys=True)}
        if self.behaviour == "hang":
            return
        if self.behaviour == "die":
            print("fatal: out of cheese", file=sys.stderr, flush=True)
            os._exit(3)
        if self.behaviour in ("change", "spoil"):
            self.tools = [tool("x"), tool("y")] if self.behaviour == "change" else [tool("z"), tool("z")]
            self.send(method="notifications/tools/list_changed")
        if self.behaviour == "refuse-call":
            self.send(id=number, error={"code": -32602, "message": "unknown tool"})
            return
        if self.behaviour == "junk":
            print("DEBUG: a line that is no message", flush=True)
        result = {
            "liar": {"content": [text], "structuredContent": {"n": "three"}},
            "large": {"content": [{"type": "text", "text": "x" * BIG}]},
            "odd": {"content": [{"type": "hologram", "z": 1}, "bare", {"type": "text"}], "extra": 1},
            "legacy": {"toolResult": {"old": True}},
            "surrogate": {"content": [{"type": "text", "text": "\ud800"}]},
            "picture": {"content": [text, IMAGE, {"type": "text", "text": "after"}, IMAGE]},
            "integer": {"content": [text], "structuredContent": {"n": 10**30}},
        }.get(self.behaviour, {"content": [text]})
        if self.behaviour == "nan":
            sys.stdout.write(
                f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[],"structuredContent":NaN}}}}\n'
            )
            sys.stdout.flush()
            return
        self.send(id=number, result=result)


def main():
    if sys.argv[1:2] == ["--wire"]:
        Wire(sys.argv[2]).run()
        return
    import anyio

    server = sdk_server()
    if sys.argv[1:2] == ["--http"]:
        import hypercorn.config
        import hypercorn.trio
        import trio

        config = hypercorn.config.Config()
        config.bind = [sys.argv[2]]
        config.errorlog = config.accesslog = None
        trio.run(hypercorn.trio.serve, server.streamable_http_app(), config)
        return
    anyio.run(server.run_stdio_async, backend="trio")


if __name__ == "__main__":
    main()
