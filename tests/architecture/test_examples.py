"""Every example in examples/ runs, from the project's root."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.name for path in (PROJECT / "examples").glob("*.py"))

pytestmark = pytest.mark.needs_linux


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_returns_something(name):
    command = [sys.executable, "-m", "codemode", "run", "--json", f"examples/{name}"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    outcome = json.loads(done.stdout)
    assert (True, 0, "") == (outcome["ok"], done.returncode, done.stderr), outcome
    assert outcome["logs"]
    assert outcome["result"]
    assert {"succeeded"} == {call["status"] for call in outcome["calls"]}


def test_the_census_counts_what_is_there():
    command = [sys.executable, "-m", "codemode", "run", "--json", "examples/code_census.py"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)["result"]
    for package in ("codemode", "sandbox", "tool_bindings"):
        files = list((PROJECT / package).rglob("*.py"))
        expected = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
        # splitlines also breaks at form feeds and the like, which no source file here has.
        assert expected == result["lines"][package]


def test_what_make_run_shows_fits_two_screens_and_names_where_the_rest_is(tmp_path):
    # Its first argument is a virtual environment; the one the tests run in is as good as any.
    folder = tmp_path / "demo"
    demo = ["sh", "scripts/demo", sys.prefix, str(folder)]
    done = subprocess.run(demo, cwd=PROJECT, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    assert "longest functions" in done.stdout
    assert "\x1b" not in done.stdout
    *_, summary, empty, rest = done.stdout.splitlines()
    assert "nested calls" in summary
    assert "failed" not in summary
    assert ("", f"The whole of it: {folder}/timeline.txt, and as a page: {folder}/timeline.html") == (
        empty,
        rest,
    )
    assert done.stdout.count("\n") < 80
    whole = (folder / "timeline.txt").read_text().splitlines()
    assert summary == whole[-1]
    left_out = next(line for line in done.stdout.splitlines() if "more lines ..." in line)
    shown = done.stdout.partition("$ codemode events ")[2].splitlines()[2:-2]
    assert len(whole) == len(shown) - 1 + int(left_out.split()[1])
    assert (folder / "timeline.html").read_text().endswith("</html>\n")
