"""`codemode batch` in a real process: streams, signals, full disks, terminals."""

from __future__ import annotations

import json
import os
import re
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

@registry.tool(concurrency_safe=True)
async def double(n: int) -> int:
    "Twice a number."
    print(f"tool says {n}", file=sys.stderr, flush=True)
    return 2 * n

@registry.tool(concurrency_safe=True)
async def hang(n: int) -> int:
    "Say that the call has begun, and never end."
    print(f"READY {n}", flush=True)
    await trio.sleep_forever()

@registry.tool(concurrency_safe=True)
async def stubborn(n: int) -> int:
    "Never end, and refuse to be stopped by the first signal."
    print(f"READY {n}", flush=True)
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            print("CANCELLED", flush=True)
            await trio.sleep_forever()

@registry.tool
async def long(size: int) -> str:
    "Much text."
    return "x" * size
"""

COMMAND = ("batch", "--tools", "tools.py:registry", "--tools", "none")


@pytest.fixture(autouse=True)
def tools(folder):
    (folder / "tools.py").write_text(TOOLS)


def line(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments}) + "\n"


def records(text):
    return [json.loads(item) for item in text.splitlines()]


def test_a_record_appears_while_the_input_is_still_being_written(start):
    process = start(*COMMAND, "-", stdin=subprocess.PIPE)
    for n in range(3):
        process.stdin.write(line("double", n=n))
        process.stdin.flush()
        # Waits for ever if the record is held back.
        assert 2 * n == json.loads(process.stdout.readline())["value"]
    process.stdin.close()
    assert 0 == process.wait(timeout=300)
    process.stdin = None


def test_a_line_beyond_the_bound_is_reported_and_the_next_one_is_read(start, folder):
    process = start(*COMMAND, "-", stdin=subprocess.PIPE)
    block = "x" * 2**20
    for _ in range(17):
        process.stdin.write(block)
    out, err = process.communicate("\n" + line("double", n=1), timeout=300)
    first, second = records(out)
    assert "line 1: it is longer than 16777216 bytes" == first["error"]["message"]
    assert (2, 2) == (second["line"], second["value"])
    assert 1 == process.returncode, err


def test_ctrl_c_stops_what_runs_and_resume_makes_the_rest(start, codemode, folder):
    (folder / "in.jsonl").write_text(
        line("double", n=1) + line("hang", n=2) + "".join(line("double", n=n) for n in range(3, 60))
    )
    process = start(
        *COMMAND, "in.jsonl", "--output", "out.jsonl", "--events", "e.jsonl", "--max-parallel", "1"
    )
    while process.stderr.readline() != "READY 2\n":
        pass
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (130, "") == (process.returncode, out)
    assert "codemode batch: interrupted by Ctrl-C after line 2; the same command with --resume goes on" in err
    assert 0 == SessionLog.load(folder / "e.jsonl").repaired
    one, two = records((folder / "out.jsonl").read_text())
    assert (2, "failed", "ABORTED", True) == (
        one["value"],
        two["status"],
        two["error"]["code"],
        two["executed"],
    )
    status, _, err = codemode(
        *COMMAND, "in.jsonl", "--output", "out.jsonl", "--events", "e.jsonl", "--resume"
    )
    assert 1 == status
    assert "READY" not in err
    assert [one, two] == records((folder / "out.jsonl").read_text())[:2]
    assert [2 * n for n in range(3, 60)] == [
        record["value"] for record in records((folder / "out.jsonl").read_text())[2:]
    ]


def test_a_call_that_a_kill_cuts_short_is_of_unknown_outcome_in_output_and_event_log(start, codemode, folder):
    (folder / "in.jsonl").write_text(line("double", n=1) + line("stubborn", n=2) + line("double", n=3))
    arguments = (*COMMAND, "in.jsonl", "--output", "out.jsonl", "--events", "e.jsonl", "--max-parallel", "1")
    process = start(*arguments)
    while process.stderr.readline() != "READY 2\n":
        pass
    process.send_signal(signal.SIGINT)
    while process.stderr.readline() != "CANCELLED\n":
        pass
    process.kill()
    process.communicate()
    status, _, err = codemode(*arguments, "--resume")
    assert 1 == status
    assert "'e.jsonl' had been cut off" in err
    assert ["succeeded", "unknown", "succeeded"] == [
        record["status"] for record in records((folder / "out.jsonl").read_text())
    ]
    results = SessionLog.load(folder / "e.jsonl").replay().results
    assert [None, "TOOL_OUTCOME_UNKNOWN", None] == [(result.error or {}).get("code") for result in results]


def test_a_full_disk_stops_the_batch_and_resume_repeats_nothing(codemode, folder):
    def limit():
        import resource

        # A file size limit fails writes as a full disk does; Python ignores the signal that comes with it.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    (folder / "in.jsonl").write_text("".join(line("double", n=n) for n in range(100)))
    arguments = (*COMMAND, "in.jsonl", "--output", "out.jsonl")
    status, _, err = codemode(*arguments, preexec_fn=limit)
    assert 1 == status
    assert (
        "codemode batch: cannot write to 'out.jsonl': File too large; the same command with --resume goes on"
        in err
    )
    first = re.findall(r"tool says (\d+)", err)
    assert 0 < len(first) < 100
    status, _, err = codemode(*arguments, "--resume")
    second = re.findall(r"tool says (\d+)", err)
    assert [str(n) for n in range(100)] == sorted(first + second, key=int)
    outcomes = [record["status"] for record in records((folder / "out.jsonl").read_text())]
    assert 100 == len(outcomes)
    assert outcomes.count("succeeded") == 100 - outcomes.count("unknown")
    assert (1 if "unknown" in outcomes else 0) == status


def test_standard_output_on_a_full_disk_is_one_line_and_status_1(codemode, folder):
    (folder / "in.jsonl").write_text(line("long", size=100_000))
    with Path("/dev/full").open("w") as full:
        status, _, err = codemode(*COMMAND, "in.jsonl", stdout=full)
    assert 1 == status
    assert "codemode batch: cannot write to standard output: No space left on device" in err
    assert "Traceback" not in err


def test_when_nobody_reads_any_more_no_further_call_is_made(start, folder):
    (folder / "in.jsonl").write_text("".join(line("double", n=n) for n in range(3000)))
    process = start(*COMMAND, "in.jsonl")
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    err = process.stderr.read()
    assert 1 == process.wait(timeout=300)
    assert err.count("tool says") < 3000
    assert "codemode batch: nobody reads the records any more" in err
    assert "Traceback" not in err


def test_a_stream_that_is_given_again_is_recognised_by_its_lines(codemode, folder):
    lines = "".join(line("double", n=n) for n in range(5))
    arguments = (*COMMAND, "-", "--output", "out.jsonl", "--resume")
    assert 0 == codemode(*arguments, typed=lines)[0]
    status, _, err = codemode(*arguments, typed=lines)
    assert (0, False) == (status, "tool says" in err)
    assert "'out.jsonl' is complete; no call was left to make" in err
    status, _, err = codemode(*arguments, typed=lines.replace("4", "5"))
    assert (2, False) == (status, "tool says" in err)
    assert "its record of line 5 is not one of standard input" in err
