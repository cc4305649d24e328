"""The grep tool: spec/tools.md section 2, spec/tests 141 and 142."""

from __future__ import annotations

import os

import pytest
import trio

from tool_bindings.tools import ripgrep
from tool_bindings.tools.overflow import SearchLimits
from tool_bindings.tools.search_grep import _arguments
from tool_bindings.tools.search_place import SearchPlace


def write(root, **files):
    for name, text in files.items():
        (root / f"{name}.txt").write_text(text)


def test_arguments_of_the_program():
    place = SearchPlace("a/b", ("a", "b"), (0, 0), None)
    expected = ["--no-config", "--json", "--regexp=-x", "--glob=*.py", "--", "./a/b"]
    assert _arguments("-x", "*.py", place) == expected


async def test_value_text_and_meta(tools, root):
    write(root, b="one\ntwo\n", a="two two\nthree\ntwo\r\n")
    answer = await tools("grep", pattern="two")
    matches = [
        {"path": "a.txt", "lineNumber": 1, "line": "two two"},
        {"path": "a.txt", "lineNumber": 3, "line": "two"},
        {"path": "b.txt", "lineNumber": 2, "line": "two"},
    ]
    assert answer.value == {"matches": matches}
    assert answer.text == "Found 3 matches\n\na.txt\nLine 1: two two\nLine 3: two\n\nb.txt\nLine 2: two"
    assert answer.meta == {
        "shape": "matches",
        "files": [
            {
                "path": "a.txt",
                "matches": [{"lineNumber": 1, "line": "two two"}, {"lineNumber": 3, "line": "two"}],
            },
            {"path": "b.txt", "matches": [{"lineNumber": 2, "line": "two"}]},
        ],
        "truncated": False,
        "total": 3,
    }


async def test_one_match_is_one_match(tools, root):
    write(root, a="x\n")
    assert (await tools("grep", pattern="x")).text == "Found 1 match\n\na.txt\nLine 1: x"


async def test_nothing_found_is_a_success(tools, root):
    """spec/tests 142."""
    write(root, a="x\n")
    answer = await tools("grep", pattern="nope")
    assert (answer.value, answer.text) == ({"matches": []}, "No matches found")
    assert answer.meta == {"shape": "matches", "files": [], "truncated": False, "total": 0}


async def test_pattern_that_looks_like_an_option_is_a_pattern(tools, root):
    """spec/tests 141."""
    write(root, a="-x\n--files\n")
    assert [match["line"] for match in (await tools("grep", pattern="-x")).value["matches"]] == ["-x"]
    assert [match["line"] for match in (await tools("grep", pattern="--files")).value["matches"]] == [
        "--files"
    ]


async def test_whitespace_is_a_pattern(tools, root):
    write(root, a="a b\nab\n")
    assert len((await tools("grep", pattern=" ")).value["matches"]) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"pattern": ""}, "pattern must not be empty"),
        ({"pattern": "a\0"}, "pattern contains a NUL character"),
        ({"pattern": "a", "path": " "}, "path must not be blank"),
        ({"pattern": "a", "include": " "}, "include must not be blank"),
        ({"pattern": "a", "include": "!*.py"}, "include must not start with !"),
        ({"pattern": "a", "include": "*.py,*.txt"}, "include takes one glob, not a list"),
        ({"pattern": "a", "include": "*.{py,txt},x"}, "include takes one glob, not a list"),
    ],
)
async def test_senseless_argument_is_refused_without_a_code(tools, arguments, text):
    """spec/tests 141."""
    error = await tools.error("grep", **arguments)
    assert (error.name, error.code) == (None, None)
    assert text in error.text


async def test_comma_inside_braces_is_one_glob(tools, root):
    """spec/tests 141."""
    for name in ("a.py", "b.txt", "c.md"):
        (root / name).write_text("x\n")
    matches = (await tools("grep", pattern="x", include="*.{py,md}")).value["matches"]
    assert [match["path"] for match in matches] == ["a.py", "c.md"]


@pytest.mark.parametrize("pattern", ["a(", "[", "a\nb", "(?<=x)y"])
async def test_bad_expression_is_an_invalid_pattern(tools, root, pattern):
    """spec/tests 142."""
    write(root, a="x\n")
    error = await tools.error("grep", pattern=pattern)
    assert (error.name, error.code) == ("SearchError", "SEARCH_INVALID_PATTERN")


async def test_bad_include_is_an_invalid_pattern(tools):
    assert (await tools.error("grep", pattern="x", include="a{")).code == "SEARCH_INVALID_PATTERN"


async def test_hidden_ignored_and_binary_files_are_skipped(tools, root):
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("ignored.txt\n")
    write(root, ignored="x\n", seen="x\n", **{".hidden": "x\n"})
    (root / "binary.txt").write_bytes(b"\0\0x\n")
    matches = (await tools("grep", pattern="x")).value["matches"]
    assert [match["path"] for match in matches] == ["seen.txt"]


async def test_directory_as_path(tools, root):
    (root / "d/e").mkdir(parents=True)
    for name in ("d/a.txt", "d/e/b.txt", "c.txt"):
        (root / name).write_text("x\n")
    (root / "link").symlink_to("d")
    for path, shown in (("d", "d"), (f"{root}/d/", "d"), ("link", "link"), ("d/e/..", "d")):
        matches = (await tools("grep", pattern="x", path=path)).value["matches"]
        assert [match["path"] for match in matches] == [f"{shown}/a.txt", f"{shown}/e/b.txt"]


async def test_file_as_path_is_searched_also_when_hidden_and_whatever_include_says(tools, root):
    (root / "d").mkdir()
    (root / "d/.hidden").write_text("no\nx\n")
    answer = await tools("grep", pattern="x", path="d/.hidden", include="*.py")
    assert answer.value["matches"] == [{"path": "d/.hidden", "lineNumber": 2, "line": "x"}]


@pytest.mark.parametrize("path", ["..", "/etc/passwd", "out.txt", "out/secret.txt"])
async def test_path_outside_the_root_is_refused(tools, root, outside, path):
    (root / "out").symlink_to(outside)
    (root / "out.txt").symlink_to(outside / "secret.txt")
    error = await tools.error("grep", pattern="CANARY|root", path=path)
    assert (error.name, error.code) == ("FsError", "FS_SANDBOX_DENIED")


async def test_links_beneath_the_searched_directory_are_not_followed(tools, root, outside):
    (root / "out").symlink_to(outside)
    (root / "out.txt").symlink_to(outside / "secret.txt")
    assert (await tools("grep", pattern="CANARY")).value["matches"] == []


async def test_file_swapped_for_a_link_after_the_check_is_still_the_checked_file(
    tools, root, outside, monkeypatch
):
    from tool_bindings.tools import search_grep

    write(root, a="inside\n")
    real = search_grep.run_ripgrep

    async def run(*arguments, **options):
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(outside / "secret.txt")
        return await real(*arguments, **options)

    monkeypatch.setattr(search_grep, "run_ripgrep", run)
    matches = (await tools("grep", pattern=".", path="a.txt")).value["matches"]
    assert [match["line"] for match in matches] == ["inside"]


async def test_fifo_and_missing_paths_are_refused(tools, root):
    os.mkfifo(root / "pipe")
    assert (await tools.error("grep", pattern="x", path="pipe")).code == "FS_NOT_REGULAR_FILE"
    error = await tools.error("grep", pattern="x", path="nope")
    assert (error.code, 'there is no "nope"' in error.text) == ("SEARCH_FAILED", True)


async def test_line_that_is_not_utf8_has_a_placeholder(tools, root):
    (root / "a.txt").write_bytes(b"ok x\n\xff x\n")
    lines = [match["line"] for match in (await tools("grep", pattern="x")).value["matches"]]
    assert lines == ["ok x", "(this line is not valid UTF-8)"]


async def test_path_that_is_not_utf8_fails_and_says_how_to_go_on(tools, root):
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("x\n")
    error = await tools.error("grep", pattern="x")
    assert (error.name, error.code) == ("SearchError", "SEARCH_FAILED")
    assert "include" in error.text


async def test_over_the_cap_the_value_is_complete_and_the_text_is_a_page(tools, root):
    """spec/tests 141."""
    write(root, a="x\n" * 200, b="x\n" * 200)
    answer = await tools("grep", pattern="x")
    assert len(answer.value["matches"]) == 400
    assert answer.text.startswith("Found 250 of 400 matches\n\na.txt\nLine 1: x\n")
    assert answer.text.endswith(
        "\nLine 50: x\n\n(The complete result could not be saved; use a narrower pattern, path or include.)"
    )
    assert answer.text.count("Line ") == 250
    assert (answer.meta["truncated"], answer.meta["total"]) == (True, 400)


async def test_long_line_is_whole_in_the_value_and_cut_where_it_is_shown(tools, root):
    write(root, a="é" * 1500 + "\n")
    answer = await tools("grep", pattern="é")
    assert answer.value["matches"][0]["line"] == "é" * 1500
    assert answer.text.endswith("Line 1: " + "é" * 1000 + " (line truncated)")
    assert answer.meta["files"][0]["matches"][0]["line"] == "é" * 1000 + " (line truncated)"


async def test_meta_drops_trailing_files_to_fit_and_keeps_at_least_one(make_tools, root):
    tools = make_tools(search_limits=SearchLimits(sample_over_cap=True, meta_bytes=350))
    write(root, a="x" * 60 + "\n", b="x" * 60 + "\n", c="x" * 500 + "\n")
    meta = (await tools("grep", pattern="x")).meta
    assert [file["path"] for file in meta["files"]] == ["a.txt", "b.txt"]
    assert (meta["truncated"], meta["total"]) == (True, 3)
    only = (await tools("grep", pattern="x", path="c.txt")).meta
    assert (len(only["files"]), only["truncated"]) == (1, False)


async def test_same_search_gives_the_same_value(tools, root):
    for n in range(60):
        (root / f"{n:02}.txt").write_text("x\n" * 3)
    first = await tools("grep", pattern="x")
    for _ in range(5):
        assert (await tools("grep", pattern="x")).value == first.value


async def test_malformed_output_of_the_program_fails(tools, monkeypatch):
    from tool_bindings.tools import search_grep

    async def run(*_arguments, **_options):
        return b'{"type":"match"\n'

    monkeypatch.setattr(search_grep, "run_ripgrep", run)
    error = await tools.error("grep", pattern="x")
    assert (error.name, error.code) == ("SearchError", "SEARCH_FAILED")


async def test_reported_path_outside_the_searched_place_fails(tools, root, monkeypatch):
    from tool_bindings.tools import search_grep

    async def run(*_arguments, **_options):
        return (
            b'{"type":"match","data":{"path":{"text":"/etc/passwd"},"lines":{"text":"x"},"line_number":1}}\n'
        )

    monkeypatch.setattr(search_grep, "run_ripgrep", run)
    assert "outside the place it searched" in (await tools.error("grep", pattern="x")).text


@pytest.fixture
def endless_program(monkeypatch, tmp_path):
    """Put a program that never ends in the place of the search program; gives the processes started."""
    path = tmp_path / "rg"
    path.write_text("#!/bin/sh\nexec sleep 1000\n")
    path.chmod(0o755)
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(path))
    processes = []
    started = trio.Event()
    real = trio.lowlevel.open_process

    async def open_process(*arguments, **options):
        processes.append(await real(*arguments, **options))
        started.set()
        return processes[-1]

    monkeypatch.setattr(trio.lowlevel, "open_process", open_process)
    return processes, started


@pytest.mark.parametrize("tool", ["glob", "grep"])
async def test_aborted_search_is_recorded_as_such_and_leaves_no_process(tools, endless_program, tool):
    processes, started = endless_program
    results = []

    async def search():
        results.append(await tools.error(tool, pattern="x"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(search)
        await started.wait()
        tools.abort.abort()
    (error,) = results
    assert (error.name, error.code) == ("SearchError", "SEARCH_ABORTED")
    with pytest.raises(ProcessLookupError):
        os.kill(processes[0].pid, 0)


@pytest.mark.parametrize("tool", ["glob", "grep"])
async def test_search_that_takes_too_long_times_out_and_leaves_no_process(
    tools, endless_program, tool, autojump_clock
):
    processes, _ = endless_program
    error = await tools.error(tool, pattern="x")
    assert (error.name, error.code) == ("ToolTimeoutError", "TOOL_TIMEOUT")
    assert "tool call timed out after 30000ms" in error.text
    with pytest.raises(ProcessLookupError):
        os.kill(processes[0].pid, 0)
