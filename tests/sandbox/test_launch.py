"""A fork server that is launched before anybody opens a sandbox: real processes."""

from __future__ import annotations

import processes
import psutil
import pytest

from sandbox import launch
from sandbox.limits import Limits, WorkerBudget
from sandbox.supervisor import open_sandbox
from sandbox.vocabulary import Program, SandboxSettings

pytestmark = pytest.mark.needs_linux

LIMITS = Limits(memory_mb=128, wall_seconds=20, compute_seconds=5)
SETTINGS = SandboxSettings(limits=LIMITS, parked_workers=0)


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    launch.discard_early()
    assert set() == processes.ours()


def launched():
    """Launch a fork server early and return its process."""
    launch.launch_early()
    (child,) = psutil.Process().children()
    return child


async def test_a_sandbox_takes_over_what_was_launched_early():
    early = launched()
    async with open_sandbox(SETTINGS) as sandbox:
        assert [early] == psutil.Process().children()
        assert 1 == (await sandbox.run(Program("return 1"))).value


async def test_only_one_sandbox_takes_it_over():
    early = launched()
    async with open_sandbox(SETTINGS), open_sandbox(SETTINGS) as second:
        assert 2 == len({early, *psutil.Process().children()})
        assert 1 == (await second.run(Program("return 1"))).value


async def test_the_worker_that_was_ordered_is_the_one_that_runs_the_program():
    launched()
    launch.order_worker(WorkerBudget.of(LIMITS))
    async with open_sandbox(SETTINGS) as sandbox:
        assert 1 == len(processes.workers())
        assert 1 == (await sandbox.run(Program("return 1"))).value
        # And the next one has a worker of its own, as ever.
        assert 2 == (await sandbox.run(Program("return 2"))).value


async def test_a_worker_that_was_ordered_with_other_bounds_runs_nothing_and_ends_with_the_sandbox():
    launched()
    launch.order_worker(WorkerBudget.of(Limits(memory_mb=64, compute_seconds=5)))
    async with open_sandbox(SETTINGS) as sandbox:
        assert 2 == len(processes.workers())
        assert 1 == (await sandbox.run(Program("return 1"))).value


def test_ordering_a_worker_of_nobody_does_nothing():
    launch.order_worker(WorkerBudget.of(LIMITS))
    assert set() == processes.ours()


def test_what_nobody_took_over_is_gone_when_it_is_discarded():
    before = processes.descriptors()
    early = launched()
    launch.order_worker(WorkerBudget.of(LIMITS))
    launch.discard_early()
    assert not processes.is_alive(early)
    assert before == processes.descriptors()


async def test_a_fork_server_that_died_before_it_was_taken_over_is_replaced():
    early = launched()
    early.kill()
    launch.order_worker(WorkerBudget.of(LIMITS))
    async with open_sandbox(SETTINGS) as sandbox:
        assert 1 == (await sandbox.run(Program("return 1"))).value
