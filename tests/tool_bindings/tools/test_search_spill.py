"""Storing complete search results: spec/tests 140 and 141, with a store that stands for a real one."""

from __future__ import annotations

import pytest

from tool_bindings.content import blocks_text, text_block
from tool_bindings.policy import Accept
from tool_bindings.tools.catalogue import DEFAULT_SEARCH_LIMITS
from tool_bindings.tools.search_spill import StoredText, attach_search_spill


class Store:
    def __init__(self):
        self.saved = []
        self.error = None

    async def save_text(self, session, **facts):
        if self.error is not None:
            raise self.error
        self.saved.append({"session": session, **facts})
        return StoredText("spill:1", "Read it with read.")


@pytest.fixture
def store(tools):
    store = Store()
    attach_search_spill(tools.registry, tools.definitions.values(), store, DEFAULT_SEARCH_LIMITS)
    return store


@pytest.fixture
def many(root):
    for n in range(120):
        (root / f"{n:03}.txt").write_text("x\n" * 3)


async def test_complete_list_of_paths_is_stored(tools, store, many):
    """spec/tests 140."""
    answer = await tools("glob", pattern="*.txt")
    (saved,) = store.saved
    assert saved["content"].split("\n") == answer.value["paths"]
    assert len(answer.value["paths"]) == 120
    facts = (saved["session"], saved["tool_name"], saved["label"], saved["suggested_name"])
    assert facts == (tools.session, "glob", "result", "glob-results.txt")
    assert answer.text.endswith(
        "(Showing 100 of 120 paths. Full sorted result stored at: spill:1. Read it with read.)"
    )
    assert answer.meta["total"] == 120


async def test_complete_list_of_matches_is_stored(tools, store, many):
    """spec/tests 141."""
    answer = await tools("grep", pattern="x")
    (saved,) = store.saved
    assert saved["suggested_name"] == "grep-results.txt"
    assert saved["content"].startswith("Found 360 matches\n\n000.txt\nLine 1: x\n")
    assert saved["content"].count("Line ") == 360
    assert answer.text.startswith("Found 250 of 360 matches\n")
    assert answer.text.endswith("\n\n(Full grep result stored at: spill:1. Read it with read.)")


async def test_nested_call_never_spills(tools, store, many):
    """spec/tests 140."""
    arguments = {"pattern": "*.txt"}
    result = await tools.registry.dispatch("glob", arguments, session=tools.session, parent=object())
    assert store.saved == []
    assert "could not be saved" in blocks_text(result.content)


async def test_result_that_fits_is_not_stored(tools, store, root):
    (root / "a.txt").write_text("x\n")
    await tools("glob", pattern="*.txt")
    await tools("grep", pattern="x")
    await tools.error("grep", pattern="(")
    assert store.saved == []


async def test_call_without_a_session_is_not_stored(tools, store, many):
    tools.session = None
    assert "could not be saved" in (await tools("glob", pattern="*.txt")).text
    assert store.saved == []


async def test_failing_store_keeps_the_page(tools, store, many):
    store.error = OSError("disk full")
    assert "could not be saved" in (await tools("glob", pattern="*.txt")).text


async def test_result_replaced_by_another_policy_is_left_alone(tools, store, many):
    async def replace(_call, _result, proceed):
        await proceed()
        return Accept(content=[text_block("replaced")])

    tools.registry.on_post_execute(replace)
    assert (await tools("glob", pattern="*.txt")).text == "replaced"
    assert store.saved == []


async def test_another_tool_of_the_same_name_is_left_alone(tools, store):
    with tools.registry.scope() as scope:

        @scope.tool
        async def glob() -> list[str]:
            """Something else entirely."""
            return ["x"] * 200

        result = await tools.registry.dispatch("glob", {}, session=tools.session, scope=scope)
    assert not result.is_error
    assert store.saved == []
