"""The order rules of a session log (spec: turns and steps, calls and results, nested pairs)."""

from __future__ import annotations

import pytest

from codemode.session_events import APPEND, SessionOrderError
from codemode.session_log import SessionLog


def turn_start(turn=0):
    return ("turn/start", {"turn": turn})


def turn_end(turn=0):
    return ("turn/end", {"turn": turn, "reason": {"kind": "completed"}})


def step_start(step=0, turn=0):
    return ("step/start", {"turn": turn, "step": step})


def step_end(step=0, turn=0):
    return ("step/end", {"turn": turn, "step": step})


def call(call_id="c", turn=0, step=0):
    return (
        "tool/call",
        {"turn": turn, "step": step, "callId": call_id, "name": "run_code", "arguments": "{}"},
    )


def result(source, call_id="c", turn=0, step=0):
    block = {"type": "tool-result", "toolCallId": call_id, "content": [], "isError": False}
    message = {"id": "r", "role": "user", "source": {"kind": "tool", "callId": call_id}, "content": [block]}
    return ("tool/result", {"turn": turn, "step": step, "message": message}, APPEND, [source])


def start(sub="c:code:1", root="c", parent="c"):
    data = {"rootCallId": root, "parentCallId": parent, "subCallId": sub, "name": "read", "arguments": {}}
    return ("tool/code-dispatch-start", data)


def end(sub="c:code:1", root="c", parent="c", name="read"):
    data = {"rootCallId": root, "parentCallId": parent, "subCallId": sub, "name": name, "arguments": {}}
    return ("tool/code-dispatch", {**data, "isError": False, "content": []})


OPEN = [turn_start(), step_start(), call()]
"""Three events after the header: the call has seq 3."""


@pytest.mark.parametrize(
    ("before", "refused", "message"),
    [
        pytest.param([], step_start(), "turn 0, which is not open", id="step outside a turn"),
        pytest.param([], turn_end(), "turn 0, which is not open", id="end without start"),
        pytest.param([turn_start(3)], turn_start(3), "turn numbers only grow", id="turn twice"),
        pytest.param([turn_start()], call(), "step 0 of turn 0, which is not open", id="call outside a step"),
        pytest.param([turn_start(), step_start()], step_start(1), "while step 0 is open", id="two steps"),
        pytest.param(
            [turn_start(), step_start(1), step_end(1)], step_start(1), "after step 1", id="step twice"
        ),
        pytest.param(
            [turn_start(), step_start()], turn_end(), "while its step 0 is open", id="turn ends in a step"
        ),
        pytest.param(OPEN, step_end(), "without a result of 'c'", id="step ends with a call open"),
        pytest.param(OPEN, call(), "starts again before its result", id="call twice"),
        pytest.param(OPEN, result(3, "other"), "not waiting for one", id="result of no call"),
        pytest.param(OPEN, result(2), "must cite seq 3", id="result citing something else"),
        pytest.param([], start(), "outside its root call 'c'", id="nested outside a turn"),
        pytest.param(
            [turn_start(), step_start()], start(), "outside its root call", id="nested without its call"
        ),
        pytest.param([*OPEN, result(3)], start(), "outside its root call", id="nested after the result"),
        pytest.param(OPEN, start(sub=""), "data.subCallId", id="empty id"),
        pytest.param(OPEN, start(root=""), "data.rootCallId", id="empty root"),
        pytest.param(OPEN, start(parent=""), "data.parentCallId", id="empty parent"),
        pytest.param(OPEN, start(parent="x"), "the parent 'x', unknown", id="unknown parent"),
        pytest.param([*OPEN, start()], start(), "starts a second time", id="started twice"),
        pytest.param([*OPEN, start(), end()], start(), "starts a second time", id="started after its end"),
        pytest.param(OPEN, end(), "without having started", id="end without start of nested"),
        pytest.param([*OPEN, start(), end()], end(), "without having started", id="ended twice"),
        pytest.param([*OPEN, start()], end(root="other"), "under root 'other'", id="root changes"),
        pytest.param([*OPEN, start()], end(name="write"), "another parent or name", id="name changes"),
    ],
)
def test_an_event_that_cannot_stand_there_is_refused_and_not_recorded(before, refused, message):
    log = SessionLog.in_memory()
    for event in before:
        log.append(*event)
    with pytest.raises(SessionOrderError, match=message):
        log.append(*refused)
    assert 1 + len(before) == len(list(log.events()))


def test_a_nested_call_may_have_nested_calls_of_its_own():
    log = SessionLog.in_memory()
    deeper = {"sub": "c:code:1:code:1", "parent": "c:code:1"}
    for event in [*OPEN, start(), start(**deeper), end(**deeper), end(), result(3), step_end(), turn_end()]:
        log.append(*event)
    assert 11 == len(list(log.events()))


def test_nested_calls_may_end_in_another_order_than_they_started():
    log = SessionLog.in_memory()
    for event in [*OPEN, start("c:code:1"), start("c:code:2"), end("c:code:2"), end("c:code:1"), result(3)]:
        log.append(*event)
    assert ["succeeded", "succeeded"] == [item.status for item in log.receipt("c")]


def test_several_calls_may_be_open_before_the_first_result():
    log = SessionLog.in_memory()
    for event in [*OPEN, call("d"), result(3), result(4, "d"), step_end(), turn_end()]:
        log.append(*event)
    assert 9 == len(list(log.events()))


def test_turns_of_programs_that_run_at_the_same_time_may_overlap():
    log = SessionLog.in_memory()
    for event in [
        *OPEN,
        turn_start(1),
        step_start(turn=1),
        call("d", turn=1),
        start(),
        start("d:code:1", "d", "d"),
    ]:
        log.append(*event)
    for event in [
        result(6, "d", turn=1),
        step_end(turn=1),
        turn_end(1),
        end(),
        result(3),
        step_end(),
        turn_end(),
    ]:
        log.append(*event)
    assert 2 == log.next_turn


def test_a_call_id_may_be_used_again_in_a_later_turn():
    log = SessionLog.in_memory()
    for event in [*OPEN, start(), end(), result(3), step_end(), turn_end()]:
        log.append(*event)
    for event in [turn_start(1), step_start(turn=1), call(turn=1), start()]:
        log.append(*event)
    assert ["unknown"] == [item.status for item in log.receipt("c")]
