"""The set of first-party tools."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tool_bindings.registry import ToolRegistry
from tool_bindings.tools import FsError, SearchError, ToolUsageError, first_party_tools
from tool_bindings.tools.errors import fs_error_from_os


def test_five_tools_register_in_the_order_of_the_catalogue(root):
    registry = ToolRegistry()
    definitions = first_party_tools(root)
    for definition in definitions:
        registry.register(definition)
    assert [definition.name for definition in definitions] == ["read", "write", "edit", "glob", "grep"]


def test_missing_root_is_refused(tmp_path):
    with pytest.raises(FsError) as caught:
        first_party_tools(tmp_path / "nope")
    assert caught.value.code == "FS_NOT_FOUND"


async def test_unknown_argument_is_refused(tools):
    error = await tools.error("read", file_path="a", lines=3)
    assert error.code == "INVALID_ARGS"


def test_recorded_names_are_those_of_the_contract():
    """spec/contract.md 1.10."""
    assert FsError("FS_IO_ERROR", "x").recorded_name == "FsError"
    assert SearchError("SEARCH_FAILED", "x").recorded_name == "SearchError"
    assert not hasattr(ToolUsageError("x"), "code")


def test_error_of_the_operating_system_never_shows_its_own_paths():
    error = fs_error_from_os(OSError(5, "Input/output error", "/host/secret"), "read", "a.txt")
    assert (error.code, str(error)) == ("FS_IO_ERROR", 'cannot read "a.txt": input/output error')
    error = fs_error_from_os(OSError("odd /host/secret"), "read", "a.txt")
    assert str(error) == 'cannot read "a.txt": the operating system refused'


def open_descriptors():
    gc.collect()  # Roots of earlier tests close theirs when they are collected.
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_call_leaves_a_descriptor_open_or_litter_behind(tools, root):
    (root / "a.txt").write_text("x\n")
    (root / "link.txt").symlink_to("a.txt")
    (root / "loop").symlink_to("loop")
    paths = ["a.txt", "link.txt", "./../root/a.txt", "missing", "a.txt/b", "loop", "/etc/passwd", "y" * 300]
    calls = [("read", {"file_path": path}) for path in paths]
    calls += [("write", {"file_path": path, "content": "x\n"}) for path in paths]
    calls += [("edit", {"file_path": path, "old_string": "x", "new_string": "xy"}) for path in paths]
    calls += [("glob", {"pattern": "*", "path": path}) for path in [".", *paths]]
    calls += [("grep", {"pattern": "x", "path": path}) for path in [".", *paths]]
    outcomes = set()
    before = None
    for _ in range(3):
        for name, arguments in calls:
            outcomes.add((name, (await tools.dispatch(name, **arguments)).is_error))
        # Trio itself opens some descriptors the first time.
        before = open_descriptors() if before is None else before
    assert open_descriptors() == before
    assert len(outcomes) == 10, "each tool must have succeeded and failed"
    assert sorted(entry.name for entry in root.iterdir()) == ["a.txt", "link.txt", "loop", "missing"]
