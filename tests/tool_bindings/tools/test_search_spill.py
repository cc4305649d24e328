"""Storing complete search results: spec/tests 140 and 141."""

from __future__ import annotations

import re

import pytest

from tool_bindings.content import blocks_text, text_block
from tool_bindings.policy import Accept
from tool_bindings.spill import SpillStore
from tool_bindings.tools import DEFAULT_SEARCH_LIMITS, attach_search_spill


@pytest.fixture
def store(tmp_path):
    return SpillStore(tmp_path / "spill")


@pytest.fixture
def tools(make_tools, store):
    tools = make_tools(spill=store)
    attach_search_spill(tools.registry, tools.definitions.values(), store, DEFAULT_SEARCH_LIMITS)
    return tools


def saved(store):
    return list(store.root.glob("session-*/*"))


def locator_in(text):
    (locator,) = set(re.findall(r"spill:[0-9a-f]{16}", text))
    return locator


@pytest.fixture
def many(root):
    for n in range(120):
        (root / f"{n:03}.txt").write_text("x\n" * 3)


async def test_complete_list_of_paths_is_stored_and_can_be_read(tools, store, many):
    """spec/tests 140."""
    answer = await tools("glob", pattern="*.txt")
    assert len(answer.value["paths"]) == 120
    locator = locator_in(answer.text)
    notice = (
        f"(Showing 100 of 120 paths. Full sorted result stored at: {locator}. Read it with read(file_path="
    )
    assert notice in answer.text
    assert answer.meta["total"] == 120
    (file,) = saved(store)
    assert file.name.endswith("glob-results.txt")
    stored = await tools("read", file_path=locator)
    assert [line["text"] for line in stored.value["lines"]] == answer.value["paths"]
    assert stored.value["path"] == locator


async def test_complete_list_of_matches_is_stored_and_can_be_searched(tools, store, many):
    """spec/tests 141."""
    answer = await tools("grep", pattern="x")
    assert answer.text.startswith("Found 250 of 360 matches\n")
    locator = locator_in(answer.text)
    assert f"\n\n(Full grep result stored at: {locator}. Read it with" in answer.text
    (file,) = saved(store)
    assert file.name.endswith("grep-results.txt")
    assert file.read_text().startswith("Found 360 matches\n\n000.txt\nLine 1: x\n")
    again = await tools("grep", pattern="^Line", path=locator)
    assert len(again.value["matches"]) == 360
    assert {match["path"] for match in again.value["matches"]} == {locator}


async def test_stored_text_belongs_to_its_session(tools, many, new_session):
    locator = locator_in((await tools("glob", pattern="*.txt")).text)
    for session in (new_session(), None, object()):
        tools.session = session
        for call in (("read", {"file_path": locator}), ("grep", {"pattern": "x", "path": locator})):
            error = await tools.error(call[0], **call[1])
            assert (error.name, error.code) == ("FsError", "FS_NOT_FOUND")


@pytest.mark.parametrize("locator", ["spill:", "spill:0000000000000000", "spill:../../secret.txt", "spill:*"])
async def test_locator_of_nothing_is_not_found(tools, locator):
    error = await tools.error("read", file_path=locator)
    assert error.code == "FS_NOT_FOUND"
    assert locator in error.text


async def test_file_whose_name_looks_like_a_locator_is_reached_with_a_dot(tools, root):
    (root / "spill:x").write_text("x\n")
    assert (await tools("read", file_path="./spill:x")).value["totalLines"] == 1


async def test_locator_is_an_ordinary_path_without_a_store(make_tools, root):
    tools = make_tools()
    (root / "spill:x").write_text("x\n")
    assert (await tools("read", file_path="spill:x")).value["path"] == f"{root}/spill:x"


async def test_stored_texts_cannot_be_changed(make_tools, root):
    store = SpillStore(root / "spill")
    tools = make_tools(spill=store)
    locator = store.save_text(tools.session.id, "x", "text").locator
    (file,) = saved(store)
    for path in (str(file), str(store.root / "new.txt")):
        assert (await tools.error("write", file_path=path, content="y")).code == "FS_SANDBOX_DENIED"
    assert (await tools("read", file_path=locator)).value["lines"][0]["text"] == "text"


async def test_nested_call_never_spills(tools, store, many):
    """spec/tests 140."""
    arguments = {"pattern": "*.txt"}
    result = await tools.registry.dispatch("glob", arguments, session=tools.session, parent=object())
    assert saved(store) == []
    assert "could not be saved" in blocks_text(result.content)


async def test_result_that_fits_is_not_stored(tools, store, root):
    (root / "a.txt").write_text("x\n")
    await tools("glob", pattern="*.txt")
    await tools("grep", pattern="x")
    await tools.error("grep", pattern="(")
    assert saved(store) == []


async def test_call_without_a_session_is_not_stored(tools, store, many):
    tools.session = None
    assert "could not be saved" in (await tools("glob", pattern="*.txt")).text
    assert saved(store) == []


async def test_failing_store_keeps_the_page(make_tools, tmp_path, many):
    store = SpillStore(tmp_path / "spill", quota_bytes=10)
    tools = make_tools()
    attach_search_spill(tools.registry, tools.definitions.values(), store, DEFAULT_SEARCH_LIMITS)
    assert "could not be saved" in (await tools("glob", pattern="*.txt")).text


async def test_result_replaced_by_another_policy_is_left_alone(tools, store, many):
    async def replace(_call, _result, proceed):
        await proceed()
        return Accept(content=[text_block("replaced")])

    tools.registry.on_post_execute(replace)
    assert (await tools("glob", pattern="*.txt")).text == "replaced"
    assert saved(store) == []


async def test_another_tool_of_the_same_name_is_left_alone(tools, store):
    with tools.registry.scope() as scope:

        @scope.tool
        async def glob() -> list[str]:
            """Something else entirely."""
            return ["x"] * 200

        result = await tools.registry.dispatch("glob", {}, session=tools.session, scope=scope)
    assert not result.is_error
    assert saved(store) == []
