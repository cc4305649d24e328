"""The edit tool: spec/tools.md section 1, spec/tests 139."""

from __future__ import annotations

import os

import pytest
import trio

from tool_bindings.tools import change, files_edit


async def test_single_occurrence_is_replaced(tools, root):
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    answer = await tools("edit", file_path="a.txt", old_string="two", new_string="2")
    path = f"{root}/a.txt"
    assert answer.value == {"path": path, "before": "one\ntwo\nthree\n", "after": "one\n2\nthree\n"}
    assert answer.text == f"The file {path} has been updated successfully."
    diff = {"path": "a.txt", "oldText": "one\ntwo\nthree", "newText": "one\n2\nthree"}
    assert answer.meta == {"diffs": [diff]}
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"


async def test_scattered_replace_all_has_one_diff_per_hunk(tools, root):
    """spec/tests 139."""
    lines = [f"line {number}" for number in range(40)]
    lines[5] = lines[20] = lines[35] = "old"
    (root / "a.txt").write_text("\n".join(lines) + "\n")
    answer = await tools("edit", file_path="a.txt", old_string="old", new_string="new", replace_all=True)
    path = f"{root}/a.txt"
    assert answer.text == f"The file {path} has been updated. All occurrences were successfully replaced."
    diffs = answer.meta["diffs"]
    assert [diff["newText"].split("\n")[3] for diff in diffs] == ["new", "new", "new"]
    assert diffs[0]["oldText"] == "line 2\nline 3\nline 4\nold\nline 6\nline 7\nline 8"
    assert diffs[0]["newText"] == "line 2\nline 3\nline 4\nnew\nline 6\nline 7\nline 8"


async def test_ambiguous_edit_names_the_count_and_both_ways_out(tools, root):
    (root / "a.txt").write_text("x x x\n")
    error = await tools.error("edit", file_path="a.txt", old_string="x", new_string="y")
    assert (error.name, error.code) == ("FsError", "FS_AMBIGUOUS_EDIT")
    assert "occurs 3 times" in error.text
    assert "add surrounding lines" in error.text
    assert "replace_all" in error.text
    assert (root / "a.txt").read_text() == "x x x\n"


async def test_text_that_is_not_there_is_not_found(tools, root):
    (root / "a.txt").write_text("x\n")
    error = await tools.error("edit", file_path="a.txt", old_string="y", new_string="z")
    assert error.code == "FS_EDIT_NOT_FOUND"


async def test_matching_is_literal(tools, root):
    (root / "a.txt").write_text("a.c abc \\1\n")
    await tools("edit", file_path="a.txt", old_string="a.c", new_string="\\g<0>$&")
    assert (root / "a.txt").read_text() == "\\g<0>$& abc \\1\n"


@pytest.mark.parametrize(
    ("old", "new"), [("one\ntwo", "1\n2"), ("one\r\ntwo", "1\r\n2"), ("one\r\ntwo", "1\n2")]
)
async def test_crlf_file_is_matched_as_lf_and_stays_crlf(tools, root, old, new):
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    answer = await tools("edit", file_path="a.txt", old_string=old, new_string=new)
    assert (answer.value["before"], answer.value["after"]) == ("one\ntwo\nthree\n", "1\n2\nthree\n")
    assert (root / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_lf_file_stays_lf_when_the_new_text_has_crlf(tools, root):
    (root / "a.txt").write_bytes(b"one\ntwo\n")
    await tools("edit", file_path="a.txt", old_string="two", new_string="2\r\n3")
    assert (root / "a.txt").read_bytes() == b"one\n2\n3\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\r\nb\r\nc\nX", b"a\r\nb\r\nc\r\nY"),  # Most are CRLF.
        (b"a\r\nb\nc\nX", b"a\nb\nc\nY"),  # Most are LF.
        (b"a\r\nb\nX", b"a\nb\nY"),  # Neither: LF.
        (
            b"a\n" * 2048 + b"b\r\n" * 5000 + b"X",
            b"a\n" * 2048 + b"b\n" * 5000 + b"Y",
        ),  # Decided by the start.
    ],
)
async def test_majority_of_line_ends_at_the_start_decides(tools, root, content, expected):
    (root / "a.txt").write_bytes(content)
    await tools("edit", file_path="a.txt", old_string="X", new_string="Y")
    assert (root / "a.txt").read_bytes() == expected


async def test_missing_final_line_break_stays_missing(tools, root):
    (root / "a.txt").write_text("one\ntwo")
    await tools("edit", file_path="a.txt", old_string="one", new_string="1")
    assert (root / "a.txt").read_text() == "1\ntwo"


async def test_byte_order_mark_and_astral_characters_survive(tools, root):
    (root / "a.txt").write_text("\ufeffone 😀 two\n")
    await tools("edit", file_path="a.txt", old_string="😀", new_string="🎉")
    assert (root / "a.txt").read_text() == "\ufeffone 🎉 two\n"


async def test_giant_line_can_be_edited(tools, root):
    (root / "a.txt").write_text("x" * 3_000_000 + "needle" + "y" * 3_000_000)
    await tools("edit", file_path="a.txt", old_string="needle", new_string="pin")
    assert (root / "a.txt").read_text() == "x" * 3_000_000 + "pin" + "y" * 3_000_000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"file_path": "  "}, "file_path must not be blank"),
        ({"old_string": ""}, "old_string must not be empty"),
        ({"old_string": "x", "new_string": "x"}, "old_string and new_string are equal"),
        ({"old_string": "a\r\nb", "new_string": "a\nb"}, "old_string and new_string are equal"),
        ({"new_string": "\ud800"}, "new_string holds a lone surrogate (U+D800) at position 0"),
    ],
)
async def test_senseless_argument_is_refused_without_a_code(tools, root, arguments, text):
    (root / "a.txt").write_text("x\n")
    error = await tools.error(
        "edit", **{"file_path": "a.txt", "old_string": "x", "new_string": "y"} | arguments
    )
    assert (error.name, error.code) == (None, None)
    assert text in error.text


@pytest.mark.parametrize("content", [b"text" * 5000 + b"\0", b"text\xff"])
async def test_nul_anywhere_and_invalid_utf8_are_not_text(tools, root, content):
    (root / "a.bin").write_bytes(content)
    error = await tools.error("edit", file_path="a.bin", old_string="text", new_string="y")
    assert error.code == "FS_NOT_TEXT"
    assert (root / "a.bin").read_bytes() == content


async def test_missing_file_is_stale_without_a_policy(tools):
    error = await tools.error("edit", file_path="no.txt", old_string="x", new_string="y")
    assert error.code == "FS_STALE_VERSION"
    assert "does not exist" in error.text


async def test_missing_directory_is_not_created(tools, root):
    assert (
        await tools.error("edit", file_path="d/no.txt", old_string="x", new_string="y")
    ).code == "FS_STALE_VERSION"
    assert list(root.iterdir()) == []


async def test_directory_is_not_a_regular_file(tools, root):
    (root / "d").mkdir()
    assert (
        await tools.error("edit", file_path="d", old_string="x", new_string="y")
    ).code == "FS_NOT_REGULAR_FILE"


async def test_too_large_file_is_refused_with_its_bound(tools, root, monkeypatch):
    monkeypatch.setattr(files_edit, "_EDIT_BYTES", 10)
    (root / "a.txt").write_text("x" * 11)
    error = await tools.error("edit", file_path="a.txt", old_string="x", new_string="y")
    assert error.code == "FS_TOO_LARGE"
    assert "has 11 bytes; edit takes files of at most 10 bytes" in error.text


async def test_edit_through_a_link_changes_its_target_and_not_outside(tools, root, outside):
    (root / "real.txt").write_text("old")
    (root / "in.txt").symlink_to("real.txt")
    (root / "out.txt").symlink_to(outside / "secret.txt")
    await tools("edit", file_path="in.txt", old_string="old", new_string="new")
    error = await tools.error("edit", file_path="out.txt", old_string="CANARY", new_string="x")
    assert error.code == "FS_SANDBOX_DENIED"
    assert "CANARY" not in error.text
    assert (root / "real.txt").read_text() == "new"
    assert (outside / "secret.txt").read_text() == "CANARY\n"


async def test_change_by_another_process_during_the_edit_is_not_lost(tools, root, monkeypatch):
    (root / "a.txt").write_text("old")
    real = change.publish

    def patched(*arguments, verify, **options):
        (root / "a.txt").write_text("somebody else's")
        return real(*arguments, verify=verify, **options)

    monkeypatch.setattr(change, "publish", patched)
    error = await tools.error("edit", file_path="a.txt", old_string="old", new_string="new")
    assert error.code == "FS_STALE_VERSION"
    assert (root / "a.txt").read_text() == "somebody else's"


async def test_two_edits_at_once_within_one_process_both_happen(tools, root):
    (root / "a.txt").write_text("a b\n")
    async with trio.open_nursery() as nursery:
        for old in "ab":
            nursery.start_soon(
                lambda old=old: tools("edit", file_path="a.txt", old_string=old, new_string=old * 2)
            )
    assert (root / "a.txt").read_text() == "aa bb\n"


async def test_file_replaced_by_a_fifo_is_refused_without_waiting(tools, root):
    os.mkfifo(root / "pipe")
    with trio.fail_after(60):
        error = await tools.error("edit", file_path="pipe", old_string="x", new_string="y")
    assert error.code == "FS_NOT_REGULAR_FILE"


def test_card_of_a_call_shows_the_two_strings(tools):
    present = tools.definitions["edit"].present_call
    card = present({"file_path": "a.txt", "old_string": "x", "new_string": "y"})
    assert card["diffs"] == [{"path": "a.txt", "oldText": "x", "newText": "y"}]
    assert present({"file_path": "a.txt", "old_string": 1}) is None


async def test_card_of_a_result_shows_the_hunks_and_falls_back_to_the_generic_card(tools, root):
    (root / "a.txt").write_text("old\n")
    present = tools.definitions["edit"].present_result
    arguments = {"file_path": "a.txt", "old_string": "old", "new_string": "new"}
    result = await tools.dispatch("edit", **arguments)
    assert present(arguments, result)["diffs"] == [{"path": "a.txt", "oldText": "old", "newText": "new"}]
    failed = await tools.dispatch("edit", **arguments)
    assert present(arguments, failed) is None


async def test_file_too_large_to_compare_is_edited_without_diffs(tools, root):
    (root / "a.txt").write_text("x" * 10_485_760 + "needle")
    answer = await tools("edit", file_path="a.txt", old_string="needle", new_string="pin")
    assert answer.meta == {"diffs": []}
    assert answer.value["after"].endswith("xpin")
