"""The list of steps: its order, its reports, and what happens where the kernel lacks one."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import prefilter
import pytest

from sandbox.errors import IsolationUnavailableError, WorkerStartError
from sandbox.isolation import plan
from sandbox.limits import Limits
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Program, SandboxSettings

PREFILTER = (sys.executable, prefilter.__file__)
NAMES = [step.name for step in plan.STEPS]


def position(name):
    return NAMES.index(name)


def test_the_mandatory_steps_are_those_of_the_design():
    mandatory = {step.name for step in plan.STEPS if step.mandatory}
    assert {"no-new-privileges", "rlimits", "seccomp"} == mandatory


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("user", "namespaces"),
        ("namespaces", "root"),
        ("root", "capabilities"),
        ("capabilities", "parent-death"),
        ("no-new-privileges", "landlock"),
        ("landlock", "seccomp"),
        ("rlimits", "seccomp"),
    ],
)
def test_a_step_comes_before_the_one_that_needs_it_or_forbids_it(before, after):
    assert position(before) < position(after)


def test_steps_of_the_fork_server_come_before_those_of_its_workers():
    places = [step.place for step in plan.STEPS]
    assert sorted(places) == places


def test_every_step_says_what_it_prevents_and_what_it_costs():
    assert [] == [step.name for step in plan.STEPS if not step.prevents or step.cost_us <= 0]


def test_a_step_that_fails_is_reported_and_the_next_ones_are_applied(monkeypatch):
    def refuse(_):
        raise OSError(errno.EPERM, "refused for the test")

    first = plan.Step("first", "worker", False, "x", str, refuse, 1)
    second = plan.Step("second", "worker", False, "x", str, lambda _: "done", 1)
    third = plan.Step("third", "worker", False, "x", str, lambda _: "done", 1, needs="first")
    monkeypatch.setattr(plan, "STEPS", (first, second, third))
    reports = plan.apply_steps("worker", plan.Launch())
    assert [
        plan.StepReport("first", active=False, detail="refused for the test"),
        plan.StepReport("second", active=True, detail="done"),
        plan.StepReport("third", active=False, detail="needs the step 'first'"),
    ] == list(reports)


def test_only_mandatory_steps_are_missed():
    reports = (plan.StepReport("landlock", active=False), plan.StepReport("seccomp", active=False))
    assert ["seccomp"] == [report.name for report in plan.missing_mandatory(reports)]


@pytest.mark.needs_linux
def test_probing_reports_every_step_and_changes_nothing():
    before = Path("/proc/self/status").read_text()
    reports = plan.probe_steps()
    after = Path("/proc/self/status").read_text()
    assert NAMES == [report.name for report in reports]

    def facts(status):
        return [
            line for line in status.splitlines() if line.startswith(("Cap", "NoNewPrivs", "Seccomp", "Uid"))
        ]

    assert facts(before) == facts(after)


async def isolation_with(*options, isolation="require", kernel_wall=True):
    launcher = (*PREFILTER, *options, "--") if options else ()
    settings = SandboxSettings(limits=Limits(memory_mb=128), parked_workers=1, isolation=isolation)
    async with open_test_sandbox(
        settings, language_wall=False, launcher=launcher, kernel_wall=kernel_wall
    ) as sandbox:
        outcome = await sandbox.run(Program("1 + 2"))
        assert 3 == outcome.value
        return {step.name: step for step in sandbox.isolation}


@pytest.mark.needs_linux
async def test_every_report_of_a_worker_names_a_step():
    steps = await isolation_with()
    assert NAMES == list(steps)


@pytest.mark.needs_linux
async def test_without_landlock_the_rest_stands_and_the_report_says_so():
    steps = await isolation_with("--without=landlock")
    assert not steps["landlock"].active
    assert steps["landlock"].detail
    assert steps["seccomp"].active


@pytest.mark.needs_linux
async def test_without_namespaces_the_private_root_is_not_tried():
    steps = await isolation_with("--without=namespaces")
    assert not steps["namespaces"].active
    assert "needs the step 'namespaces'" == steps["root"].detail
    assert steps["seccomp"].active


@pytest.mark.needs_linux
async def test_without_seccomp_require_refuses_and_names_it():
    with pytest.raises(IsolationUnavailableError, match="seccomp") as caught:
        await isolation_with("--without=seccomp")
    assert ("seccomp",) == caught.value.missing


@pytest.mark.needs_linux
async def test_without_seccomp_best_effort_goes_on_and_says_so():
    steps = await isolation_with("--without=seccomp", isolation="best-effort")
    assert not steps["seccomp"].active
    assert steps["rlimits"].active


@pytest.mark.needs_linux
async def test_the_kernel_wall_can_be_taken_down_for_tests_and_the_report_says_so():
    steps = await isolation_with(kernel_wall=False)
    assert not steps["kernel"].active
    assert steps["rlimits"].active


@pytest.mark.needs_linux
@pytest.mark.needs_root
async def test_as_an_ordinary_user_the_same_steps_are_active_as_for_root():
    as_root = await isolation_with()
    as_user = await isolation_with("--uid=65534")
    assert [step.active for step in as_root.values()] == [step.active for step in as_user.values()]


@pytest.mark.needs_linux
async def test_a_fork_server_that_ends_at_once_gives_its_last_words():
    launcher = (sys.executable, "-c", "import sys; sys.exit('no such luck')")
    with pytest.raises(WorkerStartError, match="no such luck"):
        async with open_test_sandbox(language_wall=False, launcher=launcher):
            pass


@pytest.mark.needs_linux
async def test_a_launcher_that_is_not_there_is_a_start_error():
    with pytest.raises(WorkerStartError, match="could not be started"):
        async with open_test_sandbox(language_wall=False, launcher=("/nonexistent/launcher",)):
            pass
