"""Stub text as a whole: it parses, a type checker understands it, and it is the same everywhere."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from generated_tools import generated_tools

from tool_bindings import Output, ToolDefinition, ToolRegistry, render_stubs, signature
from tool_bindings.mcp.schemas import output_schema
from tool_bindings.tools.catalogue import first_party_tools

SUPPORT = Path(__file__).parent.parent / "support"
PROGRAM = """
async def program() -> None:
    found = await tools.find(query="x", page=2, mode="fast")
    print(found["items"][0]["title"].upper(), found["total"] + 1)
    if found["next"] is not None:
        print(found["next"].bit_length())
    print((await tools.naïve(größe=1))["ключ"])
    print((await tools.keyed({"from": "a"}))["anything"])
    print((await tools.structured())["structuredContent"]["from"].upper())
    await tools.noted(owner="a")
    print((await tools.plain())["content"], (await tools.plain()).get("structuredContent"))
    print(found["extra"] if "extra" in found else "")
    try:
        await tools.nothing()
    except ToolCallError as error:
        print(error.toolName.upper(), error.tool_name)


async def wrong() -> None:
    await tools.find(quary="x")
    await tools.find("x")
    await tools.find(query=1)
    await tools.find(query="x", mode="slow")
    (await tools.find(query="x"))["titles"]
    (await tools.find(query="x"))["items"][0]["title"] + 1
    await tools.noted(owner=1)
    await tools.missing()
    await tools.keyed({"form": "a"})
    (await tools.structured())["structuredContent"]["form"]
    tools["find"]
"""
"""A program that uses the stubs below; each statement of `wrong` is one error."""


def tool(name, properties=None, required=(), output=None, *, closed=True):
    parameters = {"type": "object", "properties": properties or {}, "required": list(required)}
    return ToolDefinition(
        name,
        f"Does {name}.",
        parameters | ({"additionalProperties": False} if closed else {}),
        Output(output or {}),
        print,
    )


def record(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.fixture(scope="module")
def typed_tools():
    text, number = {"type": "string"}, {"type": "integer"}
    item = record(title=text)
    found = record(
        items={"type": "array", "items": item}, total=number, next={"oneOf": [number, {"type": "null"}]}
    )
    found["properties"]["extra"] = text
    mode = {"type": "string", "enum": ["fast", "exact"]}
    return [
        tool("find", {"query": text, "page": number, "mode": mode}, ["query"], found),
        tool("naïve", {"größe": number}, ["größe"], record(ключ=text)),
        tool("keyed", {"from": text}, ["from"], {"type": "object"}),
        tool("nothing", output={"type": "null"}),
        tool("structured", output=output_schema(record(**{"from": text}))),
        tool("plain", output=output_schema(None)),
        *(tool(name, {"owner": {**text, "description": "who " * 20}}) for name in ("noted", "noted_too")),
        tool("odd-name"),
        tool("class", output=record(x=text)),
    ]


def test_a_type_checker_accepts_what_works_and_nothing_else(typed_tools, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(render_stubs(typed_tools) + PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", str(path)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    reported = {int(line.split(":")[1]) for line in checked.stdout.splitlines() if ": error: " in line}
    lines = path.read_text(encoding="utf-8").splitlines()
    first = lines.index("async def wrong() -> None:") + 2
    assert set(range(first, len(lines) + 1)) == reported, checked.stdout + checked.stderr


@pytest.mark.parametrize("seed", range(20))
def test_generated_tools_always_give_python(seed):
    tools = generated_tools(40, seed)
    text = render_stubs(tools)
    tree = ast.parse(text)
    text.encode()
    (protocol,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tools"]
    methods = [node.name for node in protocol.body if isinstance(node, ast.AsyncFunctionDef)]
    assert len(tools) == len(methods) + text.count("\n  # tools[")
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(classes) == len(set(classes))
    assert all(len(signature(each)) <= 300 and "\n" not in signature(each) for each in tools)


def test_the_text_is_byte_identical_over_20_processes_with_different_hash_seeds():
    program = (
        "import sys, tempfile; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from generated_tools import generated_tools; from tool_bindings import render_stubs;"
        "from tool_bindings.tools.catalogue import first_party_tools;"
        "tools = [*first_party_tools(Path(sys.argv[2])), *generated_tools(200)];"
        "sys.stdout.buffer.write(render_stubs(tools).encode())"
    )
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-c", program, str(SUPPORT), root]
        texts = set()
        for first in range(0, 20, 4):
            processes = [
                subprocess.Popen(command, env={"PYTHONHASHSEED": str(seed)}, stdout=subprocess.PIPE)
                for seed in range(first, first + 4)
            ]
            texts |= {process.communicate()[0] for process in processes}
        (text,) = texts
        expected = render_stubs([*first_party_tools(Path(root)), *generated_tools(200)])
    assert expected == text.decode()


def test_the_registry_accepts_what_the_generator_makes():
    registry = ToolRegistry()
    for each in generated_tools(60, seed=3):
        registry.register(each)
    assert 60 == len(registry.names())
