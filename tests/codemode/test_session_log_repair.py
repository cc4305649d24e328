"""What opening a log does when the process that wrote it was cut off (spec: crash repair)."""

from __future__ import annotations

import json

import pytest

from codemode.session_events import APPEND
from codemode.session_log import SessionLog


def write_cut_off(path, *events):
    """Write events and leave the log as a killed process does: closed by nobody."""
    ticks = iter(range(1000, 9000, 10))
    log = SessionLog.open(path, clock=lambda: next(ticks))
    for event in events:
        log.append(*event)
    log.close()
    return path.read_bytes()


def asked(*call_ids):
    blocks = [{"type": "tool-call", "id": call_id, "name": "read", "arguments": "{}"} for call_id in call_ids]
    message = {"id": "a", "role": "assistant", "content": blocks}
    return ("assistant/message", {"turn": 0, "step": 0, "message": message}, APPEND)


def called(call_id):
    return ("tool/call", {"turn": 0, "step": 0, "callId": call_id, "name": "read", "arguments": "{}"})


BEGIN = [("turn/start", {"turn": 0}), ("step/start", {"turn": 0, "step": 0})]
NESTED = {
    "rootCallId": "c",
    "parentCallId": "c",
    "subCallId": "c:code:1",
    "name": "write",
    "arguments": {"file_path": "x"},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def appended(path, before):
    whole = path.read_bytes()
    assert whole.startswith(before), "repair must not touch what was recorded"
    return [json.loads(line) for line in whole[len(before) :].splitlines()]


def test_a_started_call_gets_an_unknown_outcome_and_an_unstarted_one_says_so(path):
    before = write_cut_off(path, *BEGIN, asked("a", "b", "c"), called("a"))
    with SessionLog.open(path) as log:
        assert 5 == log.repaired
    added = appended(path, before)
    assert ["tool/result", "tool/result", "tool/result", "step/end", "turn/end"] == [
        item["type"] for item in added
    ]
    assert [
        {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"},
        {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"},
        {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"},
    ] == [item["data"]["error"] for item in added[:3]]
    assert ["a", "b", "c"] == [item["data"]["message"]["source"]["callId"] for item in added[:3]]
    texts = [item["data"]["message"]["content"][0]["content"][0]["text"] for item in added[:3]]
    assert "outcome is unknown" in texts[0]
    assert "may be made again" in texts[1]
    assert {"kind": "interrupted"} == added[-1]["data"]["reason"]


def test_closers_have_the_time_of_the_last_event_and_the_next_seqs(path):
    before = write_cut_off(path, *BEGIN, called("c"))
    last = json.loads(before.splitlines()[-1])
    SessionLog.open(path).close()
    added = appended(path, before)
    assert {last["time"]} == {item["time"] for item in added}
    assert [last["seq"] + 1, last["seq"] + 2, last["seq"] + 3] == [item["seq"] for item in added]
    assert [last["seq"]] == added[0]["sourceEventSeqs"]


def test_a_nested_call_without_an_end_stays_as_it_is_and_its_receipt_is_unknown(path):
    before = write_cut_off(path, *BEGIN, called("c"), ("tool/code-dispatch-start", NESTED))
    with SessionLog.open(path) as log:
        (call,) = log.receipt("c")
    assert ("write", {"file_path": "x"}, "unknown") == (call.tool, call.arguments, call.status)
    assert "tool/code-dispatch" not in [item["type"] for item in appended(path, before)]


def test_an_open_turn_without_a_step_is_only_ended(path):
    before = write_cut_off(path, BEGIN[0])
    SessionLog.open(path).close()
    assert ["turn/end"] == [item["type"] for item in appended(path, before)]


def test_every_open_turn_is_closed(path):
    other = [("turn/start", {"turn": 1}), ("step/start", {"turn": 1, "step": 4})]
    before = write_cut_off(path, *BEGIN, *other)
    SessionLog.open(path).close()
    ends = [(item["type"], item["data"]["turn"]) for item in appended(path, before)]
    assert [("step/end", 0), ("turn/end", 0), ("step/end", 1), ("turn/end", 1)] == ends


def test_a_complete_log_is_not_repaired(path):
    before = write_cut_off(path, BEGIN[0], ("turn/end", {"turn": 0, "reason": {"kind": "completed"}}))
    with SessionLog.open(path) as log:
        assert 0 == log.repaired
    assert [] == appended(path, before)


def test_repairing_twice_adds_nothing_more(path):
    write_cut_off(path, *BEGIN, called("c"))
    SessionLog.open(path).close()
    once = path.read_bytes()
    with SessionLog.open(path) as log:
        assert 0 == log.repaired
    assert once == path.read_bytes()


def test_loading_repairs_in_memory_and_leaves_the_file_alone(path):
    before = write_cut_off(path, *BEGIN, called("c"))
    loaded = SessionLog.load(path)
    assert 3 == loaded.repaired
    assert before == path.read_bytes()
    SessionLog.open(path).close()
    assert loaded.replay() == SessionLog.load(path).replay()


def test_cutting_the_file_at_any_byte_leaves_a_log_that_opens_and_is_complete(tmp_path):
    source = tmp_path / "source.jsonl"
    done = {**NESTED, "isError": False, "content": [{"type": "text", "text": "ok"}]}
    nested = [("tool/code-dispatch-start", NESTED), ("tool/code-dispatch", done)]
    whole = write_cut_off(source, *BEGIN, asked("c"), called("c"), *nested)
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole)):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(whole[:size])
        SessionLog.open(path).close()
        with SessionLog.open(path) as log:
            assert 0 == log.repaired
        path.unlink()
