"""Runs mypy --strict over the published API's typing examples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("registry_api.py")
ERROR = re.compile(r"registry_api\.py:(\d+): error: .*\[([a-z-]+)\]$")


def test_the_checker_accepts_right_uses_and_refuses_wrong_ones(tmp_path):
    """Issue 5: @registry.tool keeps the function's type, and wrong renderers are caught."""
    pytest.importorskip("mypy")
    expected = {
        (number, line.rpartition("# E: ")[2])
        for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1)
        if "  # E: " in line
    }
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path),
        "--config-file",
        "",
        str(SOURCE),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SOURCE.parents[2])
    found = {
        (int(match[1]), match[2])
        for match in map(ERROR.search, done.stdout.splitlines())
        if match is not None
    }
    assert expected == found, done.stdout + done.stderr
