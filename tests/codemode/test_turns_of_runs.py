"""When the events around a run are written: the turn is there before anything is asked or called in it."""

from __future__ import annotations

import errno
import json
import re

import pytest

from codemode import SessionLog, open_service, session_file
from codemode.session_events import SessionLogError
from sandbox.values import thaw
from tool_bindings import ToolRegistry, ToolRunContext

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


@pytest.mark.parametrize("how", ["run", "call"])
@pytest.mark.parametrize(
    ("problem", "context"), [("no valid `data.id`", {"role": "user"}), ("it is no object", "text")]
)
async def test_a_message_of_another_shape_is_left_out_and_the_turn_is_closed(how, problem, context, caplog):
    registry = ToolRegistry()

    @registry.tool
    async def odd(run: ToolRunContext) -> int:
        run.defer_context(context)
        return 1

    with SessionLog.in_memory() as log:
        async with open_service(registry, session_log=log) as service:
            if how == "run":
                assert 1 == (await service.run_code("return await tools.odd()")).result
            else:
                assert 1 == (await service.call("odd", {})).value
        types = [event["type"] for event in log.events()]
    assert ["tool/result", "step/end", "turn/end"] == types[-3:]
    assert "added no user message to the conversation: " in caplog.text
    assert problem in caplog.text


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


async def test_events_written_together_are_the_ones_that_are_written_one_by_one(tmp_path):
    """A log that only writes takes a short cut; a listener beside it does not allow that."""

    def shown(events):
        # Ids and times differ from run to run.
        return [
            re.sub(r"run-[0-9a-f]{16}", "run-x", json.dumps(thaw({**event, "time": 0}))) for event in events
        ]

    async def recorded(name, listener):
        with SessionLog.open(tmp_path / name) as log:
            async with open_service(ToolRegistry(), session_log=log, on_event=listener) as service:
                await service.run_code("return 1")
                await service.run_code("raise ValueError")
            # Reading judges form and order of every event.
            return shown(list(log.events())[1:])

    assert await recorded("a", lambda event: None) == await recorded("b", None)


async def test_what_cannot_be_written_together_is_stated_as_lost(tmp_path, monkeypatch):
    with SessionLog.open(tmp_path / "log") as log:
        async with open_service(ToolRegistry(), session_log=log) as service:
            with monkeypatch.context() as full:
                full.setattr(session_file.os, "write", _no_space)
                assert (await service.run_code("return 1")).ok
            assert (await service.run_code("return 2")).ok
        # Four events open a turn and three close it.
        assert [7] == [event["data"]["count"] for event in log.events() if event["type"] == "session/loss"]


def _no_space(descriptor, data):
    raise OSError(errno.ENOSPC, "No space left on device")
