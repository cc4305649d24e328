"""What `--tools`, `--allow` and `--root` make of a command's registry."""

from __future__ import annotations

import argparse
import json
import sys

import pytest

from codemode.cli import main, spec_errors
from codemode.cli.status import CommandError
from codemode.cli.toolset import load_toolset

GOOD = """
from __future__ import annotations
import dataclasses
from tool_bindings import ToolRegistry

registry = ToolRegistry()

@dataclasses.dataclass
class Point:
    x: int

@registry.tool
def double(x: int) -> int:
    "Double a number."
    return 2 * x

def build():
    other = ToolRegistry()

    @other.tool(concurrency_safe=True)
    async def triple(x: int) -> int:
        "Triple a number."
        return 3 * x

    return other

class Holder:
    inner = registry

def fails():
    raise ValueError("no\\nluck")

def gives_none():
    return None

async def build_async():
    return registry

def needs_argument(x):
    return registry

number = 7

def guarded():
    other = ToolRegistry()
    other.add_guard(lambda call: "never")
    return other

def clashing():
    other = ToolRegistry()

    @other.tool(name="read")
    def mine() -> int:
        return 1

    return other
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_tools.py").write_text(GOOD)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("codemode_tools_") or name == "my_tools"]:
        del sys.modules[name]


def load(*specs, allow=(), root="."):
    return load_toolset(argparse.Namespace(tools=list(specs), allow=list(allow), root=root))


BUILT_IN = ["edit", "glob", "grep", "read", "write"]


@pytest.mark.parametrize(
    ("expected", "specs"),
    [
        (BUILT_IN, []),
        ([], ["none"]),
        (["double"], ["none", "my_tools.py:registry"]),
        (["double"], ["my_tools:registry", "none"]),
        (["double"], ["none", "./my_tools.py:Holder.inner"]),
        (["double", *BUILT_IN], ["my_tools.py:registry"]),
        (["triple", *BUILT_IN], ["my_tools:build"]),
        (["double", "triple", *BUILT_IN], ["my_tools.py:registry", "my_tools.py:build"]),
    ],
)
def test_specs_add_tools_and_none_leaves_out_the_built_in_ones(folder, expected, specs):
    toolset = load(*specs)
    assert sorted(expected) == toolset.allowed == sorted(toolset.registry.names())


def test_allow_narrows_what_a_program_may_use(folder):
    toolset = load(allow=["read", "grep", "read"])
    assert ["grep", "read"] == toolset.allowed
    assert BUILT_IN == sorted(toolset.registry.names())


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        ("must be module:attribute, path/to/file.py:attribute, or `none`", "my_tools"),
        (
            "path/to/file.py:attribute, or `none`; write --tools my_tools.py:registry",
            "my_tools.py",
        ),
        ("; write --tools my_tools.py:registry", "my_tools.py:"),
        ("must be module:attribute", ":registry"),
        ("'nowhere.py' does not exist", "nowhere.py:registry"),
        ("'.' is not a file", "./:registry"),
        ("there is no module 'nowhere' here or installed; a file is named by its path", "nowhere:registry"),
        ("there is no module 'my_tools.deeper'", "my_tools.deeper:registry"),
        ("'my_tools.py' has no attribute 'nope'; write --tools my_tools.py:registry", "my_tools.py:nope"),
        ("'my_tools.py' has no attribute 'Holder.nope'", "my_tools.py:Holder.nope"),
        ("calling fails() raised ValueError: no luck (my_tools.py, line 31)", "my_tools.py:fails"),
        ("gives nothing (None); it must be a ToolRegistry", "my_tools.py:gives_none"),
        ("must be a plain `def`, not async", "my_tools.py:build_async"),
        (
            "needs_argument() missing 1 required positional argument: 'x' (my_tools.py, line 39)",
            "my_tools.py:needs_argument",
        ),
        ("gives an object of type int", "my_tools.py:number"),
    ],
)
def test_a_wrong_spec_is_named_with_what_is_wrong(folder, expected, spec):
    with pytest.raises(CommandError) as caught:
        load(spec)
    assert f"--tools {spec!r}" in str(caught.value)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert 2 == caught.value.status


@pytest.mark.parametrize(
    ("expected", "source"),
    [
        ("importing it raised ZeroDivisionError: division by zero (bad.py, line 2)", "\n1 / 0"),
        ("importing it raised SystemExit: 3 (bad.py, line 1)", "raise SystemExit(3)"),
        (
            "No module named 'not_installed' (bad.py, line 2); install 'not_installed' in the environment of",
            "\nfrom not_installed.deeper import x",
        ),
        ("importing it raised SyntaxError: invalid syntax (bad.py, line 3)", "x = 1\n\ndef"),
        ("importing it raised IndentationError: unexpected indent (bad.py, line 2)", "x = 1\n  y = 2"),
        ("importing it raised AssertionError (bad.py, line 1)", "assert False"),
        # What raises is ours or the standard library's; the line is the user's.
        (
            "annotate the parameter 'x'; JsonValue stands for any JSON (bad.py, line 3)",
            "import tool_bindings\nregistry = tool_bindings.ToolRegistry()\n@registry.tool\ndef f(x): pass",
        ),
        ("(bad.py, line 2)", "import json\njson.loads('{')"),
        ("(bad.py, line 2)", "import importlib\nimportlib.import_module('not_installed')"),
        ("name it as module:attribute", "from .other import x"),
        ("has no attribute 'registry'; make one there: `registry = ToolRegistry()`", "x = 1"),
    ],
)
@pytest.mark.parametrize("spec", ["bad.py:registry", "bad:registry"])
def test_a_spec_that_raises_on_import_gives_one_line(folder, expected, source, spec):
    (folder / "bad.py").write_text(source)
    sys.modules.pop("bad", None)
    with pytest.raises(CommandError) as caught:
        load(spec)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_module_that_is_installed_is_named_where_no_file_of_the_user_is_to_blame(folder, monkeypatch):
    monkeypatch.setattr(spec_errors, "_SITE", (folder,))
    (folder / "bad.py").write_text("import json\njson.loads('{')")
    sys.modules.pop("bad", None)
    with pytest.raises(CommandError, match=r"raised JSONDecodeError: .* \(bad.py, line 2\)"):
        load("bad:registry")


def test_tools_of_the_same_name_clash_loudly(folder):
    with pytest.raises(CommandError, match=r"tool 'read' of the built-in tools .* already registered"):
        load("my_tools.py:clashing")
    with pytest.raises(CommandError, match=r"tool 'double' of --tools 'my_tools:registry' cannot be added"):
        load("my_tools.py:registry", "my_tools:registry")


def test_policies_of_a_second_registry_are_never_dropped_silently(folder):
    with pytest.raises(CommandError, match="put it first"):
        load("my_tools.py:registry", "my_tools.py:guarded")
    assert "double" in load("my_tools.py:guarded", "my_tools.py:registry").allowed


def test_an_allowed_name_that_is_no_tools_gets_the_nearest(folder):
    with pytest.raises(CommandError, match=r"--allow 'raed': there is no such tool; did you mean 'read'"):
        load(allow=["raed"])


@pytest.mark.parametrize(
    ("expected", "root"), [("does not exist", "nope"), ("is not a directory", "my_tools.py")]
)
def test_a_root_that_is_no_directory_is_refused(folder, expected, root):
    with pytest.raises(CommandError, match=expected):
        load(root=root)


def test_a_module_can_import_what_lies_beside_it(folder):
    (folder / "lib").mkdir()
    (folder / "lib" / "helper.py").write_text(
        "from tool_bindings import ToolRegistry\nregistry = ToolRegistry()"
    )
    (folder / "lib" / "entry.py").write_text("from helper import registry")
    assert [] == load("none", "lib/entry.py:registry").allowed
    del sys.modules["helper"]


def test_the_list_says_on_or_off_and_parallel_or_exclusive(folder, capsys):
    assert 0 == main(
        ["tools", "--tools", "my_tools.py:build", "--allow", "triple", "--allow", "write", "--all"]
    )
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert [
        ["edit", "off", "exclusive"],
        ["glob", "off", "exclusive"],
        ["grep", "off", "exclusive"],
        ["read", "off", "parallel"],
        ["triple", "on", "parallel"],
        ["write", "on", "exclusive"],
        ["run_code", "on", "exclusive"],
    ] == rows
    assert 0 == main(["tools", "--allow", "read"])
    assert ["read", "on", "parallel"] == capsys.readouterr().out.split()[:3]


def test_an_empty_list_says_how_to_fill_it(folder, capsys):
    assert 0 == main(["tools", "--tools", "none"])
    out, err = capsys.readouterr()
    assert "" == out
    assert ["no tools; add some with --tools, or leave out `--tools none`"] == err.splitlines()


def test_stubs_show_only_what_is_allowed(folder, capsys):
    import ast

    assert 0 == main(["stubs", "--allow", "read"])
    out = capsys.readouterr().out
    ast.parse(out)
    assert "async def read(" in out
    assert "async def write(" not in out


def test_what_a_tool_module_prints_does_not_enter_the_output(folder, capsys):
    (folder / "loud.py").write_text(GOOD + "\nprint('hello')\n")
    assert 2 == main(["run", "--json", "-c", "return 1", "--tools", "loud.py:nope"])
    out, err = capsys.readouterr()
    assert "usage" == json.loads(out)["error"]["kind"]
    assert "hello\n" == err
