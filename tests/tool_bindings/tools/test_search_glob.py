"""The glob tool: spec/tools.md section 2, spec/tests 140 and 142."""

from __future__ import annotations

import os

import pytest
import trio

from tool_bindings.tools.overflow import SearchLimits
from tool_bindings.tools.search_glob import _arguments, _shares, glob_overflow
from tool_bindings.tools.search_place import SearchPlace

EXCLUDED = [
    f"--glob={glob}"
    for name in (".git", ".svn", ".hg", ".bzr", ".jj", ".sl")
    for glob in (f"!**/{name}", f"!**/{name}/**")
]


def make(root, *paths):
    """Make files whose modification times follow their order."""
    for age, path in enumerate(paths):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
        os.utime(root / path, (1_000_000 + age, 1_000_000 + age))


def test_arguments_of_the_program():
    place = SearchPlace(".", (), (0, 0), None)
    assert _arguments("-x", place) == [
        "--no-config",
        "--files",
        "--glob=-x",
        "--sort=modified",
        "--no-ignore",
        "--hidden",
        *EXCLUDED,
        "--null",
        "--",
        ".",
    ]


async def test_value_text_and_meta(tools, root):
    make(root, "b.py", "a/c.py", "d.txt")
    answer = await tools("glob", pattern="*.py")
    assert answer.value == {"root": ".", "paths": ["b.py", "a/c.py"]}
    assert answer.text == "b.py\na/c.py"
    meta = {"shape": "paths", "paths": ["b.py", "a/c.py"], "truncated": False, "total": 2}
    assert answer.meta == meta


async def test_oldest_file_comes_first(tools, root):
    make(root, "z", "y", "x")
    assert (await tools("glob", pattern="*")).value["paths"] == ["z", "y", "x"]


async def test_nothing_found_is_a_success(tools):
    """spec/tests 142."""
    answer = await tools("glob", pattern="*.nope")
    assert answer.value == {"root": ".", "paths": []}
    assert answer.text == "No files found"
    assert answer.meta == {"shape": "paths", "paths": [], "truncated": False, "total": 0}


async def test_hidden_and_ignored_files_are_found_and_repositories_are_not(tools, root):
    make(root, ".hidden.py", "ignored.py", ".git/hook.py", "sub/.hg/x.py", ".dir/a.py", ".github/b.py")
    (root / ".gitignore").write_text("ignored.py\n")
    found = (await tools("glob", pattern="*.py")).value["paths"]
    assert sorted(found) == [".dir/a.py", ".github/b.py", ".hidden.py", "ignored.py"]


async def test_same_number_of_files_as_find(tools, root):
    make(root, "a.py", ".b.py", "c/d/e.py", ".venv/lib/f.py", ".git/g.py", "h.txt", "node_modules/i.py")
    (root / ".gitignore").write_text("node_modules\n.venv\n")
    command = "find . -name '*.py' -not -path './.git/*' | wc -l"
    counted = await trio.run_process(command, shell=True, cwd=root, capture_stdout=True)
    expected = int(counted.stdout)
    assert expected == 5
    assert len((await tools("glob", pattern="**/*.py")).value["paths"]) == expected


async def test_pattern_with_a_slash_is_anchored_and_without_matches_any_depth(tools, root):
    make(root, "src/a.py", "lib/src/b.py")
    assert (await tools("glob", pattern="src/*.py")).value["paths"] == ["src/a.py"]
    assert (await tools("glob", pattern="**/src/*.py")).value["paths"] == ["src/a.py", "lib/src/b.py"]
    assert (await tools("glob", pattern="*.py")).value["paths"] == ["src/a.py", "lib/src/b.py"]


async def test_path_narrows_the_search_and_paths_stay_relative_to_the_root(tools, root):
    make(root, "src/a.py", "src/x/b.py", "c.py")
    for path in ("src", "src/", "./src", f"{root}/src"):
        answer = await tools("glob", pattern="*.py", path=path)
        assert answer.value == {"root": "src", "paths": ["src/a.py", "src/x/b.py"]}


async def test_pattern_with_a_slash_also_counts_from_the_given_directory(tools, root):
    make(root, "p{k}g/src/a.py", "src/b.py")
    assert (await tools("glob", pattern="src/*.py", path="p{k}g")).value["paths"] == ["p{k}g/src/a.py"]
    assert (await tools("glob", pattern="src/*.py", path="src")).value["paths"] == ["src/b.py"]


async def test_root_by_every_name_is_shown_as_a_dot(tools, root):
    make(root, "a.py", "d/b.py")
    for path in (None, ".", "d/..", str(root)):
        arguments = {} if path is None else {"path": path}
        assert (await tools("glob", pattern="a.py", **arguments)).value == {"root": ".", "paths": ["a.py"]}


async def test_links_are_not_followed_but_a_link_given_as_path_is(tools, root, outside):
    make(root, "real/a.py")
    (root / "link").symlink_to("real")
    (root / "out").symlink_to(outside)
    assert (await tools("glob", pattern="*.py")).value["paths"] == ["real/a.py"]
    answer = await tools("glob", pattern="*.py", path="link")
    assert answer.value == {"root": "link", "paths": ["link/a.py"]}


@pytest.mark.parametrize("path", ["..", "/etc", "out", "../root/d", "d/../.."])
async def test_path_outside_the_root_is_refused(tools, root, outside, path):
    (root / "d").mkdir()
    (root / "out").symlink_to(outside)
    error = await tools.error("glob", pattern="*", path=path)
    assert (error.name, error.code) == ("FsError", "FS_SANDBOX_DENIED")


async def test_path_that_is_no_directory_is_refused(tools, root):
    make(root, "a.py")
    error = await tools.error("glob", pattern="*", path="a.py")
    assert (error.name, error.code) == ("SearchError", "SEARCH_FAILED")
    assert "must be a directory" in error.text
    assert 'there is no "nope" to search' in (await tools.error("glob", pattern="*", path="nope")).text


async def test_directory_replaced_by_a_link_while_it_is_searched_gives_no_results(
    tools, root, outside, monkeypatch
):
    make(root, "d/a.py")
    from tool_bindings.tools import search_glob

    real = search_glob.run_ripgrep

    async def run(*arguments, **options):
        (root / "d").rename(root / "moved")
        (root / "d").symlink_to(outside)
        return await real(*arguments, **options)

    monkeypatch.setattr(search_glob, "run_ripgrep", run)
    error = await tools.error("glob", pattern="*", path="d")
    assert error.code == "SEARCH_FAILED"
    assert "secret" not in error.text


async def test_names_with_line_breaks_and_other_bytes_are_one_path_each(tools, root):
    odd = os.fsdecode(b"caf\xe9.py")
    make(root, "two\nlines.py", odd, "-dash.py", "spa ce.py")
    answer = await tools("glob", pattern="*.py")
    assert answer.value["paths"] == ["two\nlines.py", odd, "-dash.py", "spa ce.py"]
    assert "caf\ufffd.py" in answer.text
    assert (await tools("read", file_path=odd)).value["totalLines"] == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"pattern": " "}, "pattern must not be blank"),
        ({"pattern": "a\0"}, "pattern contains a NUL character"),
        ({"pattern": "\ud800"}, "pattern holds a lone surrogate at position 0"),
        ({"pattern": "x" * 65_537}, "pattern is 65537 bytes long; a pattern has at most 65536 bytes"),
        ({"pattern": "*", "path": ""}, "path must not be blank"),
    ],
)
async def test_senseless_argument_is_refused_without_a_code(tools, arguments, text):
    error = await tools.error("glob", **arguments)
    assert (error.name, error.code) == (None, None)
    assert text in error.text


async def test_bad_glob_is_an_invalid_pattern(tools):
    """spec/tests 142."""
    error = await tools.error("glob", pattern="a{")
    assert (error.name, error.code) == ("SearchError", "SEARCH_INVALID_PATTERN")
    assert "a{" in error.text


async def test_over_the_cap_the_value_is_complete_and_the_page_is_a_sample(tools, root):
    """spec/tests 140."""
    make(root, *[f"big/{n:03}" for n in range(150)], "small/x", "small/y", "top")
    answer = await tools("glob", pattern="*")
    assert len(answer.value["paths"]) == 153
    page, notice = answer.text.rsplit("\n\n", 1)
    rows = page.split("\n")
    assert rows == [*[f"big/{n:03}" for n in range(97)], "small/x", "small/y", "top"]
    assert notice == (
        "(Showing 100 of 153 paths, sampled across 3 of 3 top-level entries. "
        "The complete result could not be saved; use a narrower pattern or path.)"
    )
    assert answer.meta == {"shape": "paths", "paths": rows, "truncated": True, "total": 153}


async def test_sample_of_more_entries_than_fit_says_how_to_see_the_others(tools, root):
    """spec/tests 140."""
    make(root, *[f"d{n:03}/{name}" for n in range(120) for name in "ab"])
    answer = await tools("glob", pattern="*")
    assert "(Showing 100 of 240 paths, sampled across 100 of 120 top-level entries. Set path" in answer.text


async def test_flat_result_over_the_cap_is_a_head(tools, root):
    """spec/tests 140."""
    make(root, *[f"{n:03}" for n in range(101)])
    answer = await tools("glob", pattern="*")
    assert answer.text.startswith("000\n001\n")
    assert "\n099\n\n(Showing 100 of 101 paths. The complete" in answer.text


async def test_sample_is_taken_below_the_searched_directory(tools, root):
    make(root, *[f"s/big/{n:03}" for n in range(150)], "s/small/x")
    answer = await tools("glob", pattern="*", path="s")
    assert "\ns/small/x\n\n(Showing 100 of 151 paths, sampled across 2 of 2" in answer.text


async def test_page_is_a_head_when_sampling_is_off(make_tools, root):
    """spec/tests 140."""
    tools = make_tools(search_limits=SearchLimits(sample_over_cap=False))
    make(root, *[f"big/{n:03}" for n in range(150)], "small/x")
    answer = await tools("glob", pattern="*")
    assert answer.text.startswith("big/000\n")
    assert "\nbig/099\n\n(Showing 100 of 151 paths. The complete" in answer.text


async def test_result_of_exactly_the_cap_is_whole(tools, root):
    make(root, *[f"{n:03}" for n in range(100)])
    answer = await tools("glob", pattern="*")
    assert "Showing" not in answer.text
    assert answer.meta["truncated"] is False


async def test_meta_stays_below_its_cap(make_tools, root):
    tools = make_tools(search_limits=SearchLimits(sample_over_cap=True, meta_bytes=300))
    make(root, *[f"{n:03}" + "x" * 40 for n in range(20)])
    meta = (await tools("glob", pattern="*")).meta
    assert (len(meta["paths"]), meta["truncated"], meta["total"]) == (5, True, 20)


def test_shares_are_dealt_out_in_rounds():
    assert _shares([1, 5, 2], 6) == [1, 3, 2]
    assert _shares([3, 3], 1) == [1, 0]


def test_overflow_is_none_when_the_page_shows_everything():
    assert glob_overflow({"root": ".", "paths": ["a"] * 100}, SearchLimits(sample_over_cap=True)) is None


def test_limits_below_one_are_refused():
    with pytest.raises(ValueError, match="shown_paths must be at least 1, not 0"):
        SearchLimits(sample_over_cap=True, shown_paths=0)
