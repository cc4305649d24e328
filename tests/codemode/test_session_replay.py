"""What is derived from a log agrees with what the run itself said."""

from __future__ import annotations

import threading

import pytest
import trio

from codemode import Settings, open_service
from codemode.session_log import SessionLog
from codemode.terminal import Paint
from codemode.timeline import Timeline
from codemode.timeline_page import TimelinePage
from tool_bindings import AbortSignal, ToolRegistry

pytestmark = pytest.mark.needs_linux

CODE = """
await tools.note(text="kept")
try:
    await tools.refuse()
except ToolCallError:
    pass
await tools.block()
"""


@pytest.fixture
def release():
    """Give an event that lets the blocked thread go, at the end at the latest."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


@pytest.fixture
async def outcome(release, path):
    """Give a run that was stopped while a thread ran, which was then abandoned."""
    registry, abort = ToolRegistry(), AbortSignal()
    begun = trio.Event()
    token = trio.lowlevel.current_trio_token()

    @registry.tool
    async def note(text: str) -> str:
        return text

    @registry.tool
    async def refuse() -> None:
        raise ValueError("not today")

    @registry.tool
    def block() -> None:
        token.run_sync_soon(begun.set)
        release.wait()

    async def stop():
        await begun.wait()
        abort.abort("enough")

    settings = Settings(grace_seconds=0.05)
    with SessionLog.open(path) as log:
        async with (
            open_service(registry, settings=settings, session_log=log) as service,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(stop)
            return await service.run_code(CODE, abort=abort)


def told(calls):
    return [
        (call.id, call.tool, call.arguments, call.status, call.executed, call.error_message, call.error_code)
        for call in calls
    ]


async def test_the_receipt_of_the_log_is_the_runs_own_after_an_abandoned_thread(outcome, path):
    assert ["succeeded", "failed", "unknown"] == [call.status for call in outcome.calls]
    assert told(outcome.calls) == told(SessionLog.load(path).receipt(outcome.run_id))


async def test_both_views_call_it_unknown(outcome, path):
    lines = [
        (path, number, line) for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1)
    ]
    text = list(Timeline(Paint(enabled=False), 200).render(lines))
    assert ["ok", "failed", "unknown"] == [line.split()[5] for line in text if line.startswith("    +")]
    page = "\n".join(TimelinePage().render(lines))
    assert 1 == page.count('<span class="unknown">unknown</span><code>block')
