"""Damaged logs: whatever the bytes are, reading ends in events or in one of our errors."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.session_events import APPEND, EVENT_TYPES, SessionLogError, problem_with
from codemode.session_file import read_lines
from codemode.session_log import SessionLog
from codemode.terminal import Paint
from codemode.timeline import Timeline


def write_log(path):
    """Write one run with an event of every kind that matters."""
    step = {"turn": 0, "step": 0}
    with SessionLog.open(path) as log:
        log.append("turn/start", {"turn": 0})
        text = [{"type": "text", "text": "hello"}]
        user = {"id": "u", "role": "user", "content": text, "source": {"kind": "user"}}
        log.append("user/message", user, APPEND)
        log.append("step/start", step)
        asked = [*text, {"type": "tool-call", "id": "c", "name": "run_code", "arguments": '{"code": "x"}'}]
        message = {"id": "a", "role": "assistant", "content": asked}
        log.append("assistant/message", {**step, "message": message}, APPEND)
        arguments = '{"code": "x"}'
        call = log.append("tool/call", {**step, "callId": "c", "name": "run_code", "arguments": arguments})
        nested = {"rootCallId": "c", "parentCallId": "c", "subCallId": "c:code:1", "name": "read"}
        nested["arguments"] = {"file_path": "a"}
        log.append("tool/code-dispatch-start", nested)
        log.append("tool/code-dispatch", {**nested, "isError": False, "content": text})
        block = {"type": "tool-result", "toolCallId": "c", "content": text, "isError": False}
        source = {"kind": "tool", "callId": "c"}
        result = {"id": "r", "role": "user", "source": source, "content": [block]}
        log.append("tool/result", {**step, "message": result}, APPEND, [call["seq"]])
        log.append("step/end", step)
        log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})
    return path.read_bytes()


def read_every_way(path):
    try:
        log = SessionLog.load(path)
        log.replay()
        log.receipt("c")
    except SessionLogError:
        pass
    try:
        for line in Timeline(Paint(enabled=False), 80).render(read_lines(path)):
            line.encode()
            assert line.isprintable()
    except SessionLogError:
        pass


def test_bytes_changed_at_random_never_end_in_another_error(tmp_path):
    path = tmp_path / "events.jsonl"
    whole = write_log(path)
    chance = random.Random(20)
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            position = chance.randrange(len(data))
            data[position : position + chance.randint(0, 6)] = bytes(
                chance.choice(b'{}[]":,0123456789ntfe\\\n\xff') for _ in range(chance.randint(0, 6))
            )
        path.write_bytes(bytes(data))
        read_every_way(path)


def test_lines_lost_doubled_and_swapped_never_end_in_another_error(tmp_path):
    path = tmp_path / "events.jsonl"
    lines = write_log(path).splitlines(keepends=True)
    chance = random.Random(21)
    for _ in range(300):
        path.write_bytes(b"".join(chance.choices(lines, k=chance.randint(1, 14))))
        read_every_way(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_any_json_is_an_event_or_has_a_problem(value):
    assert isinstance(problem_with(value), str)


@given(st.data())
@settings(max_examples=300)
def test_any_value_in_any_field_is_judged_without_raising(data):
    name = data.draw(st.sampled_from(sorted(EVENT_TYPES)))
    kind = EVENT_TYPES[name]
    fields = {key: data.draw(JSON) for key in [*kind.required, *kind.optional]}
    record = {"type": name, "seq": 1, "time": 1, "data": fields, "surfaceOp": data.draw(JSON)}
    problem = problem_with(record)
    assert problem is None or name in problem or "format version" in problem


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_deep_nesting_in_a_record_is_read(tmp_path, depth):
    path = tmp_path / "events.jsonl"
    SessionLog.open(path).close()
    deep = "[" * depth + "]" * depth
    with path.open("a") as stream:
        stream.write('{"type": "todo/write", "seq": 1, "time": 0, "data": {"todos": ' + deep + "}}\n")
    assert ["session/header", "todo/write"] == [event["type"] for event in SessionLog.load(path).events()]


def test_a_huge_number_in_a_record_is_read(tmp_path):
    path = tmp_path / "events.jsonl"
    write_log(path)
    lines = path.read_text().splitlines(keepends=True)
    lines[6] = lines[6].replace('{"file_path":"a"}', '{"n":' + "9" * 6000 + "}")
    lines[7] = lines[7].replace('{"file_path":"a"}', '{"n":' + "9" * 6000 + "}")
    path.write_text("".join(lines))
    assert json.loads(lines[0])["seq"] == 0
    text = list(Timeline(Paint(enabled=False), 80).render(read_lines(path)))
    assert any("n=99999" in line for line in text)
    (call,) = SessionLog.load(path).receipt("c")
    assert "read" == call.tool
