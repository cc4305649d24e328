"""Parked workers, their fork server, and their ends: real processes."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import prefilter
import processes
import psutil
import pytest
import trio
import trio.testing

from sandbox import fork_server
from sandbox.errors import ClosedSandboxError, SandboxBusyError, WorkerStartError
from sandbox.limits import Limits
from sandbox.supervisor import Stop
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Namespace, Program, SandboxSettings

pytestmark = pytest.mark.needs_linux

PREFILTER = (sys.executable, prefilter.__file__)
LIMITS = Limits(memory_mb=128, wall_seconds=20, compute_seconds=5)
SETTINGS = SandboxSettings(limits=LIMITS, parked_workers=2, max_concurrent_runs=4)


def settings(**changes):
    return SandboxSettings(**{"limits": LIMITS, "parked_workers": 2, "max_concurrent_runs": 4, **changes})


def sandbox_of(wanted=SETTINGS, **options):
    return open_test_sandbox(wanted, language_wall=False, **options)


async def eventually(condition):
    """Wait for something the kernel or another process does; only a hang takes as long as a minute."""
    with trio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # nobody tells us
            await trio.sleep(0.005)


def gate(name="gate"):
    """Return a namespace whose one call says that it was reached and waits to be let through."""
    reached, opened = trio.Event(), trio.Event()

    async def wait(call):
        reached.set()
        await opened.wait()
        return call.arguments

    return Namespace(name, {"wait": "wait()"}, wait), reached, opened


async def test_workers_are_parked_up_to_the_setting_and_no_more():
    async with sandbox_of(settings(parked_workers=3)):
        await eventually(lambda: len(processes.workers()) == 3)
        await trio.sleep(0.2)  # Time in which a fourth would have come up.
        assert 3 == len(processes.workers())


async def test_a_taken_worker_is_replaced_while_its_run_goes_on():
    namespace, reached, opened = gate()
    async with sandbox_of() as sandbox, trio.open_nursery() as nursery:
        await eventually(lambda: len(processes.workers()) == 2)
        nursery.start_soon(sandbox.run, Program("await gate.wait()", (namespace,)))
        await reached.wait()
        await eventually(lambda: len(processes.workers()) == 3)
        opened.set()


async def test_every_run_has_a_worker_of_its_own():
    async with sandbox_of() as sandbox:
        program = Program(
            "import sandbox\nbefore = getattr(sandbox, 'mark', None)\nsandbox.mark = 1\nreturn [before]"
        )
        results = [(await sandbox.run(program)).value for _ in range(5)]
    assert [[None]] * 5 == results


async def test_workers_draw_different_random_numbers():
    async with sandbox_of() as sandbox:
        drawn = {
            (await sandbox.run(Program("import random\nreturn random.random()"))).value for _ in range(6)
        }
    assert 6 == len(drawn)


@pytest.mark.needs_root  # Nobody else may look into a process that is not dumpable.
async def test_a_worker_holds_exactly_one_descriptor_and_it_is_the_wire():
    namespace, reached, opened = gate()
    async with sandbox_of() as sandbox, trio.open_nursery() as nursery:
        nursery.start_soon(sandbox.run, Program("await gate.wait()", (namespace,)))
        await reached.wait()
        # Until it is parked, a worker may still hold what it was set up with.
        await eventually(lambda: len(sandbox._pool._parked) == 2)
        held = [processes.descriptors(worker.pid) for worker in processes.workers()]
        assert [[3]] * 3 == [list(descriptors) for descriptors in held]
        assert all(target.startswith("socket:") for descriptors in held for target in descriptors.values())
        opened.set()


@pytest.mark.needs_root
async def test_the_fork_server_holds_nothing_of_the_host():
    secret = os.memfd_create("a secret of the host", 0)
    os.set_inheritable(secret, True)
    try:
        async with sandbox_of():
            (server,) = processes.fork_servers()
            held = processes.descriptors(server.pid)
            assert [{}, {}] == [server.environ(), server.parent().environ()]
    finally:
        os.close(secret)
    assert not [target for target in held.values() if "secret" in target]


async def test_the_fork_server_has_never_seen_a_program_or_a_tool():
    namespace, reached, opened = gate("distinctive_namespace_name")
    async with sandbox_of() as sandbox, trio.open_nursery() as nursery:
        source = "text = 'distinctive program text'\nawait distinctive_namespace_name.wait()"
        nursery.start_soon(sandbox.run, Program(source, (namespace,)))
        await reached.wait()
        (server,) = processes.fork_servers()
        command_line = " ".join(server.cmdline())
        assert "distinctive" not in command_line
        if os.geteuid() == 0:
            assert b"distinctive program text" not in memory_of(server.pid)
        opened.set()


def memory_of(pid):
    """Return the writable memory of a process."""
    found = []
    folder = Path(f"/proc/{pid}")
    with (folder / "mem").open("rb", buffering=0) as memory:
        for line in (folder / "maps").read_text().splitlines():
            span, permissions = line.split()[:2]
            if "w" not in permissions:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            try:
                memory.seek(start)
                found.append(memory.read(end - start))
            except OSError:
                continue  # A mapping of the kernel's own.
    return b"".join(found)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os\nos._exit(7)", "worker exited with code 7 before completing"),
        ("import os\nos._exit(0)", "worker exited with code 0 before completing"),
        ("import ctypes\nctypes.string_at(0)", "worker was ended by signal SIGSEGV before completing"),
    ],
)
async def test_a_worker_that_ends_without_a_word_is_reported_with_its_status(source, message):
    async with sandbox_of() as sandbox:
        outcome = await sandbox.run(Program("print('kept')\n" + source))
        assert ("worker-exit", message) == (outcome.failure.kind, outcome.failure.message)
        assert ("kept",) == outcome.logs
        assert 2 == (await sandbox.run(Program("1 + 1"))).value


async def test_a_worker_killed_from_outside_is_reported_by_its_signal():
    namespace, reached, _ = gate()
    async with sandbox_of() as sandbox, trio.open_nursery() as nursery:
        outcomes = []

        async def run():
            outcomes.append(await sandbox.run(Program("await gate.wait()", (namespace,))))

        nursery.start_soon(run)
        await reached.wait()
        # Which of them runs cannot be told from outside: the first that was ready, not the first forked.
        for worker in processes.workers():
            worker.kill()
    assert "worker was ended by signal SIGKILL before completing" == outcomes[0].failure.message


async def test_a_parked_worker_that_died_is_not_handed_out():
    async with sandbox_of() as sandbox:
        await eventually(lambda: len(processes.workers()) == 2)
        for worker in processes.workers():
            worker.kill()
            worker.wait()
        assert 3 == (await sandbox.run(Program("1 + 2"))).value


@pytest.mark.parametrize("launcher", [(), "without namespaces"], ids=["namespaces", "no namespaces"])
async def test_a_dead_fork_server_takes_its_workers_along_and_is_replaced(launcher):
    options = {"launcher": (*PREFILTER, "--without=namespaces", "--")} if launcher else {}
    namespace, reached, _ = gate()
    async with sandbox_of(**options) as sandbox, trio.open_nursery() as nursery:
        outcomes = []

        async def run():
            outcomes.append(await sandbox.run(Program("print('kept')\nawait gate.wait()", (namespace,))))

        nursery.start_soon(run)
        await reached.wait()
        (server,) = processes.fork_servers()
        children = processes.workers()
        server.kill()
        await eventually(lambda: outcomes)
        await eventually(lambda: not any(map(processes.is_alive, children)))
        # Healed without being asked: workers are parked again.
        await eventually(lambda: len(processes.workers()) == 2)
        assert 3 == (await sandbox.run(Program("1 + 2"))).value
    assert "worker-exit" == outcomes[0].failure.kind
    assert "looks after workers" in outcomes[0].failure.message
    assert ("kept",) == outcomes[0].logs


async def test_runs_asked_for_while_the_fork_server_dies_get_a_worker_of_the_next_one():
    async with sandbox_of(settings(max_concurrent_runs=6)) as sandbox:
        results = []

        async def run(number):
            results.append((await sandbox.run(Program(f"return {number}"))).value)

        (server,) = processes.fork_servers()
        for worker in processes.workers():
            worker.kill()
            worker.wait()
        server.kill()
        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(run, number)
    assert list(range(6)) == sorted(results)


async def test_a_fork_server_that_cannot_come_back_fails_the_run_and_not_the_sandbox(tmp_path):
    # The launcher starts the fork server only while a file is there.
    switch = tmp_path / "switch"
    switch.touch()
    script = f"""
import os, sys
os.path.exists({str(switch)!r}) or sys.exit("switched off")
os.execv(sys.argv[1], sys.argv[1:])
"""
    async with sandbox_of(launcher=(sys.executable, "-c", script)) as sandbox:
        switch.unlink()
        (server,) = processes.fork_servers()
        server.kill()
        server.wait()
        await eventually(lambda: not processes.fork_servers())
        with pytest.raises(WorkerStartError, match="switched off"):
            await sandbox.run(Program("1"))
        switch.touch()
        assert 3 == (await sandbox.run(Program("1 + 2"))).value


async def test_a_stopped_fork_server_does_not_hold_up_the_end():
    async with sandbox_of() as sandbox:
        assert 1 == (await sandbox.run(Program("1"))).value
        (server,) = processes.fork_servers()
        server.send_signal(signal.SIGSTOP)
    assert set() == processes.ours()


async def test_ctrl_c_in_the_task_that_hears_the_fork_server_does_not_hold_up_the_end(monkeypatch):
    def interrupt(self, message, descriptors):
        raise KeyboardInterrupt

    async def use():
        async with sandbox_of(settings(parked_workers=1)) as sandbox:
            monkeypatch.setattr(fork_server.ForkServer, "_hear", interrupt)
            await sandbox.run(Program("return 1"))
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await use()
    assert caught.value.split(KeyboardInterrupt)[1] is None
    assert set() == processes.ours()


async def test_a_burst_is_served_in_order_by_as_many_workers_as_allowed():
    order = []
    workers = 2
    async with sandbox_of(settings(max_concurrent_runs=workers)) as sandbox:
        most = 0

        async def note(call):
            nonlocal most
            most = max(most, sandbox.statistics().running)
            order.append(call.arguments["n"])

        space = Namespace("host", {"note": "note(*, n)"}, note)
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(sandbox.run, Program(f"await host.note(n={number})", (space,)))
                await trio.testing.wait_all_tasks_blocked()
        statistics = sandbox.statistics()
    assert workers == most
    assert (0, 0, 12) == (statistics.running, statistics.queued, statistics.completed)
    # A slow run can be overtaken by any number of later ones, but it keeps a worker meanwhile: those
    # before a run that have not got as far must each have one of the others.
    for position, number in enumerate(order):
        assert len(set(range(number)) - set(order[:position])) < workers


async def test_one_run_more_than_the_queue_holds_is_refused_and_the_others_finish():
    namespace, reached, opened = gate()
    wanted = settings(max_concurrent_runs=1, max_queued_runs=2)
    async with sandbox_of(wanted) as sandbox, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(sandbox.run, Program("await gate.wait()", (namespace,)))
            await trio.testing.wait_all_tasks_blocked()
        await reached.wait()
        assert (1, 2) == (sandbox.statistics().running, sandbox.statistics().queued)
        with pytest.raises(SandboxBusyError, match=r"2 runs are waiting.*max_queued_runs=2"):
            await sandbox.run(Program("1"))
        opened.set()
    assert 3 == sandbox.statistics().completed


async def test_a_queued_run_that_is_stopped_settles_at_once_and_gives_up_its_place():
    namespace, reached, opened = gate()
    async with sandbox_of(settings(max_concurrent_runs=1)) as sandbox, trio.open_nursery() as nursery:
        nursery.start_soon(sandbox.run, Program("await gate.wait()", (namespace,)))
        await reached.wait()
        stop = Stop()
        outcomes = []

        async def run():
            outcomes.append(await sandbox.run(Program("1"), stop=stop))
            opened.set()

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        stop.request("not needed")
    assert ("abort", "not needed") == (outcomes[0].failure.kind, outcomes[0].failure.message)


async def test_a_run_that_waits_for_a_worker_can_be_cancelled():
    async with sandbox_of(settings(parked_workers=1)) as sandbox:
        for _ in range(10):
            with trio.move_on_after(0.001):
                await sandbox.run(Program("1"))
        assert 3 == (await sandbox.run(Program("1 + 2"))).value
    assert set() == processes.ours()


async def test_a_tighter_memory_limit_gets_a_worker_that_was_born_with_it():
    async with sandbox_of(settings(limits=Limits(memory_mb=512))) as sandbox:
        program = Program("return len(bytearray(200_000_000))")
        small = await sandbox.run(program, limits=Limits(memory_mb=64))
        large = await sandbox.run(program)
    assert "memory-limit" == small.failure.kind
    assert 200_000_000 == large.value


def temporary_files():
    return {path.name for path in Path(tempfile.gettempdir()).iterdir()}


async def test_nothing_is_left_of_a_closed_sandbox():
    descriptors = processes.descriptors()
    temporary = temporary_files()
    async with sandbox_of() as sandbox:
        for source in ("1", "1 / 0", "import os\nos._exit(3)"):
            await sandbox.run(Program(source))
        # The fork server waits for its children in its own time.
        await eventually(lambda: not processes.zombies())
    assert set() == processes.ours()
    assert descriptors == processes.descriptors()
    assert set() == {name for name in temporary_files() - temporary if "codemode" in name or "fork" in name}


async def test_descriptors_do_not_grow_with_runs():
    async with sandbox_of() as sandbox:
        await sandbox.run(Program("1"))
        await eventually(lambda: len(sandbox._pool._parked) == 2)
        before = len(processes.descriptors())
        for _ in range(20):
            await sandbox.run(Program("1"))
        await eventually(lambda: len(processes.descriptors()) <= before)


async def test_closing_settles_what_runs_and_what_waits():
    namespace, reached, _ = gate()
    outcomes = []
    async with trio.open_nursery() as nursery:
        async with sandbox_of(settings(max_concurrent_runs=1)) as sandbox:

            async def run():
                outcomes.append(await sandbox.run(Program("print('kept')\nawait gate.wait()", (namespace,))))

            nursery.start_soon(run)
            await reached.wait()
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
        assert [("abort", "the sandbox was closed")] * 2 == [
            (o.failure.kind, o.failure.message) for o in outcomes
        ]
        with pytest.raises(ClosedSandboxError):
            await sandbox.run(Program("1"))
    assert {(), ("kept",)} == {outcome.logs for outcome in outcomes}
    assert set() == processes.ours()


async def test_two_hundred_programs_at_once_all_settle_and_none_is_mixed_up():
    results = {}

    async def double(call):
        await trio.lowlevel.checkpoint()
        return call.arguments["n"] * 2

    space = Namespace("host", {"double": "double(*, n)"}, double)
    before = psutil.Process().memory_info().rss
    async with sandbox_of(settings(max_concurrent_runs=8)) as sandbox:

        async def run(number):
            source = f"print({number})\nreturn await host.double(n={number})"
            outcome = await sandbox.run(Program(source, (space,)))
            results[number] = (outcome.logs, outcome.value)

        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(run, number)
    assert {number: ((str(number),), number * 2) for number in range(200)} == results
    assert psutil.Process().memory_info().rss - before < 100 * 1024 * 1024
    assert set() == processes.ours()


def test_the_host_signals_processes_through_pidfds_only():
    # A number can be that of another process by now; a pidfd cannot.
    package = Path(fork_server.__file__).parent
    sources = {path.name: path.read_text() for path in package.glob("*.py")}
    assert set() == {name for name, text in sources.items() if "os.kill(" in text} - {"zygote.py"}
    # The fork server's own unwaited children keep their numbers until it waits.
    assert 1 == sources["zygote.py"].count("os.kill(")
