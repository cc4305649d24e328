"""Every limit of a run: just under it, just over it, and a program that tries to survive it."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from sandbox.limits import LimitError, Limits
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import ErrorClass, Namespace, Program, SandboxSettings

needs_linux = pytest.mark.needs_linux
BASE = Limits(wall_seconds=200, compute_seconds=30, memory_mb=128)
"""Time enough on the busiest machine: a test that is about time sets its own bound."""


@pytest.fixture
async def sandbox():
    async with open_test_sandbox(
        SandboxSettings(limits=BASE, parked_workers=2), language_wall=False
    ) as opened:
        yield opened


@pytest.fixture
async def lone_sandbox():
    """Give a sandbox that starts no worker while a program runs, for tests that move the clock."""
    settings = SandboxSettings(limits=BASE, parked_workers=0, max_concurrent_runs=1)
    async with open_test_sandbox(settings, language_wall=False) as opened:
        yield opened


def space(function, name="host", member="call"):
    return Namespace(name, {member: f"{member}(...)"}, function, ErrorClass("HostError", ("member",)))


async def echo(call):
    return call.arguments


async def end_of(sandbox, source, *namespaces, **limits):
    """Run a program that first prints a line, and return (kind, message); the line must be there."""
    outcome = await sandbox.run(
        Program("print('kept')\n" + source, namespaces), limits=BASE.tightened(**limits)
    )
    assert "kept" == outcome.logs[0]
    if outcome.failure is None:
        return None, outcome.value
    return outcome.failure.kind, outcome.failure.message


# ---- validity of the numbers themselves


@pytest.mark.parametrize("name", [field for field in Limits.__slots__ if "seconds" not in field])
@pytest.mark.parametrize("value", [0, -1, 1.5, "1", True, None])
def test_a_limit_that_counts_must_be_a_whole_number_of_at_least_one(name, value):
    with pytest.raises(LimitError, match=name) as caught:
        Limits(**{name: value})
    assert name == caught.value.setting


@pytest.mark.parametrize("name", ["wall_seconds", "compute_seconds"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "1", True, None])
def test_a_limit_in_seconds_must_be_a_finite_number_above_zero(name, value):
    with pytest.raises(LimitError, match=f"{name} must be a number of seconds"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", ["memory_mb", "compute_seconds", "wall_seconds", "max_calls"])
def test_a_limit_too_large_to_be_one_is_refused_with_the_bound(name):
    Limits(**{name: 2**40})
    with pytest.raises(LimitError, match="1099511627776"):
        Limits(**{name: 2**40 + 1})


def test_output_of_less_than_null_is_no_limit():
    with pytest.raises(LimitError, match="at least 4"):
        Limits(max_output_bytes=3)


def test_a_run_can_tighten_and_not_loosen():
    assert Limits(wall_seconds=1) == Limits(wall_seconds=2).tightened(wall_seconds=1, memory_mb=None)
    with pytest.raises(LimitError, match=r"wall_seconds=3 is looser than the service's wall_seconds=2"):
        Limits(wall_seconds=2).tightened(wall_seconds=3)


def test_an_unknown_limit_is_answered_with_the_known_ones():
    with pytest.raises(LimitError, match=r"unknown limit 'walls'.*wall_seconds"):
        Limits().tightened(walls=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"parked_workers": -1},
        {"parked_workers": True},
        {"max_concurrent_runs": 0},
        {"max_queued_runs": 1.5},
        {"grace_seconds": -1},
        {"grace_seconds": math.nan},
        {"isolation": "none"},
    ],
    ids=repr,
)
def test_a_setting_without_a_valid_value_is_refused_by_its_name(wrong):
    (name,) = wrong
    with pytest.raises(LimitError, match=f"{name} must be") as caught:
        SandboxSettings(**wrong)
    assert name == caught.value.setting


# ---- compute time

SURVIVORS = {
    "a loop": "while True: pass",
    "a loop that catches everything": """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    "a loop in finally": """
try:
    1 / 0
finally:
    while True: pass
""",
    "one long computation in C": "10 ** 10 ** 8",
    "a regular expression": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "a sum in C": "sum(range(10 ** 11))",
    "memory errors swallowed for ever": """
kept = []
while True:
    try:
        while True: kept.append(bytearray(10_000))
    except MemoryError: pass
""",
}


@needs_linux
@pytest.mark.parametrize("source", SURVIVORS.values(), ids=SURVIVORS.keys())
async def test_a_program_cannot_outlive_its_compute_limit(sandbox, source):
    with trio.fail_after(120):
        end = await end_of(sandbox, source, compute_seconds=0.3)
    message = "compute budget exhausted (300ms busy); the limit is compute_seconds=0.3"
    assert ("timeout", message) == end


@needs_linux
async def test_a_program_just_under_its_compute_limit_is_not_disturbed(sandbox):
    source = "import time\nwhile time.process_time() < start + 0.5: pass\nreturn 'done'"
    # The rest of the budget is for what comes before the first instruction.
    end = await end_of(sandbox, "import time\nstart = time.process_time()\n" + source, compute_seconds=1)
    assert (None, "done") == end


@needs_linux
async def test_waiting_for_a_call_costs_no_compute_time(sandbox):
    async def slow(call):
        await trio.sleep(0.6)
        return "slept"

    outcome = await sandbox.run(
        Program("return await host.call()", (space(slow),)), limits=BASE.tightened(compute_seconds=0.3)
    )
    assert "slept" == outcome.value
    assert outcome.usage.wall_seconds > 0.6
    assert outcome.usage.compute_seconds < 0.3


@needs_linux
async def test_sleeping_in_the_program_costs_no_compute_time(sandbox):
    end = await end_of(sandbox, "import time\ntime.sleep(0.6)\nreturn 'slept'", compute_seconds=0.3)
    assert (None, "slept") == end


@needs_linux
async def test_a_loop_behind_a_call_that_never_ends_is_still_caught(sandbox):
    async def never(call):
        await trio.sleep_forever()

    source = "import asyncio\nasyncio.ensure_future(host.call())\nawait asyncio.sleep(0.01)\nwhile True: pass"
    kind, _ = await end_of(sandbox, source, space(never), compute_seconds=0.3)
    assert "timeout" == kind


@needs_linux
async def test_what_is_over_the_budget_when_it_ends_is_over_whoever_looks_first(sandbox):
    # The host sleeps for what is left of the budget, so a program can be done just as it is used up.
    source = "import time\nstart = time.process_time()\nwhile time.process_time() < start + 0.21: pass"
    for _ in range(5):
        outcome = await sandbox.run(Program(source), limits=BASE.tightened(compute_seconds=0.2))
        assert "timeout" == outcome.failure.kind
        assert outcome.usage.compute_seconds > 0.2


@needs_linux
async def test_the_hosts_meter_and_the_workers_own_agree(sandbox):
    source = """
import time
start = time.process_time()
while time.process_time() < start + 0.3: pass
return time.process_time() - start
"""
    outcome = await sandbox.run(Program(source))
    # The host's count has the parsing and compiling of the program on top.
    assert outcome.value <= outcome.usage.compute_seconds < outcome.value + 0.1


# ---- wall time


@needs_linux
@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(60)",
        "import asyncio\nawait asyncio.sleep(60)",
        "import asyncio\nwhile True:\n    try: await asyncio.sleep(60)\n    except BaseException: pass",
        "await host.call()",
    ],
)
async def test_a_program_cannot_outwait_its_wall_limit(lone_sandbox, source, movable_clock):
    async def never(call):
        await trio.sleep_forever()

    ends = []

    async def run():
        ends.append(
            await lone_sandbox.run(
                Program("print('kept')\n" + source, (space(never),)),
                limits=BASE.tightened(wall_seconds=100.5),
                on_log=lambda _: began.set(),
            )
        )

    began = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await began.wait()
        movable_clock.jump(100)
        await trio.testing.wait_all_tasks_blocked()
        movable_clock.jump(0.5)
    assert ("kept",) == ends[0].logs
    assert (
        "timeout",
        "wall-clock ceiling reached (100500ms); the limit is wall_seconds=100.5",
    ) == (ends[0].failure.kind, ends[0].failure.message)


@needs_linux
async def test_a_program_just_under_its_wall_limit_is_not_disturbed(lone_sandbox, movable_clock):
    async def slow(call):
        movable_clock.jump(100)
        # The deadline would be heard of before the answer.
        await trio.testing.wait_all_tasks_blocked()

    end = await end_of(lone_sandbox, "await host.call()\nreturn 'done'", space(slow), wall_seconds=200)
    assert (None, "done") == end


@needs_linux
async def test_waiting_in_the_queue_costs_no_wall_time(lone_sandbox, movable_clock):
    outcomes = []

    async def slow(call):
        movable_clock.jump(100)
        await trio.testing.wait_all_tasks_blocked()

    async def run():
        # Together they take longer than any of them may.
        outcomes.append(await lone_sandbox.run(Program("await host.call()", (space(slow),))))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(run)
    assert [None] * 5 == [outcome.failure for outcome in outcomes]


# ---- memory


@needs_linux
@pytest.mark.parametrize(
    "source",
    [
        "x = 'a' * 10 ** 10",
        "x = []\nwhile True: x.append(bytearray(1 << 20))",
        "x = 'ab'.replace('a', 'x' * 10 ** 6) * 10 ** 6",
        "x = f'{0:>{10 ** 10}}'",
        "return bytearray(140 * 1024 * 1024) and 1",
    ],
)
async def test_memory_over_the_limit_is_a_memory_limit_failure(sandbox, source):
    kind, message = await end_of(sandbox, source)
    assert "memory-limit" == kind
    assert message.startswith("MemoryError")
    assert "memory_mb=128" in message


@needs_linux
async def test_memory_just_under_the_limit_is_there(sandbox):
    assert (None, 1) == await end_of(sandbox, "return bytearray(100 * 1024 * 1024) and 1")


@needs_linux
async def test_a_memory_error_can_be_caught_and_survived(sandbox):
    source = """
try:
    x = bytearray(10 ** 10)
except MemoryError:
    return 'caught'
"""
    assert (None, "caught") == await end_of(sandbox, source)


@needs_linux
async def test_the_limit_holds_for_native_allocation_too(sandbox):
    source = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
return libc.mmap(None, ctypes.c_size_t({} * 1024 * 1024), 3, 0x22, -1, ctypes.c_long(0)) == 2 ** 64 - 1
"""
    assert (None, False) == await end_of(sandbox, source.format(100))
    assert (None, True) == await end_of(sandbox, source.format(200))


@needs_linux
async def test_deep_recursion_ends_the_run_and_nothing_else(sandbox):
    source = "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): return f()\nf()"
    kind, _ = await end_of(sandbox, source)
    assert kind in {"exception", "worker-exit", "memory-limit"}


# ---- output


@needs_linux
async def test_output_at_the_limit_is_kept_and_one_byte_more_ends_the_run(sandbox):
    # ["kept"] and the string: 8 bytes and 2 quotes.
    program = "return 'x' * {}"
    assert (None, "x" * 90) == await end_of(sandbox, program.format(90), max_output_bytes=100)
    message = "outer output exceeded 100 bytes; the limit is max_output_bytes"
    assert ("output-limit", message) == await end_of(sandbox, program.format(91), max_output_bytes=100)


@needs_linux
async def test_printing_at_the_limit_is_kept_and_one_byte_more_ends_the_run(sandbox):
    # ["kept","x..."] and null.
    program = "print('x' * {})\nreturn None"
    kind, _ = await end_of(sandbox, program.format(100 - 8 - 3), max_output_bytes=100)
    assert kind is None
    kind, message = await end_of(sandbox, program.format(100 - 8 - 2), max_output_bytes=100)
    assert "output-limit" == kind
    assert "max_output_bytes" in message


@needs_linux
@pytest.mark.parametrize(
    "source",
    [
        "while True: print('x' * 50)",
        "while True:\n    try: print('x' * 50)\n    except BaseException: pass",
        "import os\nwhile True: print('x' * 10_000_000)",
    ],
)
async def test_a_flood_of_output_ends_the_run_and_what_fits_is_kept(sandbox, source):
    outcome = await sandbox.run(
        Program("print('kept')\n" + source), limits=BASE.tightened(max_output_bytes=10_000)
    )
    assert "output-limit" == outcome.failure.kind
    assert "outer output exceeded 10000 bytes; the limit is max_output_bytes" == outcome.failure.message
    assert "kept" == outcome.logs[0]
    assert 9_000 < outcome.usage.output_bytes <= 10_000


@needs_linux
async def test_log_entries_at_the_limit_are_kept_and_one_more_ends_the_run(sandbox):
    program = "for i in range({}): print(i)"
    kind, _ = await end_of(sandbox, program.format(9), max_log_entries=10)
    assert kind is None
    kind, message = await end_of(sandbox, program.format(10), max_log_entries=10)
    assert ("output-limit", "more than 10 lines of output; the limit is max_log_entries") == (kind, message)


# ---- calls


@needs_linux
async def test_calls_at_the_limit_are_answered_and_one_more_ends_the_run(sandbox):
    program = "for i in range({}): last = await host.call(i=i)\nreturn last"
    assert (None, {"i": 4}) == await end_of(sandbox, program.format(5), space(echo), max_calls=5)
    kind, message = await end_of(sandbox, program.format(6), space(echo), max_calls=5)
    assert ("call-limit", "the program made more than 5 calls; the limit is max_calls") == (kind, message)


@needs_linux
async def test_a_program_cannot_catch_the_call_limit(sandbox):
    source = "while True:\n    try: await host.call()\n    except BaseException: pass"
    kind, _ = await end_of(sandbox, source, space(echo), max_calls=20)
    assert "call-limit" == kind


@needs_linux
async def test_pending_calls_at_the_limit_wait_and_one_more_fails_for_the_program_only(sandbox):
    release = trio.Event()

    async def wait(call):
        if call.arguments == {"i": 3}:
            # By then the reader has come to every message that is there.
            await trio.testing.wait_all_tasks_blocked(0.1)
            release.set()
        await release.wait()
        return call.arguments["i"]

    source = """
import asyncio
return [str(r) for r in await asyncio.gather(*[host.call(i=i) for i in range({})], return_exceptions=True)]
"""
    _, results = await end_of(sandbox, source.format(4), space(wait), max_pending_calls=4)
    assert ["0", "1", "2", "3"] == results
    release = trio.Event()
    _, results = await end_of(sandbox, source.format(5), space(wait), max_pending_calls=4)
    assert ["0", "1", "2", "3"] == results[:4]
    assert results[4].startswith(
        "4 calls are waiting for their results already; the limit is max_pending_calls"
    )


@needs_linux
async def test_an_argument_over_the_frame_limit_fails_for_the_program_only(sandbox):
    # {"t":"x..."} has 8 bytes around the x.
    source = """
try:
    return len((await host.call(t='x' * {}))['t'])
except HostError as error:
    return str(error)
"""
    assert (None, 992) == await end_of(sandbox, source.format(992), space(echo), max_call_bytes=1000)
    _, text = await end_of(sandbox, source.format(993), space(echo), max_call_bytes=1000)
    assert "max_call_bytes" in text
    assert "1000" in text


@needs_linux
async def test_a_result_over_the_frame_limit_fails_for_the_program_only(sandbox):
    async def large(call):
        return "x" * call.arguments["n"]

    source = """
try:
    return len(await host.call(n={}))
except HostError as error:
    return str(error)
"""
    assert (None, 998) == await end_of(sandbox, source.format(998), space(large), max_call_bytes=1000)
    _, text = await end_of(sandbox, source.format(999), space(large), max_call_bytes=1000)
    assert (
        "the result of call has 1001 bytes of JSON; the limit is max_call_bytes=1000: ask for less at a time"
        == text
    )


@needs_linux
async def test_calls_and_results_together_are_bounded(sandbox):
    async def large(call):
        return "x" * 1000

    source = "for i in range({}):\n    try: await host.call()\n    except BaseException: pass\nreturn 'done'"
    assert (None, "done") == await end_of(sandbox, source.format(8), space(large), max_run_bytes=10_000)
    kind, message = await end_of(sandbox, source.format(10), space(large), max_run_bytes=10_000)
    assert "call-limit" == kind
    assert "calls and results of this run passed 10000 bytes; the limit is max_run_bytes" == message


@needs_linux
async def test_printing_is_not_charged_to_the_bytes_of_calls(sandbox):
    end = await end_of(sandbox, "for i in range(50): print('x' * 100)\nreturn 'done'", max_run_bytes=1000)
    assert (None, "done") == end


# ---- source


@needs_linux
@pytest.mark.parametrize("letter", ["x", "é", "€", "🎉"])
async def test_a_source_at_the_limit_runs_and_one_byte_more_is_refused_before_a_worker_is_used(
    sandbox, letter
):
    frame = len("return len('')")
    count = (2000 - frame) // len(letter.encode())
    source = f"return len('{letter * count}')"
    padding = " " * (2000 - len(source.encode()))
    limits = BASE.tightened(max_source_bytes=2000)
    fits = await sandbox.run(Program(source + padding), limits=limits)
    assert count == fits.value
    refused = await sandbox.run(Program(source + padding + " "), limits=limits)
    assert "policy" == refused.failure.kind
    assert "the program has 2001 bytes; the limit is max_source_bytes=2000" == refused.failure.message
    assert 0 == refused.usage.wall_seconds
