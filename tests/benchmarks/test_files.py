"""Every benchmark runs, in a small form; none of its figures mean anything here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import compare_peers
import pytest
import suite
from measuring.claims import rows_of
from measuring.drivers import open_driver

FOLDER = Path(__file__).parents[2] / "benchmarks"
SPECS = dict.fromkeys(spec for benchmark in suite.BENCHMARKS for spec in (benchmark.spec, *benchmark.beside))

pytestmark = pytest.mark.needs_linux


def test_the_suite_has_every_benchmark_file():
    files = {path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py")}
    assert files == {benchmark.name for benchmark in suite.BENCHMARKS}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_case_of_a_benchmark_gives_samples(spec, small):
    with open_driver(spec) as driver:
        samples = {name: driver.sample(name) for name in driver.cases}
    assert samples
    assert [] == [name for name, values in samples.items() if not values]


def test_every_claim_is_about_rows_that_some_driver_measures(small):
    claimed = rows_of([claim for benchmark in suite.BENCHMARKS for claim in benchmark.claims])
    claimed |= set(compare_peers.OURS.values())
    claimed |= {name for panel in suite.PANELS for name, _ in panel.bars}
    peers = {peer.name for peer in compare_peers.PEERS}
    measured = set()
    for spec in SPECS:
        with open_driver(spec) as driver:
            measured |= {f"{spec.name}/{case}" for case in driver.cases}
    assert set() == {row for row in claimed if row not in measured and row.partition("/")[0] not in peers}


def test_one_file_prints_rows_and_claims_and_writes_json(small, tmp_path):
    out = tmp_path / "out.json"
    command = [
        sys.executable,
        str(FOLDER / "bench_session_log_append.py"),
        "--rounds",
        "1",
        "--json",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    assert "session_log_append/100 bytes" in done.stdout
    assert "recording a call, 10 000 bytes / 100 bytes" in done.stdout
    assert out.exists()


def test_the_suite_narrowed_to_one_row_measures_that_row_and_what_its_claims_need(small):
    command = [sys.executable, str(FOLDER / "suite.py"), "--rounds", "1", "--only", "gathered", "--one-core"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    rows = {line.split("  ")[0] for line in done.stdout.splitlines() if "/" in line.split(" ")[0]}
    assert {
        "floors/round trip, one core",
        "nested_calls/gathered",
        "nested_calls/batched",
    } == rows
