"""A batch that is killed, at whatever moment, goes on without making a call twice.

The command is killed from within, in front of, halfway through or right behind its n-th write, so that the
same seed gives the same moments on any machine; torn lines come by themselves.
"""

from __future__ import annotations

import collections
import json
import random
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.needs_linux

CALLS = 60
KILLS = 80
ENDS = ("before", "half", "after", "interrupted")
"""A kill in front of, halfway through or behind a write, or Ctrl-C in front of it."""

TOOLS = textwrap.dedent(
    """
    import os, trio
    from tool_bindings import ToolRegistry

    registry = ToolRegistry()

    def effect(n):
        # One byte for every time; a write of one byte is never torn.
        descriptor = os.open(f"effects/{n}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, b"x")
        os.close(descriptor)

    @registry.tool(concurrency_safe=True)
    async def save(n: int) -> int:
        "Have an effect that can be counted, and end out of order."
        effect(n)
        for _ in range(n * 7 % 5):
            await trio.lowlevel.checkpoint()
        return n

    @registry.tool
    async def alone(n: int) -> int:
        "Have an effect while nothing else runs."
        effect(n)
        return n
    """
)

HOST = textwrap.dedent(
    """
    # usage: host.py; reads lines of JSON: [folder, which write to die at or null, how, arguments]
    import json, os, signal, sys
    import codemode.cli.batch, tool_bindings.tools.catalogue
    from codemode.cli import script

    real_write, number = os.write, 0

    def lethal(at, how):
        def write(descriptor, data):
            global number
            if descriptor <= 2 or not os.path.isfile(f"/proc/self/fd/{descriptor}"):
                return real_write(descriptor, data)  # Not a file: trio wakes itself up by a socket.
            number += 1
            if number != at:
                return real_write(descriptor, data)
            if how == "interrupted":
                os.kill(os.getpid(), signal.SIGINT)
                return real_write(descriptor, data)
            if how != "before":
                real_write(descriptor, data[: len(data) // 2] if how == "half" else data)
            os.kill(os.getpid(), signal.SIGKILL)
        return write

    for line in sys.stdin:
        folder, at, how, arguments = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.write = lethal(at, how)
            sys.argv = ["codemode", *arguments]
            script()
        _, status = os.waitpid(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), number]), flush=True)
    """
)


class Host:
    """Runs the command in forks of one process that has imported it already."""

    def __init__(self, folder):
        (folder / "host.py").write_text(HOST)
        self.errors = folder / "host.err"
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(folder / "host.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, folder, *arguments, at=None, how=None):
        request = [str(folder), at, how, ["batch", "in.jsonl", "--tools", "tools.py:registry", *arguments]]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())[0]

    def close(self):
        self._process.communicate()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    host = Host(tmp_path_factory.mktemp("host"))
    yield host
    host.close()


def prepare(folder, calls):
    folder.mkdir()
    (folder / "effects").mkdir()
    (folder / "tools.py").write_text(TOOLS)
    lines = [
        json.dumps({"tool": "alone" if n % 11 == 3 else "save", "arguments": {"n": n}, "id": n})
        for n in range(calls)
    ]
    lines[5] = "this is no call"
    lines.insert(8, "")
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")


OUTPUT = ("--output", "out.jsonl", "--resume", "--tools", "none")


def check(folder, calls):
    """Check what is left of a batch that has come to its end; return the status of each record."""
    records = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    effects = {int(file.name): file.stat().st_size for file in (folder / "effects").iterdir()}
    # A record for each line, in order; line 9 is blank.
    assert [line for line in range(1, calls + 2) if line != 9] == [record["line"] for record in records]
    assert "BAD_LINE" == records[5]["error"]["code"]
    assert max(effects.values()) == 1
    for n, record in enumerate(records):
        if n == 5:
            continue
        assert n == record["id"]
        if record["status"] == "failed":
            # Stopped by a signal while it ran; what was only about to run is made by the next command.
            assert ("ABORTED", True) == (record["error"]["code"], record["executed"])
            assert n in effects
        elif record["status"] == "succeeded":
            assert (n, True) == (record["value"], bool(effects.get(n)))
        else:
            assert ("unknown", "TOOL_OUTCOME_UNKNOWN") == (record["status"], record["error"]["code"])
    assert not (folder / "out.jsonl.journal").exists()
    return [record["status"] for record in records]


def test_a_batch_killed_at_any_moment_makes_every_call_once_or_says_it_does_not_know(host, tmp_path):
    randomness = random.Random(20_260_301)
    ends, statuses = collections.Counter(), collections.Counter()
    for number in range(KILLS):
        folder = tmp_path / str(number)
        prepare(folder, CALLS)
        status = -9
        for last in (False, False, False, True):
            # Three writes for most calls: to the journal, the effect, and the output or the journal.
            at, how = randomness.randrange(1, 3 * CALLS), randomness.choice(ENDS)
            status = host.run(folder, *OUTPUT, at=None if last else at, how=how)
            ends[status] += 1
            if status == 1:
                break
        # The bad line is the least that went wrong.
        assert 1 == status, host.errors.read_text()
        found = collections.Counter(check(folder, CALLS))
        # At most what may run at a time is lost sight of by each of three kills.
        assert found["unknown"] <= 3 * 10
        statuses += found
    # The moments were spread over the batches, and so prove something.
    assert min(ends[-9], ends[130], ends[1]) > KILLS // 4
    assert min(statuses["unknown"], statuses["failed"]) > KILLS // 4


def test_ten_thousand_calls_killed_and_resumed_run_once_or_are_of_unknown_outcome(host, tmp_path):
    folder = tmp_path / "batch"
    prepare(folder, 10_000)
    randomness = random.Random(20_260_302)
    assert -9 == host.run(folder, *OUTPUT, at=randomness.randrange(5_000, 25_000), how="half")
    assert 1 == host.run(folder, *OUTPUT)
    assert check(folder, 10_000).count("unknown") <= 10
