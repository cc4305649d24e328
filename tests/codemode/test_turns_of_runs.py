"""When the events around a run are written: the turn is there before anything is asked or called in it."""

from __future__ import annotations

import pytest

from codemode import SessionLog, open_service
from codemode.session_events import SessionLogError
from tool_bindings import ToolRegistry

pytestmark = pytest.mark.needs_linux
BEGINNING = ["turn/start", "step/start", "assistant/message", "tool/call"]


async def test_the_turn_is_recorded_before_the_first_call_of_the_program():
    registry = ToolRegistry()

    @registry.tool
    async def look() -> int:
        return len(events)

    events = []
    async with open_service(registry, on_event=events.append) as service:
        outcome = await service.run_code("return await tools.look()")
    # The call's own start is the fifth.
    assert (True, 5) == (outcome.ok, outcome.result)
    assert BEGINNING == [event["type"] for event in events[:4]]


async def test_the_turn_is_recorded_before_a_policy_is_asked():
    registry = ToolRegistry()
    seen = []

    async def listener(dispatch, proceed):
        seen.append([event["type"] for event in events])
        return await proceed()

    registry.on_pre_execute(listener)
    events = []
    async with open_service(registry, on_event=events.append) as service:
        assert (await service.run_code("return 1")).ok
    assert [BEGINNING] == seen


async def test_a_turn_that_cannot_be_recorded_fails_the_run_and_leaves_the_service_usable():
    log = SessionLog.in_memory()
    async with open_service(ToolRegistry(), session_log=log) as service:
        assert (await service.run_code("return 1")).ok
        log.close()
        with pytest.raises(SessionLogError, match="closed"):
            await service.run_code("return 1")
        assert 0 == service.statistics().running


async def test_a_run_that_never_started_has_a_turn_all_the_same():
    events = []
    async with open_service(ToolRegistry(), on_event=events.append) as service:
        outcome = await service.run_code("x" * 2_000_000)
    assert "policy" == outcome.failure.kind
    assert [*BEGINNING, "tool/result", "step/end", "turn/end"] == [event["type"] for event in events]
