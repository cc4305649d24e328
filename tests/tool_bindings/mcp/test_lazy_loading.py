"""The MCP SDK takes most of a second to load, so it is loaded only where a server is wanted."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("mcp", "pydantic", "httpx2", "hypercorn", "starlette")


@pytest.mark.parametrize(
    "modules",
    [
        "tool_bindings.mcp",
        "codemode.cli.servers, codemode.cli.serve",
        "codemode.cli.run, codemode.server.guard",
    ],
)
def test_nothing_heavy_is_loaded_with_the_command_or_the_package(modules):
    code = f"import sys, {modules}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()


def test_a_registry_without_servers_needs_no_sdk():
    code = (
        "import sys, trio\nfrom tool_bindings import ToolRegistry\n"
        "from tool_bindings.mcp import open_mcp_servers\n"
        "async def main():\n    async with open_mcp_servers(ToolRegistry(), []) as servers:\n"
        "        print(servers.statuses(), 'mcp' in sys.modules)\ntrio.run(main)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[] False" == done.stdout.strip()


def test_without_the_sdk_the_way_to_it_is_named():
    code = (
        "import sys, trio\nsys.modules['mcp'] = None\nfrom tool_bindings import ToolRegistry\n"
        "from tool_bindings.mcp import McpConfigError, open_mcp_servers, parse_mcp_config\n"
        "configs = parse_mcp_config({'mcpServers': {'s': {'command': 'x'}}})\n"
        "async def main():\n    try:\n"
        "        async with open_mcp_servers(ToolRegistry(), configs):\n"
        "            pass\n    except McpConfigError as error:\n        print(error)\ntrio.run(main)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "MCP servers need the MCP SDK: pip install 'codemode[mcp]'" == done.stdout.strip()
