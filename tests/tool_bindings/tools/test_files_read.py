"""The read tool: spec/tools.md section 1, spec/tests 134 and 135."""

from __future__ import annotations

import os

import pytest
import trio

from tool_bindings.abort import AbortSignal
from tool_bindings.definition import ToolRunContext
from tool_bindings.tools import FsError, files_read
from tool_bindings.tools.window import ReadLimits


async def test_value_text_and_meta_of_a_small_file(tools, root):
    (root / "a.py").write_text("one\ntwo\n")
    answer = await tools("read", file_path="a.py")
    path = f"{root}/a.py"
    lines = [{"number": 1, "text": "one"}, {"number": 2, "text": "two"}]
    assert {"path": path, "offset": 1, "lines": lines, "totalLines": 2} == answer.value
    assert (
        f"<path>{path}</path>\n<type>file</type>\n<content>\n"
        "1: one\n2: two\n\n(End of file - total 2 lines)\n</content>" == answer.text
    )
    assert {"path": path, "offset": 1, "lines": lines, "totalLines": 2, "lang": "python"} == answer.meta


async def test_empty_file_is_only_a_footer(tools, root):
    """spec/tests 134."""
    (root / "empty").touch()
    answer = await tools("read", file_path="empty")
    assert {"path": f"{root}/empty", "offset": 1, "lines": [], "totalLines": 0} == answer.value
    assert "<content>\n(End of file - total 0 lines)\n</content>" in answer.text
    assert "lang" not in answer.meta


async def test_offset_past_the_end_is_not_found(tools, root):
    """spec/tests 134."""
    (root / "a.txt").write_text("one\ntwo\n")
    error = await tools.error("read", file_path="a.txt", offset=3)
    assert ("FS_NOT_FOUND", f'offset 3 is out of range for "{root}/a.txt" (2 lines)') == (
        error.code,
        error.text,
    )


async def test_offset_two_of_an_empty_file_is_not_found(tools, root):
    """spec/tests 134."""
    (root / "empty").touch()
    assert (await tools.error("read", file_path="empty", offset=2)).code == "FS_NOT_FOUND"


async def test_limit_gives_the_footer_with_the_total(tools, root):
    """spec/tests 135."""
    (root / "a.txt").write_text("a\nb\nc\nd\n")
    answer = await tools("read", file_path="a.txt", offset=2, limit=2)
    assert [(line["number"], line["text"]) for line in answer.value["lines"]] == [(2, "b"), (3, "c")]
    assert "\n2: b\n3: c\n\n(Showing lines 2-3 of 4. Use offset=4 to continue.)\n</content>" in answer.text


async def test_window_that_ends_with_the_file_says_so(tools, root):
    """spec/tests 135."""
    (root / "a.txt").write_text("a\nb\nc\n")
    answer = await tools("read", file_path="a.txt", offset=2, limit=2)
    assert "\n3: c\n\n(End of file - total 3 lines)\n" in answer.text


async def test_byte_cap_gives_its_own_footer(tools, root):
    """spec/tests 135."""
    (root / "a.txt").write_text(("x" * 999 + "\n") * 100)
    answer = await tools("read", file_path="a.txt")
    assert len(answer.value["lines"]) == 51  # 51 * 999 + 50 = 50 999; one more would make 51 999 > 51 200.
    assert "\n(Output capped. Showing lines 1-51. Use offset=52 to continue.)\n" in answer.text


async def test_default_window_is_2000_lines(tools, root):
    (root / "a.txt").write_text("x\n" * 2001)
    answer = await tools("read", file_path="a.txt")
    assert (len(answer.value["lines"]), answer.value["totalLines"]) == (2000, 2001)
    assert "(Showing lines 1-2000 of 2001. Use offset=2001 to continue.)" in answer.text


async def test_long_line_is_cut_with_the_suffix(tools, root):
    """spec/tests 135."""
    (root / "a.txt").write_text("x" * 2001)
    answer = await tools("read", file_path="a.txt")
    assert answer.value["lines"][0]["text"] == "x" * 2000 + "... (line truncated to 2000 chars)"


async def test_crlf_is_stripped(tools, root):
    """spec/tests 135."""
    (root / "a.txt").write_bytes(b"a\r\nb\r\n")
    answer = await tools("read", file_path="a.txt")
    assert [line["text"] for line in answer.value["lines"]] == ["a", "b"]


@pytest.mark.parametrize("size", [99, 100, 250])
async def test_file_around_the_streaming_size_reads_the_same(make_tools, root, size):
    tools = make_tools(read_limits=ReadLimits(stream_bytes=100))
    (root / "a.txt").write_text("y" * (size - 1) + "\n")
    answer = await tools("read", file_path="a.txt")
    assert ("y" * (size - 1), 1) == (answer.value["lines"][0]["text"], answer.value["totalLines"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"file_path": " "}, "file_path must not be blank"),
        ({"file_path": "a\0b"}, "file_path contains a NUL character"),
        ({"file_path": "a\ud800b"}, "file_path holds a lone surrogate at position 1"),
        ({"file_path": "a/" * 2049}, "file_path is 4098 bytes long; a path has at most 4096 bytes"),
        ({"file_path": "a", "offset": 0}, "offset must be a whole number of at least 1, not 0"),
        ({"file_path": "a", "limit": -3.0}, "limit must be a whole number of at least 1, not -3"),
        ({"file_path": "a", "limit": 2001}, "limit is 2001, but at most 2000 lines can be read at once"),
    ],
)
async def test_senseless_argument_is_refused_without_a_code(tools, arguments, text):
    error = await tools.error("read", **arguments)
    assert (error.name, error.code) == (None, None)
    assert text in error.text


async def test_a_fraction_is_an_argument_of_the_wrong_type(tools):
    """Decision 0286: line numbers are integers, so that a model reads `int`."""
    error = await tools.error("read", file_path="a", offset=1.5)
    assert "INVALID_ARGS" == error.code
    assert '"offset" must be an integer (got 1.5)' in error.text
    assert "offset: int = ..., limit: int = ..." in error.text


async def test_whole_number_written_as_float_is_accepted(tools, root):
    (root / "a.txt").write_text("a\nb\n")
    assert (await tools("read", file_path="a.txt", offset=2.0)).value["offset"] == 2


async def test_missing_file_is_not_found(tools, root):
    error = await tools.error("read", file_path="no/such.txt")
    assert ("FS_NOT_FOUND", f'cannot read "{root}/no/such.txt": no such file') == (error.code, error.text)


async def test_directory_is_not_a_regular_file(tools, root):
    (root / "d").mkdir()
    error = await tools.error("read", file_path="d")
    assert error.code == "FS_NOT_REGULAR_FILE"
    assert "list its files with glob" in error.text


async def test_path_through_a_file_is_not_a_directory(tools, root):
    (root / "a.txt").touch()
    assert (await tools.error("read", file_path="a.txt/b")).code == "FS_NOT_DIRECTORY"


async def test_fifo_is_refused_without_waiting_for_a_writer(tools, root):
    os.mkfifo(root / "pipe")
    with trio.fail_after(60):
        error = await tools.error("read", file_path="pipe")
    assert error.code == "FS_NOT_REGULAR_FILE"
    assert "is a FIFO" in error.text


@pytest.mark.parametrize("content", [b"ok\0", b"\xff\xfe", b"fine\n" * 5000 + b"\xc3"])
async def test_binary_and_invalid_utf8_are_not_text(tools, root, content):
    (root / "a.bin").write_bytes(content)
    assert (await tools.error("read", file_path="a.bin")).code == "FS_NOT_TEXT"


async def test_unreadable_file_is_permission_denied(tools, root, permissions_count):
    (root / "a.txt").touch(mode=0o000)
    (root / "b.txt").write_text("x\n")
    with permissions_count():
        assert (await tools.error("read", file_path="a.txt")).code == "FS_PERMISSION_DENIED"
        assert not (await tools.dispatch("read", file_path="b.txt")).is_error


async def test_name_that_is_not_utf8_can_be_read_and_is_shown_replaced(tools, root):
    name = os.fsdecode(b"caf\xe9.txt")
    (root / name).write_text("x\n")
    answer = await tools("read", file_path=name)
    assert f"{root}/{name}" == answer.value["path"]
    assert "caf\ufffd.txt</path>" in answer.text


async def test_absolute_path_beneath_the_root_is_accepted(tools, root):
    (root / "a.txt").write_text("x\n")
    assert f"{root}/a.txt" == (await tools("read", file_path=f"{root}/./a.txt")).value["path"]


async def test_display_path_keeps_links_and_resolves_dots(tools, root):
    (root / "real").mkdir()
    (root / "real/a.txt").write_text("x\n")
    (root / "link").symlink_to("real")
    assert f"{root}/link/a.txt" == (await tools("read", file_path="link//./a.txt")).value["path"]
    assert f"{root}/real/a.txt" == (await tools("read", file_path="real/../link/a.txt")).value["path"]


async def test_body_with_a_fired_signal_reads_nothing(tools, root):
    (root / "a.txt").write_text("x\n")
    abort = AbortSignal()
    abort.abort()
    with pytest.raises(FsError) as caught:
        await tools.definitions["read"].execute({"file_path": "a.txt"}, ToolRunContext(abort=abort))
    assert caught.value.code == "FS_ABORTED"


@pytest.fixture
def on_first_piece(monkeypatch):
    """Do something when the first piece of a file was read; returns the sizes asked for."""

    def install(action):
        real_pieces = files_read._pieces
        pieces = []

        def watched(*arguments):
            for piece in real_pieces(*arguments):
                pieces.append(len(piece))
                trio.from_thread.run_sync(action)
                yield piece

        monkeypatch.setattr(files_read, "_pieces", watched)
        return pieces

    return install


async def test_abort_ends_a_long_read_at_the_next_piece(make_tools, root, on_first_piece):
    tools = make_tools(read_limits=ReadLimits(stream_bytes=1))
    (root / "a.txt").write_text("x\n" * 2_000_000)
    pieces = on_first_piece(tools.abort.abort)
    error = await tools.error("read", file_path="a.txt")
    assert (error.name, error.code) == ("FsError", "FS_ABORTED")
    assert pieces == [1_048_576]


async def test_cancellation_ends_a_long_read_at_the_next_piece(make_tools, root, on_first_piece):
    tools = make_tools(read_limits=ReadLimits(stream_bytes=1))
    (root / "a.txt").write_text("x\n" * 2_000_000)
    with trio.CancelScope() as scope:
        pieces = on_first_piece(scope.cancel)
        await tools("read", file_path="a.txt")
    assert scope.cancelled_caught
    assert pieces == [1_048_576]


async def test_read_stats_the_file_exactly_once(tools, root, monkeypatch):
    (root / "a.txt").write_text("x\n")
    stats = []
    real_fstat = os.fstat
    monkeypatch.setattr(
        "tool_bindings.tools.confinement.os.fstat", lambda fd: stats.append(fd) or real_fstat(fd)
    )
    await tools("read", file_path="a.txt")
    assert len(stats) == 1


def test_read_may_overlap_and_the_others_may_not(tools):
    """spec/contract.md 1.7: only read is parallel-safe among these five."""
    assert {name: tool.concurrency_safe for name, tool in tools.definitions.items()} == {
        "read": True,
        "write": False,
        "edit": False,
        "glob": False,
        "grep": False,
    }
