"""`--mcp FILE` of the command line, with real servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_linux

SERVER = str(Path(__file__).resolve().parents[2] / "support" / "mcp_test_server.py")
TIMEOUT_SECONDS = 300


@pytest.fixture
def config(tmp_path):
    """Give a function that writes a configuration and returns its path."""

    def write(**servers):
        entries = {
            name: {"command": sys.executable, "args": [SERVER, "--wire", behaviour], "codemode": own}
            for name, (behaviour, own) in servers.items()
        }
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": entries}))
        return str(path)

    return write


def codemode(*arguments):
    command = [sys.executable, "-m", "codemode", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return done.returncode, done.stdout, done.stderr


def test_a_program_combines_servers_and_goes_on_when_one_of_them_dies(config):
    path = config(odd=("odd", {}), big=("integer", {}), dies=("die", {}))
    code = (
        "one = await tools.mcp__odd__x()\n"
        "try:\n    await tools.mcp__dies__x()\nexcept ToolCallError as error:\n    reason = str(error)\n"
        "two = await tools.mcp__big__x()\n"
        "return [one['content'][1], two['structuredContent']['n'], 'went away' in reason]"
    )
    status, out, err = codemode("run", "--tools", "none", "--mcp", path, "--json", "-c", code)
    assert 0 == status, err
    outcome = json.loads(out)
    assert ["bare", 10**30, True] == outcome["result"]
    assert [("mcp__odd__x", "succeeded"), ("mcp__dies__x", "unknown"), ("mcp__big__x", "succeeded")] == [
        (call["tool"], call["status"]) for call in outcome["calls"]
    ]


def test_allow_takes_a_readable_alias_and_refuses_what_nobody_has(config):
    path = config(w=("collide", {}))
    status, out, _ = codemode("tools", "--tools", "none", "--mcp", path, "--allow", "w/a.b")
    assert 0 == status
    assert 1 == out.count("mcp__w__")
    status, _, err = codemode("run", "--tools", "none", "--mcp", path, "--allow", "w/c", "-c", "pass")
    assert 2 == status
    assert "--allow 'w/c': there is no such tool" in err


def test_a_server_that_does_not_start_is_told_on_standard_error_and_the_program_runs(config):
    path = config(dead=("dead", {}))
    status, out, err = codemode("run", "--tools", "none", "--mcp", path, "-c", "return len(tools)")
    assert (0, "0\n") == (status, out)
    assert "MCP server 'dead': ended before the handshake was complete" in err
    assert "cannot find my configuration" in err


def test_a_server_that_must_start_and_a_wrong_file_end_the_command(config, tmp_path):
    path = config(dead=("dead", {"failOnStartupError": True}))
    status, out, err = codemode("run", "--tools", "none", "--mcp", path, "-c", "return 1")
    assert (1, "") == (status, out)
    assert err.startswith("codemode run: MCP server 'dead': ended before")
    status, _, err = codemode("call", "x", "{}", "--mcp", str(tmp_path / "missing.json"))
    assert 2 == status
    assert "--mcp: cannot read" in err
