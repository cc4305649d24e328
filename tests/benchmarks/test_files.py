"""Every benchmark runs, in a small form; none of its figures mean anything here."""

from __future__ import annotations

import functools
import json
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


@pytest.fixture(scope="module")
def sampled():
    """Take one sample of every case of a driver; each driver is started once."""

    @functools.cache
    def sample(spec):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CODEMODE_BENCHMARKS_SMALL", "1")
            with open_driver(spec) as driver:
                return {f"{spec.name}/{case}": driver.sample(case) for case in driver.cases}

    return sample


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_case_of_a_benchmark_gives_samples(spec, sampled):
    assert sampled(spec)
    assert [] == [row for row, values in sampled(spec).items() if not values]


def test_every_claim_and_every_bar_is_about_a_row_that_some_driver_measures(sampled):
    named = rows_of([claim for benchmark in suite.BENCHMARKS for claim in benchmark.claims])
    named |= set(compare_peers.OURS.values())
    named |= {row for panel in suite.PANELS for row, _ in panel.bars}
    peers = {f"{peer.name}/{workload}" for peer in compare_peers.PEERS for workload in compare_peers.OURS}
    assert set() == named - {row for spec in SPECS for row in sampled(spec)} - peers


def test_the_committed_ratios_are_exactly_those_the_suite_measures():
    claims = [claim for benchmark in suite.BENCHMARKS for claim in benchmark.claims]
    committed = json.loads((FOLDER / "baseline.json").read_text())
    assert {claim.text for claim in claims if claim.against is not None} == set(committed)
    assert all(type(ratio) is float and ratio > 0 for ratio in committed.values())


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


def test_a_file_narrowed_to_one_row_measures_that_row_and_what_its_claims_need(small):
    script = str(FOLDER / "bench_nested_calls.py")
    command = [sys.executable, script, "--rounds", "1", "--only", "gathered", "--one-core"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    # Whether its claims hold in one round on a busy machine is chance.
    assert done.returncode in (0, 1)
    rows = {line.split("  ")[0] for line in done.stdout.splitlines() if "/" in line.split(" ")[0]}
    assert {"floors/round trip, one core", "nested_calls/gathered", "nested_calls/batched"} == rows
