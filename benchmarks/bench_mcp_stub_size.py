"""Question: how much shorter are stubs than the tool list a client would otherwise show a model?

Unit: bytes of UTF-8, for the recorded lists of public MCP servers in data/mcp-tool-lists.json.
Method: `render_stubs` of their definitions, against the minified JSON list of name, description,
inputSchema and outputSchema. Descriptions are the same text in both.
Decision: above 60% together, stubs would not be worth having for MCP tools; see docs/mcp.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tool_bindings import render_stubs
from tool_bindings.mcp import parse_mcp_config
from tool_bindings.mcp.tools import define_tools

LISTS = Path(__file__).parent / "data" / "mcp-tool-lists.json"
LIMIT_PERCENT = 60


def measured(tools_by_server: dict[str, list[dict[str, Any]]]) -> tuple[int, int]:
    """Return bytes of the minified list and of the stubs of all its tools."""
    definitions, listed = [], []
    for name, tools in tools_by_server.items():
        (config,) = parse_mcp_config({"mcpServers": {name: {"command": "recorded"}}})
        definitions += define_tools(config, tools, lambda: None)
        listed += tools
    minified = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return len(minified.encode()), len(render_stubs(definitions).encode())


def main() -> int:
    """Print one line per server and one for all of them."""
    recorded = json.loads(LISTS.read_text(encoding="utf-8"))
    print(f"{'server':<40} {'tools':>5} {'list':>7} {'stubs':>7} {'':>5}")
    rows = [(entry["server"], {name: entry["tools"]}) for name, entry in recorded.items()]
    rows.append(("all", {name: entry["tools"] for name, entry in recorded.items()}))
    for title, tools_by_server in rows:
        before, after = measured(tools_by_server)
        count = sum(map(len, tools_by_server.values()))
        print(f"{title:<40} {count:>5} {before:>7} {after:>7} {100 * after / before:>4.0f}%")
    print(f"limit for all together: {LIMIT_PERCENT}%")
    return 0 if 100 * after <= LIMIT_PERCENT * before else 1


if __name__ == "__main__":
    sys.exit(main())
