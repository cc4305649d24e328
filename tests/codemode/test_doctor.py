"""What `codemode doctor` says of this machine, and of machines that lack something."""

from __future__ import annotations

import json
import sys

import pytest

from codemode import doctor
from sandbox.isolation import plan

KERNEL_STEPS = [step.name for step in plan.STEPS]


@pytest.fixture(scope="module")
def found():
    return doctor.report()


@pytest.mark.needs_linux
def test_every_wall_has_a_row_and_the_language_is_first(found):
    assert ["language", *KERNEL_STEPS] == [row["name"] for row in found["walls"]]


@pytest.mark.needs_linux
def test_the_mandatory_walls_are_active_here_and_require_starts(found):
    rows = {row["name"]: row for row in found["walls"]}
    assert {"language", "no-new-privileges", "rlimits", "seccomp"} == {
        n for n, r in rows.items() if r["mandatory"]
    }
    assert all(row["active"] for row in rows.values() if row["mandatory"])
    assert {"starts": True, "exitStatus": 0, "missing": []} == found["require"]
    assert 0 == doctor.exit_status(found)


@pytest.mark.needs_linux
def test_the_report_is_json(found):
    assert found == json.loads(json.dumps(found))


@pytest.mark.needs_linux
@pytest.mark.parametrize("width", [72, 100])
def test_the_table_names_every_wall_and_fits_its_width(found, width):
    lines = doctor.table(found, width).splitlines()
    assert [] == [line for line in lines if len(line) > width]
    starts = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert set(KERNEL_STEPS) < set(starts)


@pytest.mark.needs_linux
def test_a_missing_mandatory_wall_is_named_with_exit_status_3_and_the_way_out(monkeypatch):
    async def worker_without_seccomp():
        steps = [plan.StepReport(step.name, active=step.name != "seccomp") for step in plan.STEPS]
        return {step.name: step for step in steps}, True

    monkeypatch.setattr(doctor, "_ask_worker", worker_without_seccomp)
    found = doctor.report()
    assert {"starts": False, "exitStatus": 3, "missing": ["seccomp"]} == found["require"]
    assert found["bestEffort"]["starts"]
    assert 3 == doctor.exit_status(found)
    text = " ".join(doctor.table(found).split())
    assert "require: refuses with exit status 3, because of seccomp" in text
    assert "best-effort: programs run, without seccomp" in text


def test_a_language_wall_that_lets_an_escape_through_is_a_missing_wall(monkeypatch):
    async def worker_without_policy():
        return {step.name: plan.StepReport(step.name, active=True) for step in plan.STEPS}, False

    monkeypatch.setattr(doctor, "_ask_worker", worker_without_policy)
    assert ["language"] == doctor.report()["require"]["missing"]


def test_on_another_system_nothing_is_active_and_a_linux_container_is_the_way_out(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    found = doctor.report()
    assert not any(row["active"] for row in found["walls"])
    assert not found["bestEffort"]["starts"]
    assert 3 == doctor.exit_status(found)
    assert "Linux container" in " ".join(doctor.table(found).split())
