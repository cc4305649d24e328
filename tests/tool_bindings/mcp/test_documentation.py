"""The configuration snippets in the documentation are what clients, and we, can read."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tool_bindings.mcp import HttpServer, StdioServer, parse_mcp_config

PROJECT = Path(__file__).resolve().parents[3]
PAGES = [PROJECT / "docs" / "mcp.md", PROJECT / "README.md"]
SNIPPETS = [
    (page.name, kind, text)
    for page in PAGES
    for kind, text in re.findall(r"```(json|toml)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
]


def test_there_are_snippets_for_several_clients():
    texts = "\n".join(text for _, _, text in SNIPPETS)
    for words in ('"mcpServers"', '"servers"', "[mcp_servers.codemode]"):
        assert words in texts


@pytest.mark.parametrize(("page", "kind", "text"), SNIPPETS)
def test_every_snippet_parses_and_starts_something_that_exists(page, kind, text):
    document = json.loads(text) if kind == "json" else tomllib.loads(text)
    servers = document.get("mcpServers") or document.get("servers") or document["mcp_servers"]
    environ = {"DOCS_TOKEN": "x", "workspaceFolder": "/w"}
    configs = parse_mcp_config({"mcpServers": servers}, environ)
    assert len(servers) == len(configs)
    for config in configs:
        if config.name == "codemode":
            assert isinstance(config.transport, StdioServer)
            assert ("codemode", "serve") == (config.transport.command, config.transport.args[0])


def test_the_documented_options_of_a_server_are_read():
    text = next(text for _, _, text in SNIPPETS if "DOCS_TOKEN" in text)
    time, docs = parse_mcp_config(json.loads(text), {"DOCS_TOKEN": "t0ken"})
    assert {"TZ": "UTC"} == time.transport.env
    assert isinstance(docs.transport, HttpServer)
    assert {"Authorization": "Bearer t0ken"} == docs.transport.headers
    assert (20.0, {"search"}) == (docs.tool_call_timeout_seconds, docs.concurrency_safe)
