"""Other systems: how their drivers are made, and what happens when one cannot be installed."""

from __future__ import annotations

import sys

import compare_peers
import pytest
import shared
import workloads
from measuring import environments
from measuring.drivers import DriverSpec, open_driver
from measuring.environments import InstallError
from measuring.rounds import Measured

PLAIN = next(peer for peer in compare_peers.PEERS if peer.name == "plain exec")


def test_the_driver_of_plain_exec_runs_every_workload_and_its_results_are_right(small):
    script = str(compare_peers.SCRIPTS / PLAIN.script)
    with open_driver(DriverSpec("plain exec", (sys.executable, script))) as driver:
        assert set(compare_peers.OURS) == set(driver.cases)
        assert all(driver.sample(name) for name in driver.cases)


def test_a_system_that_gives_a_wrong_result_is_found_out():
    case = shared.cases(lambda _program: 2, {shared.TRIVIAL: "1"})[shared.TRIVIAL]
    with pytest.raises(ValueError, match="trivial run: the program gave '2', not 1"):
        case.measure()


def test_every_dialect_says_the_same_in_its_own_words():
    programs = shared.returning("return {}", add='call("add", {{"a": {a}}})', rows="(await rows())")
    assert "return 1" == programs[shared.TRIVIAL]
    assert 'last = call("add", {"a": i})' in programs[shared.SEQUENTIAL]
    assert programs[shared.LARGE].endswith("return len((await rows()))")
    assert set(compare_peers.OURS) == set(programs)


def test_the_large_value_is_about_a_megabyte_of_objects_with_three_fields():
    import json

    rows = workloads.make_rows(10_000)
    assert {("id", "name", "score")} == {tuple(row) for row in rows}
    assert 950_000 < len(json.dumps(rows, separators=(",", ":"))) < 1_100_000


def test_a_system_that_cannot_be_installed_is_reported_and_the_others_are_started(monkeypatch):
    def python_for(requirements):
        if requirements and requirements[0].startswith("smolagents"):
            raise InstallError("no matching distribution")
        return sys.executable

    monkeypatch.setattr(compare_peers, "python_for", python_for)
    found, missing = compare_peers.specs()
    assert {"smolagents local": "cannot be installed: no matching distribution"} == missing
    assert len(compare_peers.PEERS) - 1 == len(found)
    table = compare_peers.matrix(Measured(failures=missing))
    assert "no matching distribution" in table


def test_an_environment_is_made_once_and_a_half_made_one_again(monkeypatch, tmp_path):
    commands = []
    folder = tmp_path / "codemode" / "benchmarks" / environments.folder_name(("x>=1",))

    def run(command):
        commands.append(command)
        if "venv" in command:
            python = folder / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        elif fail:
            raise InstallError("no network")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environments, "_run", run)
    fail = True
    with pytest.raises(InstallError, match="no network"):
        environments.python_for(("x>=1",))
    fail = False
    python = environments.python_for(("x>=1",))
    assert python == environments.python_for(("x>=1",))
    assert python.startswith(str(tmp_path))
    assert ["venv", "x>=1", "venv", "x>=1"] == [
        "venv" if "venv" in command else command[-1] for command in commands
    ]


def test_what_pip_said_last_is_the_reason():
    with pytest.raises(InstallError, match=r"^the reason$"):
        environments._run([sys.executable, "-c", "raise SystemExit('first\\nthe reason\\n')"])


def test_what_needs_nothing_runs_with_our_own_interpreter():
    assert sys.executable == environments.python_for(())


def test_other_requirements_get_another_environment():
    assert environments.folder_name(("a>=1",)) != environments.folder_name(("a>=2",))
