"""Readable names of grouped tools, and that an ambiguous one names its candidates."""

from __future__ import annotations

from tool_bindings import Output, ToolDefinition
from tool_bindings.aliases import Grouped, aliases_of, readable_aliases
from tool_bindings.mcp.tools import McpTool


def test_aliases_are_readable_and_name_their_tool():
    aliases = readable_aliases([("time", "get-now", "mcp__time__get-now")])
    assert {
        "time/get-now": ("mcp__time__get-now",),
        "time.get_now": ("mcp__time__get-now",),
    } == aliases


def test_an_alias_two_tools_claim_names_both():
    aliases = readable_aliases([("s", "a.b", "one"), ("s", "a_b", "two")])
    assert ("one", "two") == aliases["s.a_b"]
    assert ("one",) == aliases["s/a.b"]
    assert ("two",) == aliases["s/a_b"]


def test_an_alias_that_is_a_registered_name_is_ambiguous_too():
    aliases = readable_aliases([("s", "x", "mcp__s__x")], ["mcp__s__x", "s/x", "s"])
    assert ("mcp__s__x", "s/x") == aliases["s/x"]
    assert ("mcp__s__x", "s") == aliases["s.x"]


class Body(Grouped):
    async def __call__(self, arguments, context): ...


def definition(name, body):
    return ToolDefinition(name, "", {"type": "object"}, Output({}), body)


def test_only_tools_of_a_group_have_aliases():
    read = definition("mcp__fs__read", Body("fs", "read", has_alias=True))
    assert {"fs/read": ("mcp__fs__read",), "fs.read": ("mcp__fs__read",)} == aliases_of(
        [read, definition("x", print)]
    )
    assert {} == aliases_of([definition("x", print)])


def test_a_name_with_invisible_characters_has_no_alias():
    body = McpTool("s", "a\u200b", print, needs_task=False)
    assert {} == aliases_of([definition("mcp__s__a", body)])
