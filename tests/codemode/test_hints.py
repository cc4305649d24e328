"""Tools in place of what a program cannot have: named only where they are there."""

from __future__ import annotations

from codemode.hints import hints_for


def test_only_tools_that_are_there_are_named():
    assert {} == hints_for([])
    assert {} == hints_for(["add", "edit"])
    hints = hints_for(["read", "bash"])
    assert "use `await tools.read(...)`" == hints["open"] == hints["glob"]
    assert "use `await tools.read(...)` or `await tools.bash(...)`" == hints["os"]
    assert "use `await tools.bash(...)`" == hints["subprocess"]
    assert "requests" not in hints


def test_the_likeliest_tool_comes_first():
    hints = hints_for(["write", "read", "glob", "grep", "edit"])
    assert "use `await tools.read(...)` or `await tools.write(...)`" == hints["open"]
    assert hints["glob"].startswith("use `await tools.glob(...)`")
