"""Large results are kept whole in a private file (spec facts 154, and section 5.7 of the session events)."""

from __future__ import annotations

import dataclasses
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_bindings import Accept, Block, Output, ToolDefinition, ToolRegistry, blocks_text, text_block
from tool_bindings.spill import SpillError, SpillPolicy, SpillStore, encode_name


@dataclasses.dataclass
class Session:
    id: str = "s1"


@pytest.fixture
def store(tmp_path):
    return SpillStore(tmp_path / "spill")


def registry_with(store, cap, *, name="long", render=None):
    registry = ToolRegistry()

    async def body(arguments, _context):
        return arguments["text"]

    registry.register(
        ToolDefinition(
            name=name,
            description="Return the text.",
            parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            output=Output(
                schema={"type": "string"}, render=render or (lambda _arguments, value: [text_block(value)])
            ),
            execute=body,
        )
    )
    registry.on_post_execute(SpillPolicy(store, cap), first=True)
    return registry


async def test_a_long_result_is_shown_as_head_tail_and_locator_and_kept_whole(store):
    registry = registry_with(store, 400)
    text = "".join(chr(97 + number % 26) for number in range(5000))
    result = await registry.dispatch("long", {"text": text}, session=Session())
    shown = blocks_text(result.content)
    assert text == result.value
    assert len(shown.encode()) <= 400
    assert shown.startswith(text[:50])
    locator = shown.split("stored at: ")[1].split(". ")[0]
    assert text == store.find("s1", locator).read_text()
    omitted = int(shown.split("(Omitted ")[1].split(" bytes")[0])
    preview = shown.split("\n\n(Omitted")[0]
    assert len(text) == omitted + len(preview)


@given(st.text(min_size=1, max_size=400), st.integers(0, 600))
async def test_what_replaces_a_result_is_never_longer_than_the_cap(tmp_path_factory, text, cap):
    policy = SpillPolicy(SpillStore(tmp_path_factory.mktemp("spill")), cap)
    replacement = policy.replace([text_block(text * 10)], Session(), "t")
    if replacement is not None:
        assert len(blocks_text(replacement).encode("utf-8", "surrogatepass")) <= cap


async def test_a_short_result_is_left_alone(store):
    result = await registry_with(store, 400).dispatch("long", {"text": "x" * 400}, session=Session())
    assert "x" * 400 == blocks_text(result.content)
    assert not store.root.exists()


async def test_nested_calls_reads_pictures_and_sessionless_calls_are_left_alone(store):
    text = {"text": "x" * 999}
    token = ToolRegistry().begin("any", {}).token
    assert "x" * 999 == blocks_text(
        (await registry_with(store, 400).dispatch("long", text, session=Session(), parent=token)).content
    )
    assert "x" * 999 == blocks_text(
        (await registry_with(store, 400, name="read").dispatch("read", text, session=Session())).content
    )
    assert "x" * 999 == blocks_text((await registry_with(store, 400).dispatch("long", text)).content)
    picture = registry_with(
        store, 400, render=lambda _arguments, value: [text_block(value), {"type": "image", "data": ""}]
    )
    assert 2 == len((await picture.dispatch("long", text, session=Session())).content)


async def test_a_failure_with_a_long_message_is_spilled_too(store):
    registry = registry_with(store, 400)

    @registry.tool
    async def fail() -> None:
        raise ValueError("y" * 2000)

    result = await registry.dispatch("fail", {}, session=Session())
    assert result.is_error
    assert "stored at: spill:" in blocks_text(result.content)
    assert "y" * 2000 == result.error.message


@pytest.mark.parametrize("registered_before", [True, False])
async def test_spill_sees_what_every_other_listener_made_whatever_the_order_of_registration(
    store, registered_before
):
    registry = ToolRegistry()

    @registry.tool
    async def short() -> str:
        return "short"

    async def lengthen(call, result, proceed):
        await proceed()
        return Accept(content=[text_block("z" * 900)])

    if registered_before:
        registry.on_post_execute(lengthen)
    registry.on_post_execute(SpillPolicy(store, 400), first=True)
    if not registered_before:
        registry.on_post_execute(lengthen)
    result = await registry.dispatch("short", {}, session=Session())
    assert "stored at: spill:" in blocks_text(result.content)


async def test_blocked_feedback_is_spilled_and_stays_a_block(store):
    registry = registry_with(store, 400)

    async def block(call, result, proceed):
        return Block([text_block("no " * 500)])

    registry.on_post_execute(block)
    result = await registry.dispatch("long", {"text": "x"}, session=Session())
    assert result.is_error
    assert "stored at: spill:" in blocks_text(result.content)


async def test_a_store_that_cannot_write_leaves_the_result(tmp_path):
    (tmp_path / "spill").write_text("a file in the way")
    registry = registry_with(SpillStore(tmp_path / "spill"), 400)
    result = await registry.dispatch("long", {"text": "x" * 999}, session=Session())
    assert "x" * 999 == blocks_text(result.content)


def test_files_are_private(store):
    spilled = store.save_text("s1", "t.txt", "secret")
    path = store.find("s1", spilled.locator)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode) == stat.S_IMODE(store.root.stat().st_mode)


def test_a_locator_works_in_its_own_session_only(store):
    spilled = store.save_text("s1", "t.txt", "secret")
    with pytest.raises(SpillError, match="no stored text"):
        store.find("s2", spilled.locator)


@pytest.mark.parametrize(
    "locator", ["spill:", "spill:../../etc", "spill:*", "x", "spill:0123456789abcdeg", ""]
)
def test_a_made_up_locator_finds_nothing(store, locator):
    store.save_text("s1", "t.txt", "secret")
    with pytest.raises(SpillError):
        store.find("s1", locator)


def test_the_oldest_texts_go_when_the_quota_is_full(tmp_path):
    store = SpillStore(tmp_path, quota_bytes=100)
    first = store.save_text("s1", "a", "a" * 60)
    os.utime(store.find("s1", first.locator), (1, 1))
    store = SpillStore(tmp_path, quota_bytes=100, keep_seconds=10**12)
    second = store.save_text("s1", "b", "b" * 60)
    assert "b" * 60 == store.find("s1", second.locator).read_text()
    with pytest.raises(SpillError):
        store.find("s1", first.locator)
    with pytest.raises(SpillError, match="above the quota"):
        store.save_text("s1", "c", "c" * 101)


def test_texts_expire(tmp_path):
    now = [1_000_000_000.0]
    store = SpillStore(tmp_path, keep_seconds=60, clock=lambda: now[0])
    spilled = store.save_text("s1", "a", "a")
    path = store.find("s1", spilled.locator)
    os.utime(path, (now[0], now[0]))
    now[0] += 61
    with pytest.raises(SpillError, match="expired"):
        store.find("s1", spilled.locator)
    store.save_text("s1", "b", "b")
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("a-b_c.txt", "a-b_c.txt"),
        ("", "~"),
        (".", "~002E"),
        ("..", "~002E~002E"),
        ("a/b", "a~002Fb"),
        ("é", "~00E9"),
    ],
)
def test_names_become_harmless_file_names(name, encoded):
    assert encoded == encode_name(name)
