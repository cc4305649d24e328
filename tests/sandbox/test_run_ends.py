"""What happens around a program's run, and in which order. Decision 0060."""

from __future__ import annotations

import processes
import pytest
import trio
import trio.testing

from sandbox.limits import Limits
from sandbox.stop import Stop
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Namespace, Program, SandboxSettings

pytestmark = pytest.mark.needs_linux
LIMITS = Limits(wall_seconds=200, compute_seconds=20, memory_mb=128)


def settings(**changed):
    return SandboxSettings(limits=LIMITS, **changed)


async def eventually(condition):
    with trio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # nobody tells us of processes
            await trio.sleep(0.01)


async def test_a_run_is_accepted_once_and_before_its_first_call_is_heard():
    order = []

    async def note(call):
        order.append("called")

    space = Namespace("host", {"note": "note()"}, note)
    async with open_test_sandbox(settings(parked_workers=1)) as sandbox:
        await eventually(lambda: sandbox._pool._parked)
        await sandbox.run(
            Program("await host.note()", (space,)), on_accepted=lambda: order.append("accepted")
        )
    assert ["accepted", "called"] == order


async def test_a_run_that_has_to_wait_is_accepted_before_it_waits():
    release = trio.Event()
    accepted = trio.Event()

    async def wait(call):
        await release.wait()

    space = Namespace("host", {"wait": "wait()"}, wait)
    async with open_test_sandbox(settings(max_concurrent_runs=1)) as sandbox, trio.open_nursery() as nursery:
        nursery.start_soon(sandbox.run, Program("await host.wait()", (space,)))
        await trio.testing.wait_all_tasks_blocked()

        async def second():
            await sandbox.run(Program("1"), on_accepted=accepted.set)

        nursery.start_soon(second)
        with trio.fail_after(60):
            await accepted.wait()
        assert not release.is_set()
        release.set()


async def test_a_program_that_is_stopped_before_it_is_sent_is_not_accepted():
    accepted = []
    stop = Stop()
    stop.request("enough")
    for parked in (0, 1):
        async with open_test_sandbox(settings(parked_workers=parked)) as sandbox:
            outcome = await sandbox.run(Program("1"), stop=stop, on_accepted=lambda: accepted.append(1))
        assert ("abort", "enough", []) == (outcome.failure.kind, outcome.failure.message, accepted)


async def test_a_run_that_waits_for_its_worker_can_be_stopped_also_behind_a_shield():
    stop = Stop()
    outcomes = []
    async with open_test_sandbox(settings(parked_workers=0)) as sandbox:
        await sandbox.run(Program("1"))

        async def run():
            with trio.CancelScope(shield=True):
                outcomes.append(await sandbox.run(Program("1"), stop=stop))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            while not sandbox._pool._waiting:  # nobody tells us
                await trio.lowlevel.checkpoint()
            # Nobody makes a worker any more.
            sandbox._pool._nursery.cancel_scope.cancel()
            stop.request("enough")
    assert [("abort", "enough")] == [(each.failure.kind, each.failure.message) for each in outcomes]


async def test_a_program_that_is_too_long_is_not_accepted():
    accepted = []
    limits = Limits(wall_seconds=200, compute_seconds=20, memory_mb=128, max_source_bytes=10)
    async with open_test_sandbox(settings()) as sandbox:
        outcome = await sandbox.run(
            Program("return 'too long'"), limits=limits, on_accepted=lambda: accepted.append(1)
        )
    assert ("policy", []) == (outcome.failure.kind, accepted)


async def test_workers_whose_programs_ended_are_gone_soon_and_at_the_latest_when_the_sandbox_closes():
    async with open_test_sandbox(settings(parked_workers=1)) as sandbox:
        for _ in range(5):
            await sandbox.run(Program("1"))
        await eventually(lambda: sandbox._pool._ending == 0 and len(processes.workers()) == 1)
        await sandbox.run(Program("1"))
    assert set() == processes.ours()


async def test_no_more_than_a_few_workers_are_on_their_way_out_at_a_time(monkeypatch):
    monkeypatch.setattr("sandbox.pool._MAX_ENDING", 1)
    most = 0
    async with open_test_sandbox(settings(parked_workers=1)) as sandbox:
        for _ in range(5):
            await sandbox.run(Program("1"))
            most = max(most, sandbox._pool._ending)
    assert 1 == most
