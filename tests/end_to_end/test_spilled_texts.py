"""What is too long to show is kept for the session that a command records, and for no other."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from codemode.session_log import SessionLog

pytestmark = pytest.mark.needs_linux

NUMBER = 400


@pytest.fixture
def many(folder):
    """Leave more files and more matching lines than a search shows."""
    for number in range(NUMBER):
        (folder / f"file{number:03}.txt").write_text(f"needle {number}\n")
    return folder


@pytest.mark.parametrize(
    ("lines", "tool", "arguments"),
    [
        (["file399.txt"], "glob", {"pattern": "*.txt"}),
        (["file399.txt", "Line 1: needle 399"], "grep", {"pattern": "needle", "include": "*.txt"}),
    ],
)
def test_a_search_that_shows_a_part_says_where_the_whole_is_and_the_session_can_read_it(
    codemode, many, lines, tool, arguments
):
    status, out, err = codemode("call", "--events", "e.jsonl", tool, json.dumps(arguments))
    assert (0, "") == (status, err)
    (locator,) = set(re.findall(r"spill:[0-9a-f]{16}", out))
    # A second command goes on with the session, so it may read what is its own.
    code = (
        f"text = await tools.read(file_path={locator!r}, limit=2000)\n"
        f"found = await tools.grep(pattern='399', path={locator!r})\n"
        "return [line['text'] for line in text['lines'] if '399' in line['text']], len(found['matches'])"
    )
    status, out, err = codemode("run", "--json", "--events", "e.jsonl", "-c", code)
    assert (0, "") == (status, err)
    assert [lines, len(lines)] == json.loads(out)["result"]
    status, _, err = codemode("run", "--events", "other.jsonl", "-c", code)
    assert 1 == status
    assert "there is no stored text" in err


def test_without_a_recorded_session_nothing_is_kept(codemode, many):
    status, out, _ = codemode("call", "glob", '{"pattern": "*.txt"}')
    assert (0, False) == (status, "spill:" in out)
    assert [] == list(Path(os.environ["XDG_CACHE_HOME"]).iterdir())


def test_a_long_result_is_kept_whole_and_recorded_in_part(codemode, folder):
    code = "return 'x' * 200_000"
    status, out, _ = codemode("run", "--events", "e.jsonl", "-c", code)
    assert (0, "x" * 200_000 + "\n") == (status, out)
    (result,) = SessionLog.load(folder / "e.jsonl").replay().results
    text = result.content[0]["text"]
    assert len(text) <= 50_000
    (locator,) = re.findall(r"Full formatted result stored at: (spill:[0-9a-f]{16})\.", text)
    code = f"part = await tools.read(file_path={locator!r}); return part['totalLines']"
    assert (0, "1\n", "") == codemode("run", "--events", "e.jsonl", "-c", code)


def test_a_batch_spills_what_it_records_and_keeps_its_values(codemode, many):
    (many / "in.jsonl").write_text('{"tool": "glob", "arguments": {"pattern": "*.txt"}}\n')
    status, out, _ = codemode("batch", "in.jsonl", "--events", "e.jsonl")
    assert (0, NUMBER) == (status, len(json.loads(out)["value"]["paths"]))
    assert re.search(r"spill:[0-9a-f]{16}", (many / "e.jsonl").read_text())
