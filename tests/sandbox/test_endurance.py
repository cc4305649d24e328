"""The endurance benchmark in a small form: nothing leaks, stalls or ends in an unexpected way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "endurance.py"


@pytest.mark.needs_linux
def test_two_hundred_mixed_runs_leave_nothing_behind():
    done = subprocess.run([sys.executable, str(BENCHMARK), "--runs", "200"], capture_output=True, text=True)
    assert "" == done.stderr
    # How soon the event loop comes back is the machine's affair as well; the benchmark says it, no test does.
    answers = [line for line in done.stdout.splitlines() if not line.startswith("event loop lag")]
    assert [] == [line for line in answers if "not as it must be" in line]
    assert "zombies                   0" in answers
    assert "unexpected outcomes       0" in answers
