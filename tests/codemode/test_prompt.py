"""What a model is told: that it is all there, the same each time, and within its budget."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import corpus
import pytest
from many_tools import many_tools

from codemode import Settings, open_service
from codemode.prompt import PROMPT_BYTES, render_prompt
from tool_bindings import Output, ToolDefinition, ToolRegistry
from tool_bindings.aliases import Grouped

SUPPORT = Path(__file__).parent.parent / "support"


def tool(name, description="", parameters=None):
    return ToolDefinition(name, description, parameters or {"type": "object"}, Output({}), print)


class Read(Grouped):
    async def __call__(self, arguments, context): ...


@pytest.fixture(scope="module")
def few():
    return render_prompt(corpus.fixture_registry().definitions())


@pytest.fixture(scope="module")
def many():
    return render_prompt(many_tools())


@pytest.mark.parametrize(
    "part",
    [
        "`code`",
        "`description`",
        "both required",
        "`await tools.NAME(key=value)`",
        '`await tools["NAME"](key=value)`',
        "`ToolCallError`",
        "Write plain dicts and lists",
        "`FooArgs(...)` is a NameError",
        "JSON data",
        "`toolName`",
        "asyncio.gather(",
        "run alone, in the order they were made",
        "`print(...)`",
        "`return VALUE`",
        "Images from tools are attached after the run",
        "nothing is kept from earlier runs",
    ],
)
def test_the_instructions_say_everything_they_must(few, many, part):
    """spec/run_code 2.6."""
    assert part in few
    assert part in many


def test_concurrency_is_a_condition_and_said_once(few):
    """Field report F011."""
    (bullet,) = [line for line in few.splitlines() if "gather" in line]
    assert bullet.startswith("- Calls whose arguments are known already and that do not need each other's")
    assert "may run together" in bullet
    assert "return_exceptions=True" in bullet
    assert "Up to 10 calls" in bullet
    assert "Up to 3 calls" in render_prompt([], Settings(max_parallel_sub_calls=3))


def test_limits_are_those_of_the_settings():
    """Field report F066: one budget, and it is stated."""
    text = render_prompt(
        [], Settings(wall_seconds=30, compute_seconds=1.5, max_calls=7, max_output_bytes=999)
    )
    assert "One run has 30 s, 1.5 s of them for computing, 7 calls and 999 bytes of output." in text


def test_few_tools_are_declared_whole_and_need_no_search(few):
    """Field report F117."""
    (block,) = re.findall(r"```python\n(.*?)```", few, re.DOTALL)
    ast.parse(block)
    for name in corpus.fixture_registry().names():
        assert f"def {name}(" in block or f'tools["{name}"]' in block
    assert "codemode.search" not in few


def test_many_tools_stay_within_the_budget_and_are_found_by_searching(many):
    assert len(many.encode()) <= PROMPT_BYTES
    assert "There are 3000 tools" in many
    assert "codemode.search(" in many
    assert "codemode.describe(" in many
    assert 49 == len(re.findall(r"^- [a-z0-9]+ \(\d+\): ", many, re.MULTILINE))


@pytest.mark.parametrize("count", [1, 10, 60, 100, 130, 180, 300, 1000, 3000])
@pytest.mark.parametrize("max_bytes", [4096, 8192, PROMPT_BYTES, 200_000])
def test_no_number_of_tools_breaks_the_budget(count, max_bytes):
    tools = many_tools()[:count]
    text = render_prompt(tools, max_bytes=max_bytes)
    assert len(text.encode()) <= max_bytes
    assert count == len(re.findall(r"^(?:- tools|  async def|  # tools\[)", text, re.MULTILINE)) or (
        f"There are {count} tools" in text
    )


def test_a_budget_that_is_too_small_keeps_the_instructions_and_the_way_to_search():
    text = render_prompt(many_tools(), max_bytes=0)
    assert "`return VALUE`" in text
    assert "codemode.search(" in text
    assert len(text) < 6000


def test_three_thousand_tools_take_less_than_a_second():
    tools = many_tools()
    started = time.process_time()
    render_prompt(tools)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("count", [20, 120, 3000])
def test_the_text_does_not_depend_on_the_order_of_registration(count):
    """Field report F116."""
    tools = many_tools()[:count]
    shuffled = random.Random(1).sample(tools, len(tools))
    assert render_prompt(tools) == render_prompt(shuffled)


def test_the_text_is_the_same_in_processes_with_different_hash_seeds():
    program = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1]); from many_tools import many_tools;"
        "from codemode.prompt import render_prompt;"
        "print([hashlib.sha256(render_prompt(many_tools()[:n]).encode()).digest() for n in (9, 120, 3000)])"
    )
    command = [sys.executable, "-c", program, str(SUPPORT)]
    runs = [
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("0", "1")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert "[" in runs[0].stdout


@pytest.mark.parametrize("name", ["```", "x\ny", "\x1b[0m", "\u202e", "", "'", '"', "\ud800"])
def test_no_name_or_description_breaks_out_of_its_place(name):
    tools = [tool(f"a{name}", f"Says {name}.\n```\n- and more"), tool("b")]
    for text in (render_prompt(tools), render_prompt([*tools, *many_tools()[:150]])):
        text.encode()
        assert "\x1b" not in text
        assert "\u202e" not in text
    fences = re.findall(r"^`{3,}", render_prompt(tools), re.MULTILINE)
    assert 2 == len(fences)
    assert fences[0] == fences[1]


@pytest.mark.needs_linux
async def test_every_name_the_text_mentions_is_there():
    """Field report F030."""
    registry = corpus.fixture_registry()
    async with open_service(registry) as service:
        text = service.prompt()
        members = set(re.findall(r"\b(codemode\.[a-z]+)", text)) | {"codemode.search", "codemode.describe"}
        members |= {f"tools.{name}" for name in re.findall(r"async def (\w+)", text)}
        members |= set(re.findall(r'tools\["[a-z-]+"\]', text))
        source = "\n".join([*sorted(members), "ToolCallError", "return 1"])
        outcome = await service.run_code(source)
    assert 1 == outcome.result, outcome.failure
    assert len(members) >= 13


@pytest.mark.needs_linux
async def test_a_service_tells_of_the_tools_it_is_asked_about():
    async with open_service(corpus.fixture_registry()) as service:
        text = service.prompt(tools=["add"])
        assert "def add(" in text
        assert "def echo(" not in text
    assert "class Tools(Protocol):\n  pass" in render_prompt(ToolRegistry().definitions())


def test_short_names_of_servers_tools_are_mentioned_with_one_that_works():
    """Decision 0258."""
    read = ToolDefinition(
        "mcp__fs__read-file", "", {"type": "object"}, Output({}), Read("fs", "read-file", has_alias=True)
    )
    line = (
        '- Tools of servers have short names as well: `tools.fs.read_file` is `tools["mcp__fs__read-file"]`.'
    )
    assert line in render_prompt([read, tool("other")]).splitlines()
    assert "short names" not in render_prompt([tool("other")])
    # There is a tool `fs`, so `tools.fs.read_file` would not work.
    assert "short names" not in render_prompt([read, tool("fs")])
