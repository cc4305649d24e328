"""The observation policy: spec/tests 136, 137 and 138."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
import trio

from tool_bindings.tools import Observation, ObservationPolicy


@pytest.fixture
def policy():
    return ObservationPolicy()


@pytest.fixture
def tools(make_tools, policy):
    return make_tools(observation=policy)


def edit(tools, call=None, **changes):
    call = tools if call is None else call
    return call("edit", **{"file_path": "a.txt", "old_string": "old", "new_string": "new"} | changes)


async def test_edit_of_an_unread_file_is_refused(tools, root):
    """spec/tests 136."""
    (root / "a.txt").write_text("old")
    error = await edit(tools, tools.error)
    assert (error.name, error.code) == ("FsError", "FS_NOT_OBSERVED")
    assert "read the file, then retry" in error.text
    assert (root / "a.txt").read_text() == "old"


async def test_stale_version_is_told_before_matching(tools, root):
    """spec/tests 136: old_string is no longer there either, and that is not what is reported."""
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    (root / "a.txt").write_text("changed!")
    error = await edit(tools, tools.error)
    assert error.code == "FS_STALE_VERSION"
    assert "read the file again" in error.text


async def test_reading_again_and_retrying_works(tools, root):
    """spec/tests 136."""
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    (root / "a.txt").write_text("old, but changed")
    assert (await edit(tools, tools.error)).code == "FS_STALE_VERSION"
    await tools("read", file_path="a.txt")
    await edit(tools)
    assert (root / "a.txt").read_text() == "new, but changed"


async def test_same_content_written_again_is_another_version(tools, root):
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    (root / "b.txt").write_text("old")
    (root / "b.txt").rename(root / "a.txt")
    assert (await edit(tools, tools.error)).code == "FS_STALE_VERSION"


async def test_partial_read_authorizes_an_edit(tools, root):
    """spec/tests 137."""
    (root / "a.txt").write_text("one\ntwo\nold\n")
    await tools("read", file_path="a.txt", limit=1)
    await edit(tools)
    assert (root / "a.txt").read_text() == "one\ntwo\nnew\n"


async def test_read_past_the_end_still_saw_the_file(tools, root):
    (root / "a.txt").write_text("old\n")
    assert (await tools.error("read", file_path="a.txt", offset=9)).code == "FS_NOT_FOUND"
    await edit(tools)


async def test_edit_after_write_needs_no_read(tools, root):
    """spec/tests 137."""
    await tools("write", file_path="a.txt", content="old old")
    await edit(tools, replace_all=True)
    await edit(tools, old_string="new new", new_string="newest")
    await tools("write", file_path="a.txt", content="last")
    assert (root / "a.txt").read_text() == "last"


async def test_deleted_file_can_be_recreated_after_a_failed_read(tools, root):
    """spec/tests 137."""
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    (root / "a.txt").unlink()
    error = await tools.error("write", file_path="a.txt", content="again")
    assert error.code == "FS_STALE_VERSION"
    assert "no longer exists" in error.text
    assert (await tools.error("read", file_path="a.txt")).code == "FS_NOT_FOUND"
    answer = await tools("write", file_path="a.txt", content="again")
    assert answer.value["operation"] == "create"


async def test_write_over_an_unread_file_is_refused(tools, root):
    (root / "a.txt").write_text("old")
    error = await tools.error("write", file_path="a.txt", content="new")
    assert error.code == "FS_NOT_OBSERVED"
    assert (root / "a.txt").read_text() == "old"


async def test_write_over_a_file_that_appeared_after_a_failed_read_is_refused(tools, root):
    await tools.error("read", file_path="a.txt")
    (root / "a.txt").write_text("theirs")
    assert (await tools.error("write", file_path="a.txt", content="new")).code == "FS_NOT_OBSERVED"
    assert (root / "a.txt").read_text() == "theirs"


async def test_write_of_a_new_file_needs_no_read(tools, root):
    await tools("write", file_path="d/a.txt", content="x")
    assert (root / "d/a.txt").read_text() == "x"


async def test_refused_write_of_a_vanished_file_makes_no_directories(tools, root):
    (root / "d").mkdir()
    (root / "d/a.txt").write_text("old")
    await tools("read", file_path="d/a.txt")
    (root / "d/a.txt").unlink()
    (root / "d").rmdir()
    assert (await tools.error("write", file_path="d/a.txt", content="x")).code == "FS_STALE_VERSION"
    assert list(root.iterdir()) == []


async def test_edit_of_a_file_last_seen_absent_is_not_found(tools, root):
    await tools.error("read", file_path="a.txt")
    (root / "a.txt").write_text("old")
    assert (await edit(tools, tools.error)).code == "FS_NOT_FOUND"


async def test_another_name_of_the_file_counts_as_the_same_place(tools, root):
    (root / "a.txt").write_text("old")
    (root / "link.txt").symlink_to("a.txt")
    await tools("read", file_path="link.txt")
    await edit(tools, file_path="./a.txt")
    assert (root / "a.txt").read_text() == "new"


async def test_what_one_session_read_does_not_count_for_another(tools, root, new_session):
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    tools.session = new_session()
    assert (await edit(tools, tools.error)).code == "FS_NOT_OBSERVED"


async def test_call_without_a_session_never_satisfies_the_policy(tools, root):
    tools.session = None
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    assert (await edit(tools, tools.error)).code == "FS_NOT_OBSERVED"
    assert (await tools.error("write", file_path="a.txt", content="x")).code == "FS_NOT_OBSERVED"
    await tools("write", file_path="b.txt", content="x")


async def test_of_two_concurrent_edits_one_wins_and_one_is_stale(make_tools, root):
    """spec/tests 138: both rely on the version that their session had read."""
    both_began = threading.Barrier(2, timeout=120)

    class Paced(ObservationPolicy):
        def expectation(self, session, names):
            expectation = super().expectation(session, names)
            both_began.wait()
            return expectation

    tools = make_tools(observation=Paced())
    (root / "a.txt").write_text("old")
    await tools("read", file_path="a.txt")
    results = []

    async def run(new):
        arguments = {"file_path": "a.txt", "old_string": "old", "new_string": new}
        results.append((new, await tools.dispatch("edit", **arguments)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "first")
        nursery.start_soon(run, "second")
    (winner,) = [new for new, result in results if not result.is_error]
    (loser,) = [result for _, result in results if result.is_error]
    assert loser.error.info.code == "FS_STALE_VERSION"
    assert (root / "a.txt").read_text() == winner


async def test_failing_listener_makes_an_error_although_the_file_was_written(tools, root, policy):
    """spec/tests 138."""
    seen = []

    def listener(_session, observation):
        seen.append(observation)
        raise RuntimeError("the index is full")

    policy.add_listener(listener)
    error = await tools.error("write", file_path="a.txt", content="written")
    assert (error.code, error.text) == (None, "the index is full")
    assert (root / "a.txt").read_text() == "written"
    facts = (root / "a.txt").stat()
    version = f"{facts.st_dev}:{facts.st_ino}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ctime_ns}"
    assert seen == [Observation(f"{root}/a.txt", version)]


async def test_listener_hears_of_missing_files(tools, root, policy):
    heard = []
    policy.add_listener(lambda session, observation: heard.append((session, observation)))
    await tools.error("read", file_path="no.txt")
    assert heard == [(tools.session, Observation(f"{root}/no.txt", None))]


def test_records_end_with_their_session(policy, new_session):
    session = new_session()
    policy.observe(session, ("a",), Observation("/a", "1"))
    assert len(policy._records) == 1
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    assert len(policy._records) == 0


def test_session_that_cannot_be_referenced_weakly_works(policy):
    session = "a plain string"
    policy.observe(session, ("a",), Observation("/a", "1"))
    assert policy.expectation(session, ("a",)).version == "1"
