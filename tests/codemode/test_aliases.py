"""Short names of grouped tools inside programs: the same calls, under their real names (decision 0258)."""

from __future__ import annotations

import pytest

from codemode import Settings, open_service
from tool_bindings import Output, ToolDefinition, ToolRegistry
from tool_bindings.aliases import Grouped

pytestmark = pytest.mark.needs_linux

PARAMETERS = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}


class Body(Grouped):
    async def __call__(self, arguments, context):
        return [self.group, self.name, arguments["x"]]


def grouped(public, group, name):
    return ToolDefinition(public, "", PARAMETERS, Output({}), Body(group, name, has_alias=True))


@pytest.fixture(scope="module")
def registry():
    registry = ToolRegistry()
    registry.register(grouped("mcp__fs__read-file", "fs", "read-file"))
    registry.register(grouped("mcp__fs__one", "fs", "a.b"))
    registry.register(grouped("mcp__fs__two", "fs", "a_b"))
    registry.register(grouped("mcp__time__now", "time", "now"))
    registry.register(grouped("mcp__clash__x", "clash", "x"))

    @registry.tool
    async def clash() -> str:
        return "a tool with the name of a server"

    return registry


async def run(registry, source):
    async with open_service(registry, settings=Settings(parked_workers=1)) as service:
        return await service.run_code(source)


async def test_every_spelling_makes_the_same_call_and_the_receipt_has_the_real_name(registry):
    source = """
import asyncio
server = tools.fs
calls = [
    await tools.fs.read_file(x=1),
    await tools["fs/read-file"](x=2),
    await server.read_file({"x": 3}),
    await getattr(tools, "fs").read_file(x=4),
    *await asyncio.gather(tools.fs.read_file(x=5)),
    *await codemode.batch([("fs/read-file", {"x": 6}), tools.fs.read_file(x=7)]),
]
return calls
"""
    outcome = await run(registry, source)
    assert [["fs", "read-file", number] for number in range(1, 8)] == outcome.result
    assert {"mcp__fs__read-file"} == {call.tool for call in outcome.calls}


async def test_names_that_meet_as_attributes_are_reached_as_items(registry):
    outcome = await run(registry, "return [await tools['fs/a.b'](x=1), await tools['fs/a_b'](x=2)]")
    assert [["fs", "a.b", 1], ["fs", "a_b", 2]] == outcome.result
    assert ["mcp__fs__one", "mcp__fs__two"] == [call.tool for call in outcome.calls]


@pytest.mark.parametrize("late", [False, True], ids=["found before the start", "found by the run"])
@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("tools.fs.a_b", "tool name 'fs.a_b' is ambiguous: write tools.mcp__fs__one or tools.mcp__fs__two"),
        ("tools.fs.read_fil", "unknown tool 'fs.read_fil'. Did you mean tools.fs.read_file or"),
        ("tools.now", "unknown tool 'now'. Did you mean tools.time.now?"),
        ("tools['time/later']", "unknown tool 'time/later'."),
        ("tools.other.now", "unknown tool 'other'."),
    ],
)
async def test_what_stands_for_no_tool_or_several_says_so(registry, expression, words, late):
    source = f"for _ in range(1):\n    {expression}" if late else f"return await {expression}(x=1)"
    failure = (await run(registry, source)).failure
    assert ("exception" if late else "policy") == failure.kind
    assert words in failure.message


async def test_a_tool_with_the_name_of_a_server_is_itself(registry):
    outcome = await run(registry, "return [await tools.clash(), await tools['clash/x'](x=1)]")
    assert ["a tool with the name of a server", ["clash", "x", 1]] == outcome.result
    failure = (await run(registry, "await tools.clash.x(x=1)")).failure
    assert "AttributeError" == failure.error_type


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("await tools.fs.read_file(y=1)", 'it has no argument "y"'),
        ("await tools['fs/read-file'](x='1')", '"x" must be an integer'),
        ("x = 1\ntools.fs.read_file(x=1)", "is not awaited, so it would not run"),
    ],
)
async def test_slips_are_found_before_the_start_under_any_name(registry, source, words):
    failure = (await run(registry, source)).failure
    assert "policy" == failure.kind
    assert words in failure.message


async def test_a_failed_call_names_the_real_tool_and_only_real_names_are_listed(registry):
    source = """
try:
    await tools.fs.read_file(**{"x": "1"})
except ToolCallError as error:
    failed = error.tool_name
text = await codemode.describe("fs/read-file")
known = ["fs/read-file" in tools, "fs/nothing" in tools]
return [failed, *known, sorted(tools), repr(tools.fs), "read-file" in text]
"""
    names = ["clash", "mcp__clash__x", "mcp__fs__one", "mcp__fs__read-file", "mcp__fs__two", "mcp__time__now"]
    outcome = await run(registry, source)
    assert ["mcp__fs__read-file", True, False, names, "<tools.fs: 2 tools>", True] == outcome.result


async def test_a_run_with_fewer_tools_has_fewer_aliases(registry):
    async with open_service(registry, settings=Settings(parked_workers=1)) as service:
        outcome = await service.run_code("return await tools.fs.a_b(x=1)", tools=["mcp__fs__two"])
    assert ["fs", "a_b", 1] == outcome.result
