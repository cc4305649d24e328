"""What a program is told of its tools: the same object for all programs, and what it names besides."""

from __future__ import annotations

import pytest

from codemode import namespace as namespace_module
from codemode.namespace import OfferedTools
from tool_bindings import Output, ToolDefinition
from tool_bindings.aliases import Grouped

PARAMETERS = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


class Body(Grouped):
    async def __call__(self, arguments, context):
        return None


def tool(name, alias=None):
    body = Body("files", alias or name, has_alias=alias is not None)
    return ToolDefinition(name, "", PARAMETERS, Output({}), body)


@pytest.fixture
def offered():
    names = ["add", "list-all", "größe", "mcp__files__read-file"]
    return OfferedTools([tool(name, "read-file" if name.startswith("mcp") else None) for name in names])


def space_of(offered, source, *, judge=True):
    return offered.namespace(source, print, judge_arguments=judge)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("return 1", []),
        ("await tools.add(x=1)", ["add"]),
        ("await tools['list-all'](x=1)", ["list-all"]),
        ("tools.list\nall", []),
        ("await tools.größe(x=1)", ["größe"]),
        ("await tools.files.read_file(x=1)", ["mcp__files__read-file"]),
        ("await tools['files/read-file'](x=1)", ["mcp__files__read-file"]),
        ("name = 'mcp__files__read-file'; add = 1", ["add", "mcp__files__read-file"]),
        ("address = 'added'", []),
    ],
)
def test_arguments_are_known_of_the_tools_that_a_program_names(offered, source, named):
    assert named == list(space_of(offered, source).parameters)


def test_what_does_not_depend_on_the_program_is_the_same_object_every_time(offered):
    one, other = space_of(offered, "return 1"), space_of(offered, "await tools.add(x=1)")
    assert one.members is other.members
    assert one.aliases is other.aliases


def test_nothing_is_known_for_certain_where_a_listener_may_answer_instead(offered):
    assert {} == space_of(offered, "await tools.add(x=1)", judge=False).parameters


def test_of_many_tools_only_those_that_a_program_names_are_told_with_their_signature(monkeypatch):
    monkeypatch.setattr(namespace_module, "_MANY", 2)
    offered = OfferedTools([tool(f"tool_{number}") for number in range(3)])
    space = space_of(offered, "await tools.tool_1(x=1)")
    assert ["tool_1"] == list(space.signatures)
    assert "x: int" in space.signatures["tool_1"]
    assert 'tool_1(...), as codemode.describe("tool_1") says' == space.members["tool_1"]


def test_of_few_tools_every_signature_is_told_and_none_twice(offered):
    space = space_of(offered, "await tools.add(x=1)")
    assert {} == space.signatures
    assert "x: int" in space.members["add"]
