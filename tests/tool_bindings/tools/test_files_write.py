"""The write tool: spec/tools.md section 1, spec/tests 137 and 139."""

from __future__ import annotations

import os
import stat

import pytest
import trio

from tool_bindings.tools import change, publish


async def test_new_file_is_created_with_its_parents(tools, root):
    answer = await tools("write", file_path="a/b/c.txt", content="one\n")
    path = f"{root}/a/b/c.txt"
    assert answer.value == {"path": path, "operation": "create", "before": None, "after": "one\n"}
    assert answer.text == f"<path>{path}</path>\n<type>file</type>\n<content>\nCreated file\n</content>"
    assert answer.meta == {"diffs": []}
    assert (root / "a/b/c.txt").read_text() == "one\n"


async def test_existing_file_is_updated_with_a_diff(tools, root):
    (root / "a.txt").write_text("one\ntwo\n")
    answer = await tools("write", file_path="a.txt", content="one\n2\n")
    assert (answer.value["operation"], answer.value["before"]) == ("update", "one\ntwo\n")
    assert "\nUpdated file\n" in answer.text
    assert answer.meta == {"diffs": [{"path": "a.txt", "oldText": "one\ntwo", "newText": "one\n2"}]}


async def test_identical_write_has_no_diffs(tools, root):
    """spec/tests 139."""
    (root / "a.txt").write_text("same\n")
    answer = await tools("write", file_path="a.txt", content="same\n")
    assert answer.meta == {"diffs": []}


async def test_content_is_written_as_given_and_shown_with_lf(tools, root):
    (root / "a.txt").write_bytes(b"x\r\ny\r\n")
    answer = await tools("write", file_path="a.txt", content="x\r\nz\r\n")
    assert (root / "a.txt").read_bytes() == b"x\r\nz\r\n"
    assert (answer.value["before"], answer.value["after"]) == ("x\ny\n", "x\nz\n")


async def test_text_put_into_an_empty_file_has_no_old_text(tools, root):
    (root / "a.txt").touch()
    answer = await tools("write", file_path="a.txt", content="x\n")
    assert answer.value["before"] == ""
    assert answer.meta == {"diffs": [{"path": "a.txt", "oldText": None, "newText": "x"}]}


@pytest.mark.parametrize("old", [b"\xff\xfe", b"a\0b"])
async def test_binary_file_is_replaced_without_a_basis(tools, root, old):
    (root / "a.bin").write_bytes(old)
    answer = await tools("write", file_path="a.bin", content="text")
    assert (answer.value["operation"], answer.value["before"], answer.meta) == ("update", None, {"diffs": []})


@pytest.mark.parametrize(("old_size", "new_size"), [(10_485_760, 1), (1, 10_485_760)])
async def test_side_of_ten_mebibytes_has_no_basis(tools, root, old_size, new_size):
    (root / "a.txt").write_text("x" * old_size)
    answer = await tools("write", file_path="a.txt", content="y" * new_size)
    assert answer.value["before"] is None


async def test_side_just_below_ten_mebibytes_has_a_basis(tools, root):
    (root / "a.txt").write_text("x\n" * 5_242_879 + "z")
    answer = await tools("write", file_path="a.txt", content="y")
    assert len(answer.value["before"]) == 10_485_759


async def test_write_through_a_link_changes_its_target(tools, root):
    (root / "real.txt").write_text("old")
    (root / "link.txt").symlink_to("real.txt")
    answer = await tools("write", file_path="link.txt", content="new")
    assert answer.value["path"] == f"{root}/link.txt"
    assert (root / "real.txt").read_text() == "new"
    assert (root / "link.txt").is_symlink()


async def test_mode_of_an_executable_is_kept(tools, root):
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o755)
    await tools("write", file_path="run.sh", content="new")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"file_path": "", "content": "x"}, "file_path must not be blank"),
        ({"file_path": "d/", "content": "x"}, "file_path ends with a slash"),
        ({"file_path": "a", "content": "x\udc00"}, "content holds a lone surrogate (U+DC00) at position 1"),
    ],
)
async def test_senseless_argument_is_refused_without_a_code(tools, root, arguments, text):
    error = await tools.error("write", **arguments)
    assert (error.name, error.code) == (None, None)
    assert text in error.text
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("path", [".", "d", "d/.."])
async def test_directory_is_not_a_regular_file(tools, root, path):
    (root / "d").mkdir()
    assert (await tools.error("write", file_path=path, content="x")).code == "FS_NOT_REGULAR_FILE"


async def test_fifo_is_refused_without_waiting_for_a_reader(tools, root):
    os.mkfifo(root / "pipe")
    with trio.fail_after(60):
        assert (await tools.error("write", file_path="pipe", content="x")).code == "FS_NOT_REGULAR_FILE"


async def test_path_through_a_file_is_not_a_directory(tools, root):
    (root / "a.txt").touch()
    assert (await tools.error("write", file_path="a.txt/b", content="x")).code == "FS_NOT_DIRECTORY"


async def test_too_long_name_is_refused_with_its_bound(tools, root):
    error = await tools.error("write", file_path="x" * 256, content="x")
    assert error.code == "FS_IO_ERROR"
    assert "usually 255 bytes" in error.text


async def test_read_only_file_is_permission_denied(tools, root, permissions_count):
    (root / "a.txt").touch(mode=0o444)
    with permissions_count():
        assert (await tools.error("write", file_path="a.txt", content="x")).code == "FS_PERMISSION_DENIED"
        assert not (await tools.dispatch("write", file_path="b.txt", content="x")).is_error


async def test_full_disk_is_an_io_error_and_keeps_the_old_file(tools, root, monkeypatch):
    (root / "a.txt").write_text("old")

    def refuse(*_arguments):
        raise OSError(28, "No space left on device", "/host/path")

    monkeypatch.setattr(publish, "_stage", refuse)
    error = await tools.error("write", file_path="a.txt", content="new")
    text = f'cannot write "{root}/a.txt": no space left on the file system'
    assert (error.code, error.text) == ("FS_IO_ERROR", text)
    assert [(entry.name, entry.read_text()) for entry in root.iterdir()] == [("a.txt", "old")]


@pytest.mark.parametrize("path", ["../x.txt", "/etc/codemode-test", "link/x.txt", "file", "dangling"])
async def test_write_outside_the_root_is_refused(tools, root, outside, path):
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "dangling").symlink_to(outside / "new.txt")
    error = await tools.error("write", file_path=path, content="x")
    assert error.code == "FS_SANDBOX_DENIED"
    assert {entry.name: entry.read_text() for entry in outside.iterdir()} == {"secret.txt": "CANARY\n"}


@pytest.fixture
def while_publishing(monkeypatch):
    """Do something after the content was staged, just before it is moved into place."""

    def install(action):
        real = change.publish

        def patched(*arguments, verify, **options):
            def act_and_verify():
                action()
                verify()

            return real(*arguments, verify=act_and_verify, **options)

        monkeypatch.setattr(change, "publish", patched)

    return install


async def test_parent_replaced_by_a_link_during_the_write_writes_nothing_outside(
    tools, root, outside, while_publishing
):
    (root / "d").mkdir()
    (root / "d/secret.txt").write_text("old")

    def swap():
        (root / "d").rename(root / "moved")
        (root / "d").symlink_to(outside)

    while_publishing(swap)
    error = await tools.error("write", file_path="d/secret.txt", content="new")
    assert error.code == "FS_STALE_VERSION"
    assert "was moved or replaced meanwhile; nothing was written" in error.text
    assert (outside / "secret.txt").read_text() == "CANARY\n"
    assert [entry.name for entry in outside.iterdir()] == ["secret.txt"]
    assert [(entry.name, entry.read_text()) for entry in (root / "moved").iterdir()] == [
        ("secret.txt", "old")
    ]


async def test_parent_moved_out_of_the_root_during_the_write_is_left_alone(
    tools, root, outside, while_publishing
):
    (root / "d").mkdir()
    (root / "d/a.txt").write_text("old")
    while_publishing(lambda: (root / "d").rename(outside / "d"))
    assert (await tools.error("write", file_path="d/a.txt", content="new")).code == "FS_STALE_VERSION"
    assert [(entry.name, entry.read_text()) for entry in (outside / "d").iterdir()] == [("a.txt", "old")]


async def test_target_replaced_by_a_link_during_the_write_does_not_follow_it(
    tools, root, outside, while_publishing
):
    (root / "a.txt").write_text("old")

    def swap():
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(outside / "secret.txt")

    while_publishing(swap)
    await tools("write", file_path="a.txt", content="new")
    assert (outside / "secret.txt").read_text() == "CANARY\n"
    assert (root / "a.txt").read_text() == "new"
    assert not (root / "a.txt").is_symlink()


async def test_abort_before_the_file_changes_leaves_it_as_it_was(tools, root, while_publishing):
    (root / "a.txt").write_text("old")
    while_publishing(lambda: trio.from_thread.run_sync(tools.abort.abort))
    error = await tools.error("write", file_path="a.txt", content="new")
    assert (error.name, error.code) == ("FsError", "FS_ABORTED")
    assert [(entry.name, entry.read_text()) for entry in root.iterdir()] == [("a.txt", "old")]


async def test_cancellation_before_the_file_changes_leaves_it_as_it_was(tools, root, while_publishing):
    (root / "a.txt").write_text("old")
    with trio.CancelScope() as scope:
        while_publishing(lambda: trio.from_thread.run_sync(scope.cancel))
        await tools("write", file_path="a.txt", content="new")
    assert scope.cancelled_caught
    assert [(entry.name, entry.read_text()) for entry in root.iterdir()] == [("a.txt", "old")]


def test_card_of_a_call_shows_the_whole_new_file(tools):
    present = tools.definitions["write"].present_call
    card = present({"file_path": "a.txt", "content": "x"})
    assert card["diffs"] == [{"path": "a.txt", "oldText": None, "newText": "x"}]
    assert present({"file_path": "a.txt"}) is None


async def test_card_of_a_result_shows_the_hunks_and_falls_back_to_the_whole_file(tools, root):
    present = tools.definitions["write"].present_result
    arguments = {"file_path": "a.txt", "content": "new"}
    created = await tools.dispatch("write", **arguments)
    assert present(arguments, created)["diffs"] == [{"path": "a.txt", "oldText": None, "newText": "new"}]
    (root / "a.txt").write_text("old")
    updated = await tools.dispatch("write", **arguments)
    assert present(arguments, updated)["diffs"] == [{"path": "a.txt", "oldText": "old", "newText": "new"}]
    failed = await tools.dispatch("write", file_path="../x", content="new")
    assert present({"file_path": "../x", "content": "new"}, failed) is None
