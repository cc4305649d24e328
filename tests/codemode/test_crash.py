"""A host killed in mid-run leaves a log that opens, repairs itself, and agrees with what is on disk."""

from __future__ import annotations

import functools
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import trio

from codemode import SessionLog

KILLS = 50
AT_ONCE = 3
CALLS = 2000
"""More than a host comes to before it is killed, however late the killer sees its chance."""
LINES = 240
"""How many lines of its log a host is given at most."""
HOST = textwrap.dedent(
    """
    import sys, trio
    from pathlib import Path
    from codemode import SessionLog, open_service
    from tool_bindings import ToolRegistry

    folder = Path(sys.argv[1])
    registry = ToolRegistry()

    @registry.tool
    async def save(n: int) -> int:
        (folder / f"{n}.txt").write_text("x" * n)
        return n

    async def main():
        with SessionLog.open(folder / "events.jsonl") as log:
            async with open_service(registry, session_log=log) as service:
                print("ready", flush=True)
                await service.run_code("for n in range(CALLS):\\n    await tools.save(n=n)")

    trio.run(main)
    """
).replace("CALLS", str(CALLS))


async def test_every_log_of_a_killed_host_opens_and_its_receipt_agrees_with_the_files(tmp_path):
    randomness = random.Random(20_260_101)
    script = tmp_path / "host.py"
    script.write_text(HOST)
    places = trio.CapacityLimiter(AT_ONCE)
    checked = []

    async def one(number: int, lines: int):
        async with places:
            folder = tmp_path / str(number)
            folder.mkdir()
            await kill_after_lines(script, folder, lines)
            checked.append(agreement(folder))

    async with trio.open_nursery() as nursery:
        for number in range(KILLS):
            nursery.start_soon(one, number, randomness.randrange(1, LINES))
    assert len(checked) == KILLS
    # The kills were spread over the run, and so prove something.
    assert len({calls for calls, _ in checked}) > KILLS // 4
    assert any(unknown for _, unknown in checked)


async def kill_after_lines(script: Path, folder: Path, lines: int) -> None:
    log = folder / "events.jsonl"
    async with trio.open_nursery() as nursery:
        start = functools.partial(
            trio.run_process,
            [sys.executable, str(script), str(folder)],
            stdout=subprocess.PIPE,
            check=False,
        )
        process = await nursery.start(start)
        # Watching the file is how the kill finds its place; there is no event to wait for outside the host.
        while process.poll() is None and (  # noqa: ASYNC110  # see above
            not log.exists() or log.read_bytes().count(b"\n") < lines
        ):
            await trio.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)


def agreement(folder: Path) -> tuple[int, int]:
    """Check one log against the disk; returns how many calls it knows, and how many of unknown end."""
    path = folder / "events.jsonl"
    events = list(SessionLog.load(path).events())
    call_ids = [event["data"]["callId"] for event in events if event["type"] == "tool/call"]
    requests = [event for event in events if event["type"] == "assistant/message"]
    records = SessionLog.load(path).receipt(call_ids[0]) if call_ids else ()
    on_disk = {int(file.stem): len(file.read_text()) for file in folder.glob("*.txt")}
    known = {record.arguments["n"]: record.status for record in records}
    for n, status in known.items():
        assert status in {"succeeded", "unknown"}
        if status == "succeeded":
            assert n == on_disk.get(n)
    # Nothing happened that the log does not know of: a start is recorded before its body runs.
    assert set(on_disk) <= set(known)
    with SessionLog.open(path) as reopened:
        results = reopened.replay().results
        # Every request has a result, also the one whose call was never recorded.
        assert len(results) == len(requests)
    return len(known), sum(status == "unknown" for status in known.values())
