"""Makes the benchmarks importable, as they are when one of them is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
for folder in (BENCHMARKS, BENCHMARKS / "peers"):
    sys.path.insert(0, str(folder))


@pytest.fixture
def small(monkeypatch):
    """Drivers that are started do a fiftieth of the work."""
    monkeypatch.setenv("CODEMODE_BENCHMARKS_SMALL", "1")
