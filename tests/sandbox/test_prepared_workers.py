"""Workers that were told what their program will find, and programs that were sent ahead of their run."""

from __future__ import annotations

import functools
import os
import signal
from collections import deque

import processes
import psutil
import pytest
import trio
import trio.testing

from sandbox import placement
from sandbox import pool as pool_module
from sandbox import run as run_module
from sandbox.errors import ClosedSandboxError
from sandbox.fork_server import ForkServer
from sandbox.limits import Limits
from sandbox.run_message import Offer
from sandbox.supervisor import Stop
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import ErrorClass, Namespace, Program, SandboxSettings
from sandbox.workers import Worker

pytestmark = pytest.mark.needs_linux
LIMITS = Limits(wall_seconds=100, compute_seconds=20, memory_mb=128)


def sandbox_of(parked=1, **options):
    return open_test_sandbox(SandboxSettings(limits=LIMITS, parked_workers=parked), **options)


async def echo(call):
    return call.arguments


def space(*members, function=echo):
    return Namespace("host", {member: f"{member}(**anything)" for member in members}, function)


def program(source, *members, **options):
    return Program(source, (space(*members, **options),))


async def eventually(condition):
    """Wait for something another process does; only a hang takes as long as a minute."""
    with trio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # nobody tells us
            await trio.sleep(0.005)


async def prepared(sandbox, *members):
    """Make runs that offer the same until a parked worker has been told of it."""

    def told():
        return [worker.offer for worker in sandbox._pool._parked if worker.offer is not None]

    for _ in range(3):
        await sandbox.run(program("return 1", *members))
        await eventually(lambda: sandbox.statistics().parked == 1)
    assert told() == sandbox._offers[:1]


async def test_a_worker_told_ahead_runs_programs_as_any_other_does():
    async with sandbox_of() as sandbox:
        await prepared(sandbox, "echo")
        answered = await sandbox.run(program("return await host.echo(n=1)", "echo"))
        failed = await sandbox.run(program("return await host.other(n=1)", "echo"))
    assert {"n": 1} == answered.value
    assert "unknown function 'other'. The functions are: echo" == failed.failure.message.partition(": ")[2]


async def test_what_the_last_two_runs_offered_is_told_and_a_single_run_decides_nothing():
    async with sandbox_of() as sandbox:
        for members in (("a",), ("b",), ("a",)):
            await sandbox.run(program("return 1", *members))
            await eventually(lambda: sandbox.statistics().parked == 1)
            assert [None] == [worker.offer for worker in sandbox._pool._parked]


async def test_a_single_run_decides_nothing_though_it_found_no_worker_parked():
    async with sandbox_of(parked=0) as sandbox:
        for _ in range(2):
            assert 1 == (await sandbox.run(program("return 1", "a"))).value
            # The first has made two attempts to get a worker.
            assert [None, sandbox._offers[0]][_] is sandbox._pool._steady_offer


async def test_what_programs_find_in_turns_is_recognised_and_not_kept_without_end():
    async with sandbox_of() as sandbox:
        for member in ("a", "b", "a", "c", "d", "e", "f"):
            await sandbox.run(program("return 1", member))
        kept = [offer.message for offer in sandbox._offers]
        await sandbox.run(program("return 1", "d"))
        assert sorted(kept) == sorted(offer.message for offer in sandbox._offers)
        assert 4 == len(kept)


async def test_a_program_is_never_given_to_a_worker_that_was_told_of_other_names():
    async with sandbox_of() as sandbox:
        await prepared(sandbox, "secret_name")
        (told,) = sandbox._pool._parked
        outcome = await sandbox.run(program("return sorted(host)", "plain"))
        assert ["plain"] == outcome.value
        # The other has been let go: it would fit no run that is like the last one.
        assert told not in sandbox._pool._parked
        await eventually(lambda: told.exit_status == -signal.SIGKILL)


async def test_signatures_and_limits_that_come_with_the_program_count():
    async with sandbox_of() as sandbox:
        await prepared(sandbox, "echo")
        source = "return await host.echo(1, 2)"
        signed = Namespace("host", space("echo").members, echo, signatures={"echo": "echo(*, said: str)"})
        outcome = await sandbox.run(Program(source, (signed,)))
        small = await sandbox.run(
            program("return await host.echo(text='x' * 3000)", "echo"),
            limits=LIMITS.tightened(max_call_bytes=2000),
        )
    assert "echo(*, said: str)" in f"{outcome.failure.message} {outcome.failure.hint}"
    assert "max_call_bytes=2000" in small.failure.message


async def test_setting_up_is_not_charged_to_the_program():
    async with sandbox_of() as sandbox:
        many = [f"member_{number}" for number in range(3000)]
        await prepared(sandbox, *many)
        (worker,) = sandbox._pool._parked
        parked_at = worker._meter.read()
        outcome = await sandbox.run(program("return 1", *many))
        assert 1 == outcome.value
        # It began to count when the program was sent, and not when the worker was parked.
        assert worker._idle_cpu_seconds >= parked_at


def noting_warmth(monkeypatch):
    """Return a list that will hold, for each worker asked for, whether it is to be warmed up at once."""
    asked = []
    fork = ForkServer.fork

    async def noting(server, budget, *, warm):
        asked.append(warm)
        return await fork(server, budget, warm=warm)

    monkeypatch.setattr(ForkServer, "fork", noting)
    return asked


async def test_a_worker_that_a_run_waits_for_is_not_warmed_up_first(monkeypatch):
    asked = noting_warmth(monkeypatch)
    async with sandbox_of(parked=0) as sandbox:
        parked, waited = [await sandbox.run(program("return 1")) for _ in range(2)]
        tighter = await sandbox.run(program("return 1"), limits=LIMITS.tightened(memory_mb=64))
    assert [1, 1, 1] == [outcome.value for outcome in (parked, waited, tighter)]
    assert [True, False, False] == asked


async def test_workers_parked_while_runs_had_to_wait_are_warmed_up_when_none_has_to(monkeypatch):
    asked = noting_warmth(monkeypatch)
    async with sandbox_of() as sandbox:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(sandbox.run, program("return 1"))

        def is_warm():
            return [True] == [worker.is_warm for worker in sandbox._pool._parked]

        await eventually(is_warm)
        assert False in asked[1:]
        assert [True] == [worker.is_warm for worker in sandbox._pool._parked]
        outcome = await sandbox.run(program("return await host.echo(n=1)", "echo"))
    assert {"n": 1} == outcome.value


async def test_a_worker_that_ends_before_it_is_warmed_up_is_replaced(monkeypatch):
    monkeypatch.setattr(pool_module, "_SCARCE_SECONDS", 1000)
    async with sandbox_of() as sandbox:
        pool = sandbox._pool
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(sandbox.run, program("return 1"))
        await eventually(lambda: sandbox.statistics().parked == 1)
        (cold,) = pool._parked
        assert not cold.is_warm
        cold.kill()
        await cold.wait_exit_status()
        pool._scarce_until = trio.current_time()
        await pool._warm_parked()
        await eventually(lambda: sandbox.statistics().parked == 1)
        (warm,) = pool._parked
        assert (True, True) == (warm is not cold, warm.is_warm)
        assert 1 == (await sandbox.run(program("return 1"))).value


async def test_a_program_that_was_started_is_the_one_that_is_run():
    calls = []

    async def note(call):
        calls.append(call.arguments)

    async with sandbox_of() as sandbox:
        await prepared(sandbox, "note")
        begun = program("print('now')\nreturn await host.note(n=1)", "note", function=note)
        started = sandbox.start(begun, LIMITS)
        (worker,) = sandbox._workers
        await trio.lowlevel.wait_readable(worker.socket)
        assert [] == calls
        outcome = await sandbox.run(begun, started=started)
        assert ("now",) == outcome.logs
        assert [{"n": 1}] == calls
        statistics = sandbox.statistics()
        assert (0, 0) == (statistics.running, statistics.queued)


async def test_a_program_that_is_given_up_has_done_nothing_and_leaves_nothing():
    calls = []

    async def note(call):
        calls.append(call.arguments)

    async with sandbox_of() as sandbox:
        await eventually(lambda: sandbox.statistics().parked == 1)
        started = sandbox.start(program("await host.note()", "note", function=note), LIMITS)
        sandbox.give_up(started)
        sandbox.give_up(started)
        await eventually(lambda: len(processes.workers()) == 1)
        assert [] == calls
        assert 1 == (await sandbox.run(program("return 1"))).value


async def test_nothing_is_started_that_would_not_be_run():
    async with sandbox_of() as sandbox:
        await eventually(lambda: sandbox.statistics().parked == 1)
        long = program("#" * 100)
        assert sandbox.start(long, LIMITS.tightened(max_source_bytes=10)) is None
        assert sandbox.start(program("return 1"), LIMITS.tightened(memory_mb=64)) is None
        assert 1 == sandbox.statistics().parked
    assert sandbox.start(program("return 1"), LIMITS) is None
    with pytest.raises(ClosedSandboxError):
        await sandbox.run(program("return 1"))


async def test_a_started_program_can_be_stopped():
    async with sandbox_of() as sandbox:
        await eventually(lambda: sandbox.statistics().parked == 1)
        endless = program("while True: pass")
        started = sandbox.start(endless, LIMITS)
        stop = Stop()
        stop.request("enough")
        outcome = await sandbox.run(endless, stop=stop, started=started)
    assert ("abort", "enough") == (outcome.failure.kind, outcome.failure.message)


async def parked(sandbox):
    """Return the only worker that is parked, when it is."""
    await eventually(lambda: sandbox.statistics().parked == 1)
    return sandbox._pool._parked[0]


@pytest.mark.parametrize("source", ["print('now')\nreturn 1", "print('now')\n1 / 0", "import nothing_such"])
async def test_a_short_program_is_over_when_it_has_been_heard(monkeypatch, source):
    # However busy the machine is.
    monkeypatch.setattr(run_module, "_MOMENT_SECONDS", 60)
    async with sandbox_of() as sandbox:
        expected = await sandbox.run(program(source))
        await parked(sandbox)
        heard = []
        options = {"stop": Stop(), "on_log": heard.append}
        begun = program(source)
        started = sandbox.start(begun, LIMITS)
        with trio.CancelScope() as cancelled:
            cancelled.cancel()
            assert await sandbox.hear(started, **options)
        # What it was heard with is what it goes on with.
        outcome = await sandbox.run(begun, started=started)
        statistics = sandbox.statistics()
    assert (expected.failure, expected.value, expected.logs) == (outcome.failure, outcome.value, outcome.logs)
    assert list(expected.logs) == [text.rstrip("\n") for text in heard]
    assert (0, 0) == (statistics.running, statistics.queued)


async def test_a_program_that_calls_is_heard_up_to_its_first_call_and_no_further():
    calls = []

    async def note(call):
        calls.append(call.arguments)

    async with sandbox_of() as sandbox:
        await prepared(sandbox, "note")
        begun = program("await host.note(n=1)\nreturn 2", "note", function=note)
        started = sandbox.start(begun, LIMITS)
        (worker,) = sandbox._workers
        await trio.lowlevel.wait_readable(worker.socket)
        assert not await sandbox.hear(started, stop=Stop())
        assert [] == calls
        assert 2 == (await sandbox.run(begun, started=started)).value
        assert [{"n": 1}] == calls


async def test_a_program_that_was_heard_is_ended_by_what_it_was_heard_with():
    async with sandbox_of() as sandbox:
        await parked(sandbox)
        endless, stop = program("print('on')\nwhile True: pass"), Stop()
        started = sandbox.start(endless, LIMITS)
        (worker,) = sandbox._workers
        await trio.lowlevel.wait_readable(worker.socket)
        heard = []
        assert not await sandbox.hear(started, stop=stop, on_log=heard.append)
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def run():
                outcome = await sandbox.run(endless, started=started)
                assert ("abort", "enough") == (outcome.failure.kind, outcome.failure.message)

            await trio.testing.wait_all_tasks_blocked()
            stop.request("enough")
    assert ["on\n"] == heard


async def test_what_cannot_be_sent_leaves_nothing_behind(monkeypatch):
    def without_memory(*_args, **_options):
        raise MemoryError

    async with sandbox_of() as sandbox:
        worker = await parked(sandbox)
        monkeypatch.setattr(Worker, "send_program", without_memory)
        with pytest.raises(MemoryError):
            sandbox.start(program("return 1"), LIMITS)
        monkeypatch.undo()
        await eventually(lambda: worker.exit_status == -signal.SIGKILL)
        assert set() == sandbox._workers
        assert 1 == (await sandbox.run(program("return 1"))).value
        assert sandbox._settings.max_concurrent_runs == sandbox._slots.value


async def test_a_program_that_was_heard_can_be_given_up():
    async with sandbox_of() as sandbox:
        for source in ("return 1", "while True: pass"):
            await parked(sandbox)
            started = sandbox.start(program(source), LIMITS)
            await sandbox.hear(started, stop=Stop())
            sandbox.give_up(started)
            sandbox.give_up(started)
            await eventually(lambda: len(processes.workers()) == 1)
        assert 1 == (await sandbox.run(program("return 1"))).value


# ---- workers that are told that a program will come


TWO_CORES = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="with one core there is none to rouse a worker on"
)


def idle(sandbox, monkeypatch, *, is_idle=True):
    """Make the sandbox believe that the machine has a core to spare, or has none."""
    monkeypatch.setattr(pool_module, "is_core_idle", lambda: is_idle)
    sandbox._pool._was_core_idle = is_idle


@pytest.mark.parametrize("language_wall", [True, False])
@pytest.mark.parametrize("times", [1, 5])
async def test_a_worker_that_was_roused_stays_parked_and_runs_programs_as_any_other(
    monkeypatch, language_wall, times
):
    async with sandbox_of(language_wall=language_wall) as sandbox:
        await prepared(sandbox, "echo")
        idle(sandbox, monkeypatch)
        for _ in range(times):
            sandbox.rouse()
        assert 1 == sandbox.statistics().parked
        begun = program("print('said')\nreturn await host.echo(n=1)", "echo")
        outcome = await sandbox.run(begun, started=sandbox.start(begun, LIMITS))
    assert (("said",), {"n": 1}) == (outcome.logs, outcome.value)


@TWO_CORES
async def test_a_worker_that_was_roused_for_nothing_sleeps_again(monkeypatch):
    async with sandbox_of() as sandbox:
        worker = await parked(sandbox)
        idle(sandbox, monkeypatch)
        before = worker._meter.read()
        sandbox.rouse()
        await eventually(lambda: worker._meter.read() > before)
        process = psutil.Process(worker.placement._pid)
        await eventually(lambda: process.status() == psutil.STATUS_SLEEPING)
        sandbox.rouse()
        assert 1 == (await sandbox.run(program("return 1"))).value


@pytest.mark.parametrize(
    "why", [None, "no core is idle", "workers are scarce", "another program runs", "none is parked"]
)
async def test_a_worker_is_roused_unless_that_would_take_something_from_others(monkeypatch, why):
    roused = []
    async with sandbox_of(parked=2) as sandbox:
        await eventually(lambda: sandbox.statistics().parked == 2)
        pool = sandbox._pool
        idle(sandbox, monkeypatch, is_idle=why != "no core is idle")
        for worker in pool._parked:
            monkeypatch.setattr(worker, "rouse", functools.partial(roused.append, worker))
        if why == "workers are scarce":
            pool._scarce_until = trio.current_time() + 1000
        if why == "another program runs":
            started = sandbox.start(program("while True: pass"), LIMITS)
        if why == "none is parked":
            monkeypatch.setattr(pool, "_parked", deque())
        sandbox.rouse()
        assert ([pool._parked[0]] if why is None else []) == roused
        monkeypatch.undo()
        if why == "another program runs":
            sandbox.give_up(started)


@TWO_CORES
async def test_a_worker_that_is_roused_for_nothing_again_and_again_keeps_its_cpu_bound(monkeypatch):
    limits = LIMITS.tightened(compute_seconds=1)
    async with open_test_sandbox(SandboxSettings(limits=limits, parked_workers=1)) as sandbox:
        worker = await parked(sandbox)
        idle(sandbox, monkeypatch)
        for _ in range(3000):
            sandbox.rouse()
            await trio.lowlevel.checkpoint()
        process = psutil.Process(worker.placement._pid)
        await eventually(lambda: process.status() == psutil.STATUS_SLEEPING)
        assert worker._meter.read() < 1
        source = "import time\nwhile time.process_time() < {}: pass\nreturn 1"
        spent = worker._meter.read()
        assert 1 == (await sandbox.run(program(source.format(spent + 0.8)))).value


async def test_a_worker_that_is_gone_is_not_roused_nor_moved(monkeypatch):
    moved = []
    async with sandbox_of() as sandbox:
        worker = await parked(sandbox)
        idle(sandbox, monkeypatch)
        worker.kill()
        await worker.wait_exit_status()
        # Its number may be another process's by now.
        monkeypatch.setattr(placement, "_allow", lambda pid, cores: moved.append(pid))
        sandbox.rouse()
        monkeypatch.undo()
        assert 1 == (await sandbox.run(program("return 1"))).value
    assert worker.placement._pid not in moved


def test_programs_that_find_the_same_have_the_same_offer_whatever_is_their_own():
    one = Program("1", (space("a"),), {"open": "use read"})
    own = Namespace("host", {"a": "a(**anything)"}, print, parameters={}, signatures={"a": "a(n)"})
    assert Offer(one).is_of(Program("2", (own,), {"open": "use read"}, check_only=True))


@pytest.mark.parametrize(
    "other",
    [
        Program("1", (space("b"),)),
        Program("1", (space("a"), Namespace("more", {}, echo))),
        Program("1", (Namespace("host", space("a").members, echo, ErrorClass("HostError")),)),
        Program("1", (Namespace("host", space("a").members, echo, importable=True),)),
        Program("1", (Namespace("host", space("a").members, echo, aliases={"x": ("a",)}),)),
        Program("1", (space("a"),), {"open": "use read"}),
    ],
    ids=["members", "namespaces", "error class", "importable", "aliases", "hints"],
)
def test_programs_that_find_something_else_have_another_offer(other):
    assert not Offer(Program("1", (space("a"),))).is_of(other)
