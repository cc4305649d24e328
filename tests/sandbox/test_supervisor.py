"""Runs from the first instruction to quiescence: results, calls, cancellation, ends."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import processes
import psutil
import pytest
import trio
import trio.testing

from sandbox import pace
from sandbox.errors import ClosedSandboxError, UnsupportedPlatformError
from sandbox.limits import Limits
from sandbox.supervisor import Stop, open_sandbox
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import ABSENT, ErrorClass, HostFunctionError, Namespace, Program, SandboxSettings

needs_linux = pytest.mark.needs_linux
LIMITS = Limits(wall_seconds=100, compute_seconds=20, memory_mb=128)
SETTINGS = SandboxSettings(limits=LIMITS, parked_workers=2, grace_seconds=0.05)
LONE = SandboxSettings(limits=LIMITS, parked_workers=0, grace_seconds=0.05)
"""No worker is on its way while a program runs, so that a test may move the clock."""


@pytest.fixture
async def sandbox():
    async with open_test_sandbox(SETTINGS, language_wall=False) as opened:
        yield opened


def space(function, name="host"):
    return Namespace(name, {"call": "call(...)"}, function, ErrorClass("HostError", ("member",)))


class Recorder:
    """A host function that waits for ever, and remembers what became of its calls."""

    def __init__(self):
        self.started = trio.Event()
        self.ended = []
        self.abandoned = []

    async def __call__(self, call):
        call.on_abandoned(lambda: self.abandoned.append(call.id))
        self.started.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            self.ended.append(call.id)
            raise


# ---- values and calls


@needs_linux
async def test_a_run_gives_value_logs_and_usage(sandbox):
    async def add(call):
        return call.arguments["a"] + call.arguments["b"]

    pieces = []
    outcome = await sandbox.run(
        Program("print('adding')\nreturn await host.call(a=1, b=2)", (space(add),)), on_log=pieces.append
    )
    assert (3, ("adding",), None) == (outcome.value, outcome.logs, outcome.failure)
    assert "adding\n" == "".join(pieces)
    assert 1 == outcome.usage.calls
    assert 0 < outcome.usage.compute_seconds < outcome.usage.wall_seconds + 0.05


@needs_linux
async def test_a_failed_call_is_an_exception_with_its_message_and_nothing_else(sandbox):
    async def refuse(call):
        raise HostFunctionError("not today") from ValueError("a secret of the host")

    source = """
try:
    await host.call()
except HostError as e:
    return [str(e), e.member, repr(e.__cause__)]
"""
    outcome = await sandbox.run(Program(source, (space(refuse),)))
    assert ["not today", "call", "None"] == outcome.value


@needs_linux
async def test_a_host_function_may_refuse_before_it_waits(sandbox):
    def refuse(call):
        raise HostFunctionError("not at all")

    source = "try:\n    await host.call()\nexcept HostError as e:\n    return str(e)"
    assert "not at all" == (await sandbox.run(Program(source, (space(refuse),)))).value


@needs_linux
async def test_a_mistake_in_a_host_function_reaches_the_caller_of_run(sandbox):
    async def broken(call):
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        await sandbox.run(Program("await host.call()", (space(broken),)))
    assert 1 == (await sandbox.run(Program("1"))).value


@needs_linux
async def test_host_functions_are_called_in_arrival_order_and_overlap(sandbox):
    order = []
    together = trio.Event()

    def function(call):
        order.append(call.arguments["n"])

        async def answer():
            if len(order) == 6:
                together.set()
            await together.wait()
            return call.arguments["n"]

        return answer()

    source = "import asyncio\nreturn await asyncio.gather(*[host.call(n=n) for n in range(6)])"
    outcome = await sandbox.run(Program(source, (space(function),)))
    assert list(range(6)) == outcome.value == order


@needs_linux
async def test_a_call_that_waits_does_not_hold_up_a_later_one(sandbox):
    release = trio.Event()

    async def function(call):
        if call.arguments["n"] == 0:
            await release.wait()
        else:
            release.set()
        return call.arguments["n"]

    source = """
import asyncio
first = asyncio.ensure_future(host.call(n=0))
await asyncio.sleep(0)
second = await host.call(n=1)
return [await first, second]
"""
    assert [0, 1] == (await sandbox.run(Program(source, (space(function),)))).value


@needs_linux
async def test_output_printed_while_a_call_waits_arrives_at_once(sandbox):
    printed = trio.Event()

    async def function(call):
        await printed.wait()
        return "heard"

    source = """
import asyncio
waiting = asyncio.ensure_future(host.call())
await asyncio.sleep(0)
print('now')
return await waiting
"""
    with trio.fail_after(60):
        outcome = await sandbox.run(Program(source, (space(function),)), on_log=lambda _: printed.set())
    assert "heard" == outcome.value


@needs_linux
async def test_giving_up_one_call_cancels_its_function_while_the_run_goes_on(sandbox):
    recorder = Recorder()
    source = """
import asyncio
try:
    await asyncio.wait_for(host.call(), 0.05)
except asyncio.TimeoutError:
    pass
await other.call()
return 'went on'
"""
    ended_by_then = []

    async def look(call):
        await trio.testing.wait_all_tasks_blocked()
        ended_by_then.extend(recorder.ended)

    outcome = await sandbox.run(Program(source, (space(recorder), space(look, "other"))))
    assert "went on" == outcome.value
    assert [1] == ended_by_then == recorder.abandoned


@needs_linux
async def test_calls_nobody_waits_for_are_cancelled_and_awaited_before_the_run_returns(sandbox):
    ended = []

    async def slow_to_end(call):
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.02)
            ended.append(call.id)

    source = """
import asyncio
for _ in range(3): asyncio.ensure_future(host.call())
await asyncio.sleep(0.01)
return 1
"""
    outcome = await sandbox.run(Program(source, (space(slow_to_end),)))
    assert 1 == outcome.value
    assert [1, 2, 3] == sorted(ended)


# ---- stopping


@needs_linux
@pytest.mark.parametrize("source", ["await host.call()", "await host.call()\nwhile True: pass"])
async def test_a_stop_settles_as_abort_with_its_reason_and_the_logs(sandbox, source):
    recorder = Recorder()
    stop = Stop()
    outcomes = []

    async def run():
        outcomes.append(await sandbox.run(Program("print('kept')\n" + source, (space(recorder),)), stop=stop))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await recorder.started.wait()
        stop.request("enough")
        stop.request("too late a reason")
    assert ("abort", "enough") == (outcomes[0].failure.kind, outcomes[0].failure.message)
    assert ("kept",) == outcomes[0].logs
    assert [1] == recorder.ended == recorder.abandoned


@needs_linux
async def test_a_stop_that_came_before_the_run_starts_nothing(sandbox):
    stop = Stop()
    stop.request("never mind")
    outcome = await sandbox.run(Program("print('ran')"), stop=stop)
    assert ("abort", "never mind", ()) == (outcome.failure.kind, outcome.failure.message, outcome.logs)


@needs_linux
async def test_a_stop_after_the_end_changes_nothing(sandbox):
    stop = Stop()
    outcome = await sandbox.run(Program("return 5"), stop=stop)
    stop.request("late")
    assert (5, None) == (outcome.value, outcome.failure)


@needs_linux
async def test_cancelling_kills_the_worker_and_waits_for_its_calls():
    recorder = Recorder()
    async with open_test_sandbox(SETTINGS, language_wall=False) as sandbox:
        while len(parked := processes.workers()) < 2:  # noqa: ASYNC110  # nobody tells us
            await trio.sleep(0.01)
        async with trio.open_nursery() as nursery:
            source = (
                "import asyncio as a\na.ensure_future(host.call())\nawait a.sleep(0.01)\nwhile True: pass"
            )
            nursery.start_soon(sandbox.run, Program(source, (space(recorder),)))
            await recorder.started.wait()
            nursery.cancel_scope.cancel()
        assert [1] == recorder.ended
        assert 0 == sandbox.statistics().running
        # One of those that were parked ran it, and nothing else ends them.
        assert 1 == sum(map(processes.is_alive, parked))
        assert 1 == (await sandbox.run(Program("1"))).value
    assert set() == processes.ours()


@needs_linux
async def test_a_call_that_shields_itself_is_told_and_waited_for_when_the_run_is_cancelled(sandbox):
    told = trio.Event()
    started = trio.Event()
    ended = []

    async def shielded(call):
        call.on_abandoned(told.set)
        with trio.CancelScope(shield=True):
            started.set()
            await told.wait()
            await trio.sleep(0.01)
            ended.append(call.id)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sandbox.run, Program("await host.call()", (space(shielded),)))
        await started.wait()
        nursery.cancel_scope.cancel()
    assert [1] == ended


@needs_linux
async def test_a_function_that_goes_on_after_its_run_is_reported_each_grace_period(movable_clock):
    reports = []
    release = trio.Event()

    async def stubborn(call):
        with trio.CancelScope(shield=True):
            movable_clock.jump(LIMITS.wall_seconds)
            await release.wait()

    def report(call, seconds):
        reports.append((call.member, seconds))
        if len(reports) == 3:
            release.set()

    async with open_test_sandbox(LONE, language_wall=False, on_stuck_call=report) as sandbox:
        outcome = await sandbox.run(Program("await host.call()", (space(stubborn),)))
    assert "timeout" == outcome.failure.kind
    assert ["call"] * 3 == [member for member, _ in reports]
    assert all(seconds >= 0.05 * count for count, (_, seconds) in enumerate(reports, 1))


@needs_linux
async def test_by_default_the_report_is_a_warning_in_the_log(caplog, movable_clock):
    async def stubborn(call):
        with trio.CancelScope(shield=True):
            movable_clock.jump(LIMITS.wall_seconds)
            while not caplog.text:  # noqa: ASYNC110  # a log has no event
                await trio.sleep(0.01)

    async with open_test_sandbox(LONE, language_wall=False) as sandbox:
        with caplog.at_level(logging.WARNING, "sandbox"):
            await sandbox.run(Program("await host.call()", (space(stubborn),)))
    assert "host.call (call 1) goes on" in caplog.text


@needs_linux
async def test_functions_that_end_when_asked_are_not_reported(movable_clock):
    reports = []

    async def obedient(call):
        movable_clock.jump(LIMITS.wall_seconds)
        await trio.sleep_forever()

    # A grace period that no busy machine can use up.
    settings = SandboxSettings(limits=LIMITS, parked_workers=0, grace_seconds=60)
    async with open_test_sandbox(
        settings, language_wall=False, on_stuck_call=lambda *report: reports.append(report)
    ) as sandbox:
        outcome = await sandbox.run(Program("await host.call()", (space(obedient),)))
    assert "timeout" == outcome.failure.kind
    assert [] == reports


@needs_linux
async def test_a_closed_sandbox_refuses_runs():
    async with open_test_sandbox(SETTINGS, language_wall=False) as sandbox:
        pass
    with pytest.raises(ClosedSandboxError):
        await sandbox.run(Program("1"))


@needs_linux
async def test_an_exception_inside_the_block_comes_out_bare_and_leaves_nothing():
    with pytest.raises(KeyError):
        async with open_test_sandbox(SETTINGS, language_wall=False):
            raise KeyError
    assert set() == processes.ours()


@needs_linux
async def test_being_cancelled_while_it_opens_leaves_nothing():
    for seconds in (0.001, 0.02, 0.1, 0.2):
        with trio.move_on_after(seconds):
            async with open_test_sandbox(SETTINGS, language_wall=False):
                await trio.sleep_forever()
        assert set() == processes.ours()


@needs_linux
async def test_programs_can_run_under_both_walls():
    async with open_sandbox(SETTINGS) as sandbox:
        outcome = await sandbox.run(Program("print('both')\nreturn {'n': 1 + 2}"))
    assert ({"n": 3}, ("both",)) == (outcome.value, outcome.logs)


# ---- a host that goes away

HOST = """
import sys, trio
from sandbox.limits import Limits
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Namespace, Program, SandboxSettings

async def main():
    async def started(call):
        print('running', flush=True)
    space = Namespace('host', {'started': 'started()'}, started)
    settings = SandboxSettings(limits=Limits(memory_mb=128), parked_workers=2)
    async with open_test_sandbox(settings, language_wall=False, launcher=tuple(sys.argv[1:])) as sandbox:
        await sandbox.run(Program('await host.started()\\nwhile True: pass', (space,)))

trio.run(main)
"""
PREFILTER = str(Path(processes.__file__).parent / "prefilter.py")
LAUNCHERS = {
    "in namespaces": (),
    "without namespaces": (sys.executable, PREFILTER, "--without=namespaces", "--"),
}


@needs_linux
@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS.keys())
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_of_a_host_that_is_killed_in_mid_run_is_left(sent, launcher):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, *launcher], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with host:
        assert b"running\n" == host.stdout.readline()
        family = psutil.Process(host.pid).children(recursive=True)
        # The fork server and the busy worker; perhaps the one that waits for the former, and parked ones.
        assert len(family) >= 2
        os.kill(host.pid, sent)
        host.wait()
        # A few milliseconds on an idle machine; only what would stay for good is there after a minute.
        deadline = time.monotonic() + 60
        while any(map(processes.is_alive, family)) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [] == [process for process in family if processes.is_alive(process)]


# ---- other systems


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_on_other_systems_everything_imports_and_running_names_a_linux_container(platform):
    program = f"""
import asyncio, ctypes, psutil, subprocess, sys, trio
sys.platform = {platform!r}
if sys.platform == "win32":
    sys.modules["resource"] = None
import sandbox.supervisor, sandbox.testing, sandbox.isolation.plan, sandbox.zygote, sandbox.meter
from sandbox.supervisor import open_sandbox
async def main():
    try:
        async with open_sandbox():
            pass
    except sandbox.errors.UnsupportedPlatformError as error:
        print(error)
trio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "" == done.stderr
    (line,) = done.stdout.splitlines()
    assert f"this is {platform}" in line
    assert "Linux container" in line


async def test_the_refusal_comes_before_anything_is_started(monkeypatch):
    monkeypatch.setattr(sys, "platform", "sunos5")
    before = processes.ours()
    with pytest.raises(UnsupportedPlatformError, match="sunos5"):
        async with open_sandbox():
            pass
    assert before == processes.ours()


def test_nothing_returned_is_told_apart_from_null():
    assert not ABSENT
    assert ABSENT is not None
    assert "ABSENT" == repr(ABSENT)


@needs_linux
async def test_a_host_function_may_answer_before_it_is_done(sandbox):
    second = trio.Event()
    order = []

    async def function(call):
        if call.arguments["n"] == 1:
            call.answer("early")
            # Only the next call, which the program makes when it has its answer, ends this one.
            await second.wait()
            order.append("first done")
            return "late"
        second.set()
        return "second"

    source = "return [await host.call(n=1), await host.call(n=2)]"
    outcome = await sandbox.run(Program(source, (space(function),)))
    assert (["early", "second"], ["first done"]) == (outcome.value, order)


@needs_linux
async def test_a_run_waits_for_a_host_function_that_answered_early(sandbox):
    done = []

    async def function(call):
        call.answer(1)
        await trio.sleep(0.05)
        done.append(True)

    outcome = await sandbox.run(Program("return await host.call()", (space(function),)))
    assert (1, [True]) == (outcome.value, done)


@needs_linux
async def test_an_early_answer_that_is_too_large_is_refused_like_any(sandbox):
    async def function(call):
        call.answer("x" * 2_000_000)

    source = "try:\n    await host.call()\nexcept HostError as e:\n    return str(e)"
    limits = {"max_call_bytes": 1_000_000}
    outcome = await sandbox.run(Program(source, (space(function),)), limits=LIMITS.tightened(**limits))
    assert "the limit is max_call_bytes=1000000" in outcome.value


@needs_linux
async def test_many_calls_in_a_row_give_what_they_give_however_both_sides_wait(sandbox):
    async def double(call):
        return call.arguments["n"] * 2

    source = "return [await host.call(n=n) for n in range(500)]"
    outcome = await sandbox.run(Program(source, (space(double),)))
    assert (list(range(0, 1000, 2)), 500) == (outcome.value, outcome.usage.calls)


@needs_linux
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to choose from")
async def test_what_a_worker_spends_on_looking_for_answers_is_not_the_programs(sandbox, monkeypatch):
    # From the first turn on, and for as long as each answer takes: ten seconds of looking for a program that
    # computes nothing would show.
    monkeypatch.setattr(pace, "_WINDOW_EXCHANGES", 1)
    monkeypatch.setattr(pace, "_WORTHWHILE", 1e9)
    monkeypatch.setattr(pace, "LOOK_SECONDS", 0.02)

    async def slow(call):
        time.sleep(0.01)  # noqa: ASYNC251  # stands for a function that computes
        return 1

    outcome = await sandbox.run(Program("for _ in range(30):\n    await host.call()", (space(slow),)))
    assert outcome.failure is None
    assert outcome.usage.compute_seconds < 0.15


@needs_linux
async def test_what_a_namespace_shows_of_itself_does_not_depend_on_what_was_used():
    async def answer(call):
        return call.member

    members = dict.fromkeys(["beta", "alpha", "not-a-name"], "f(...)")
    source = (
        "before = dir(host)\nx = await host.beta()\nreturn [before, dir(host), x, hasattr(host, '__dict__')]"
    )
    async with open_test_sandbox(SETTINGS) as walled:
        outcome = await walled.run(Program(source, (Namespace("host", members, answer),)))
    assert [["alpha", "beta"], ["alpha", "beta"], "beta", False] == outcome.value
