"""Ctrl-C, signals, and readers that go away."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from codemode.session_log import SessionLog

pytestmark = pytest.mark.needs_linux

TOOLS = """
import sys
import trio
from tool_bindings import ToolRegistry

registry = ToolRegistry()

@registry.tool
async def hang() -> None:
    "Say that the call has begun, and never end."
    print("READY", flush=True)
    await trio.sleep_forever()

@registry.tool
async def stubborn() -> None:
    "Never end, and refuse to be stopped."
    print("READY", flush=True)
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()

@registry.tool
async def ready() -> None:
    "Say that the program has begun."
    print("READY", flush=True)
"""


@pytest.fixture
def begin(start, folder):
    """Give a function that starts a run and returns its process once the program is at work."""
    (folder / "tools.py").write_text(TOOLS)

    def begin(code, *options):
        process = start("run", "--tools", "tools.py:registry", "--events", "e.jsonl", *options, "-c", code)
        assert "READY\n" == process.stderr.readline()
        return process

    return begin


def events(folder):
    return [json.loads(line) for line in (folder / "e.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "code", ["await tools.hang()", "await tools.ready()\nwhile True: pass"], ids=["call", "loop"]
)
def test_ctrl_c_stops_the_program_completes_the_log_and_exits_with_130(begin, folder, orphans, code):
    process = begin(code, "--json")
    # To the whole process group, as a terminal does.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (130, "") == (process.returncode, err)
    assert (False, "abort") == (json.loads(out)["ok"], json.loads(out)["error"]["kind"])
    assert "interrupted by Ctrl-C" in json.loads(out)["error"]["message"]
    types = [event["type"] for event in events(folder)]
    assert ["tool/result", "step/end", "turn/end"] == types[-3:]
    assert types.count("tool/code-dispatch-start") == types.count("tool/code-dispatch") == 1
    assert 0 == SessionLog.load(folder / "e.jsonl").repaired
    assert [] == orphans()


def test_ctrl_c_in_text_form_says_so_on_standard_error(begin):
    process = begin("print('begun')\nawait tools.hang()")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (130, "begun\n") == (process.returncode, out)
    assert "interrupted by Ctrl-C" in err
    assert "Traceback" not in err


def test_a_tool_that_refuses_to_be_stopped_does_not_hold_up_a_person_who_insists(begin, folder, orphans):
    process = begin("await tools.stubborn()")
    sent = 0
    while process.poll() is None and sent < 500:
        process.send_signal(signal.SIGINT)
        sent += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            # The pause keeps the signals apart, as a person does; the kernel merges equal ones.
            process.wait(timeout=0.2)
    assert -signal.SIGINT == process.returncode
    assert sent >= 3
    assert [] == orphans()
    with SessionLog.open(folder / "e.jsonl") as log:
        assert log.repaired > 0


def test_a_termination_signal_stops_it_as_orderly(begin, folder):
    process = begin("await tools.hang()")
    process.terminate()
    process.communicate(timeout=300)
    assert 128 + signal.SIGTERM == process.returncode
    assert 0 == SessionLog.load(folder / "e.jsonl").repaired


def test_a_killed_command_leaves_no_process_and_a_log_that_is_repaired(begin, folder, codemode, orphans):
    process = begin("await tools.hang()")
    process.kill()
    process.communicate()
    assert [] == orphans()
    status, out, _ = codemode("events", "e.jsonl")
    assert 0 == status
    assert "unknown  hang" in out
    assert "missing: no result of run_code" in out
    status, out, err = codemode("run", "--events", "e.jsonl", "-c", "return 1")
    assert (0, "1\n") == (status, out)
    assert "codemode: 'e.jsonl' had been cut off; 3 closing events were added" in err
    log = SessionLog.load(folder / "e.jsonl")
    assert ["TOOL_OUTCOME_UNKNOWN", None] == [
        (result.error or {}).get("code") for result in log.replay().results
    ]


@pytest.mark.parametrize(("expected", "code"), [(0, "return 1"), (1, "return 1 / 0")])
def test_a_reader_that_goes_away_is_silent_and_the_runs_own_status_stands(start, expected, code):
    process = start("run", "-c", f"for i in range(50_000):\n    print(i)\n{code}")
    process.stdout.close()
    process.stdout = None
    err = process.stderr.read()
    assert expected == process.wait(timeout=300)
    assert "Broken" not in err
    assert "Traceback" not in err
    assert (expected == 0) == (err == "")


def test_a_reader_that_leaves_a_long_timeline_is_silent(start, folder):
    with SessionLog.open("e.jsonl") as log:
        for turn in range(5000):
            log.append("turn/start", {"turn": turn})
            log.append("turn/end", {"turn": turn, "reason": {"kind": "completed"}})
    process = start("events", "e.jsonl")
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert "" == process.stderr.read()
    assert 0 == process.wait(timeout=300)


def test_output_on_a_full_disk_is_one_line_and_status_1(codemode):
    with Path("/dev/full").open("w") as full:
        status, _, err = codemode("run", "-c", "return 1", stdout=full)
    assert 1 == status
    assert ["codemode run: cannot write to standard output: No space left on device"] == err.splitlines()
