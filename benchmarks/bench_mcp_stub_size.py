"""How much shorter are stubs than the tool list a client would otherwise show a model?

    python benchmarks/bench_mcp_stub_size.py

Unit: bytes of UTF-8, for the recorded lists of public MCP servers in data/mcp-tool-lists.json.
Method: `render_stubs` of their definitions, against the minified JSON list of name, description,
inputSchema and outputSchema. Descriptions are the same text in both. One round says it all.
Decision: above 60% together, stubs would not be worth having for MCP tools; see docs/mcp.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case, serve_plain

from tool_bindings import render_stubs
from tool_bindings.mcp import parse_mcp_config
from tool_bindings.mcp.tools import define_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTS = Path(__file__).parent / "data" / "mcp-tool-lists.json"
MAX_SHARE = 0.6
TOGETHER = "all servers"


def listed_bytes(tools_by_server: dict[str, list[dict[str, Any]]]) -> int:
    """Return the size of the minified list."""
    listed = [tool for tools in tools_by_server.values() for tool in tools]
    return len(json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode())


def stub_bytes(tools_by_server: dict[str, list[dict[str, Any]]]) -> int:
    """Return the size of the stubs of all tools."""
    definitions = []
    for name, tools in tools_by_server.items():
        (config,) = parse_mcp_config({"mcpServers": {name: {"command": "recorded"}}})
        definitions += define_tools(config, tools, lambda: None)
    return len(render_stubs(definitions).encode())


def groups() -> Iterator[tuple[str, dict[str, list[dict[str, Any]]]]]:
    """Yield each server's tools, and then those of all together."""
    recorded = json.loads(LISTS.read_text(encoding="utf-8"))
    for name, entry in recorded.items():
        yield entry["server"], {name: entry["tools"]}
    yield TOGETHER, {name: entry["tools"] for name, entry in recorded.items()}


def serve() -> None:
    """Measure what the coordinator asks for."""
    cases = {}
    for title, tools_by_server in groups():
        listed, stubs = listed_bytes(tools_by_server), stub_bytes(tools_by_server)
        cases[f"{title}, list"] = Case(lambda size=listed: float(size), unit="B", every=5)
        cases[f"{title}, stubs"] = Case(lambda size=stubs: float(size), unit="B", every=5)
    serve_plain(cases)


BENCHMARK = Benchmark(
    "mcp_stub_size",
    "How much shorter are stubs than the tool list a client would otherwise show a model?",
    __file__,
    serve,
    claims=(
        Claim(
            "stubs of all recorded tools / their list",
            f"mcp_stub_size/{TOGETHER}, stubs",
            f"mcp_stub_size/{TOGETHER}, list",
            MAX_SHARE,
        ),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
