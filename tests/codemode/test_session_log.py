"""The session log: what it accepts, what survives, what it says about what did not."""

from __future__ import annotations

import errno
import json
import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemode.session_events import (
    APPEND,
    SessionFileError,
    SessionFormatError,
    SessionLogError,
    SessionOrderError,
)
from codemode.session_log import SessionLog
from sandbox.values import NotJsonError


def result_data(call_id, text="done", *, turn=0, step=0, is_error=False, **more):
    return {
        "turn": turn,
        "step": step,
        "message": {
            "id": f"{call_id}:result",
            "role": "user",
            "source": {"kind": "tool", "callId": call_id},
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": call_id,
                    "content": [{"type": "text", "text": text}],
                    "isError": is_error,
                }
            ],
        },
        **more,
    }


def dispatch_data(sub_id, root="call-1", parent=None, **more):
    return {
        "rootCallId": root,
        "parentCallId": parent or root,
        "subCallId": sub_id,
        "name": "read",
        "arguments": {"file_path": "a.txt"},
        **more,
    }


def settled(sub_id, text="text", *, is_error=False, **more):
    return dispatch_data(sub_id, isError=is_error, content=[{"type": "text", "text": text}], **more)


def begin_call(log, call_id="call-1", turn=0):
    log.append("turn/start", {"turn": turn})
    log.append("step/start", {"turn": turn, "step": 0})
    return log.append(
        "tool/call", {"turn": turn, "step": 0, "callId": call_id, "name": "run_code", "arguments": "{}"}
    )


def end_call(log, call, text="done"):
    turn, call_id = call["data"]["turn"], call["data"]["callId"]
    log.append("tool/result", result_data(call_id, text, turn=turn), APPEND, [call["seq"]])
    log.append("step/end", {"turn": turn, "step": 0})
    log.append("turn/end", {"turn": turn, "reason": {"kind": "completed"}})


def whole_run(log, call_id="call-1", turn=0):
    call = begin_call(log, call_id, turn)
    log.append("tool/code-dispatch-start", dispatch_data(f"{call_id}:code:1", root=call_id))
    log.append("tool/code-dispatch", settled(f"{call_id}:code:1", root=call_id))
    end_call(log, call)


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


# --- the file ---


def test_every_line_is_an_event_in_the_envelope_with_contiguous_seq_from_zero(path):
    with SessionLog.open(path) as log:
        whole_run(log)
    lines = records(path)
    assert list(range(len(lines))) == [line["seq"] for line in lines]
    assert all({"type", "seq", "time", "data"} <= set(line) for line in lines)
    assert "session/header" == lines[0]["type"]
    assert 0 == lines[0]["data"]["version"]


def test_a_new_log_is_private_to_its_owner(path):
    SessionLog.open(path).close()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_a_link_is_refused_and_its_target_left_alone(path, tmp_path):
    target = tmp_path / "target"
    path.symlink_to(target)
    with pytest.raises(SessionFileError, match="it is a symbolic link"):
        SessionLog.open(path)
    assert not target.exists()


@pytest.mark.parametrize("name", ["missing/e.jsonl", "."])
def test_a_path_that_cannot_be_a_file_is_refused_with_its_reason(tmp_path, name):
    with pytest.raises(SessionFileError, match=r"does not exist|Is a directory"):
        SessionLog.open(tmp_path / name)


def test_a_named_pipe_is_refused_without_waiting_for_a_reader(path):
    os.mkfifo(path)
    with pytest.raises(SessionFileError, match="not a regular file"):
        SessionLog.open(path)
    with pytest.raises(SessionFileError, match="not a regular file"):
        SessionLog.load(path)


def test_a_second_writer_is_refused_while_the_first_is_open(path):
    with SessionLog.open(path), pytest.raises(SessionFileError, match="being written by another run"):
        SessionLog.open(path)
    SessionLog.open(path).close()


def test_a_file_that_is_no_log_is_refused_and_left_as_it_was(path):
    path.write_text("# My notes\n", encoding="utf-8")
    with pytest.raises(SessionFormatError, match="line 1: not a JSON record"):
        SessionLog.open(path)
    assert "# My notes\n" == path.read_text(encoding="utf-8")


def test_a_file_without_any_line_end_is_never_cut(path):
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(SessionFormatError, match="no complete event"):
        SessionLog.open(path)
    assert "precious" == path.read_text(encoding="utf-8")


def test_an_empty_file_becomes_a_log(path):
    path.touch()
    with SessionLog.open(path) as log:
        whole_run(log)
    assert "session/header" == records(path)[0]["type"]


def test_a_log_continues_where_it_ended(path):
    with SessionLog.open(path) as log:
        whole_run(log)
        first_id = log.id
    with SessionLog.open(path) as log:
        assert 1 == log.next_turn
        whole_run(log, "call-2", turn=log.next_turn)
        assert first_id == log.id
        assert 0 == log.repaired
    assert list(range(17)) == [line["seq"] for line in records(path)]


def test_the_line_is_in_the_file_when_append_returns(path):
    with SessionLog.open(path) as log:
        event = log.append("turn/start", {"turn": 0})
        assert event == records(path)[-1]


def test_lone_surrogates_and_huge_numbers_survive_the_file(path):
    arguments = {"text": "\ud800", "number": 10**5000, "zero": -0.0}
    with SessionLog.open(path) as log:
        begin_call(log)
        log.append("tool/code-dispatch-start", {**dispatch_data("call-1:code:1"), "arguments": arguments})
    kept = list(SessionLog.load(path).events())[4]["data"]["arguments"]
    assert arguments == kept
    assert "-0.0" == repr(kept["zero"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_recorded_reads_back_as_it_was(tmp_path, recorded):
    path = tmp_path / "property.jsonl"
    path.unlink(missing_ok=True)
    with SessionLog.open(path) as log:
        live = [log.append("todo/write", {"todos": [item]}) for item in recorded]
    assert repr(live) == repr(list(SessionLog.load(path).events())[1:])


# --- what append refuses ---


def test_an_event_is_detached_from_the_data_it_was_made_of():
    log = SessionLog.in_memory()
    data = {"turn": 0, "extra": {"list": [1]}}
    event = log.append("turn/start", data)
    data["extra"]["list"].append(2)
    assert [1] == event["data"]["extra"]["list"]
    with pytest.raises(TypeError, match="read-only"):
        event["data"]["extra"]["list"].append(3)


def test_data_that_is_not_json_is_refused_with_its_path():
    log = SessionLog.in_memory()
    with pytest.raises(NotJsonError, match=r"event\.data\.extra"):
        log.append("turn/start", {"turn": 0, "extra": {1, 2}})
    assert 1 == len(list(log.events()))


@pytest.mark.parametrize(
    ("name", "data", "surface_op", "message"),
    [
        ("turn/began", {}, None, "unknown type 'turn/began'"),
        ("turn/start", {}, None, "no valid `data.turn`"),
        ("turn/start", {"turn": True}, None, "no valid `data.turn`"),
        ("turn/start", {"turn": 0}, APPEND, "carries surface fields"),
        (
            "user/message",
            {"id": "m", "role": "user", "content": [], "source": {"kind": "user"}},
            None,
            "surfaceOp",
        ),
        (
            "tool/call",
            {"turn": 0, "step": 0, "callId": "", "name": "x", "arguments": "{}"},
            None,
            "data.callId",
        ),
        (
            "tool/call",
            {"turn": 0, "step": 0, "callId": "c", "name": "x", "arguments": {}},
            None,
            "data.arguments",
        ),
    ],
)
def test_a_malformed_event_is_refused_and_nothing_is_recorded(name, data, surface_op, message):
    log = SessionLog.in_memory()
    with pytest.raises(SessionOrderError, match=message):
        log.append(name, data, surface_op)
    assert ["session/header"] == [event["type"] for event in log.events()]


def test_a_closed_log_and_a_loaded_one_refuse_to_append(path):
    with SessionLog.open(path) as log:
        pass
    for closed in (log, SessionLog.load(path)):
        with pytest.raises(SessionLogError, match="open it to append"):
            closed.append("turn/start", {"turn": 0})


# --- observers ---


def test_observers_get_the_event_that_was_recorded_until_removed():
    log = SessionLog.in_memory()
    seen = []
    remove = log.subscribe(seen.append)
    event = log.append("turn/start", {"turn": 0})
    remove()
    log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})
    assert [event] == seen


def test_a_failing_observer_disturbs_neither_the_log_nor_the_others(caplog):
    log = SessionLog.in_memory()
    seen = []
    log.subscribe(lambda event: 1 / 0)
    log.subscribe(seen.append)
    log.append("turn/start", {"turn": 0})
    assert 1 == len(seen)
    assert "an observer of the session log failed" in caplog.text


def test_an_observer_cannot_append(caplog):
    log = SessionLog.in_memory()
    refused = []

    def observer(event):
        try:
            log.append("turn/start", {"turn": 7})
        except SessionLogError as error:
            refused.append(str(error))

    log.subscribe(observer)
    log.append("turn/start", {"turn": 0})
    assert ["an observer of a session log cannot append to it; do it after the event"] == refused
    assert 2 == len(list(log.events()))


# --- a disk that is full ---


class FullDisk:
    """Makes `os.write` on one file fail after so many more bytes, as a full disk does."""

    def __init__(self, monkeypatch, path):
        self.room = None
        self._path = path
        self._write = os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, descriptor, data):
        if self.room is not None and os.path.samestat(os.fstat(descriptor), self._path.stat()):
            if self.room == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = bytes(data)[: self.room]
            self.room -= len(data)
        return self._write(descriptor, data)


def test_a_full_disk_does_not_reach_the_run_and_the_loss_is_stated(path, monkeypatch):
    disk = FullDisk(monkeypatch, path)
    log = SessionLog.open(path)
    call = begin_call(log)
    disk.room = 10
    log.append("tool/code-dispatch-start", dispatch_data("call-1:code:1"))
    log.append("tool/code-dispatch", settled("call-1:code:1"))
    assert ["2 events are missing from seq 4 on: No space left on device"] == [
        str(loss) for loss in log.losses
    ]
    assert 4 == len(records(path))

    disk.room = None
    end_call(log, call)
    log.close()
    lines = records(path)
    assert {"firstSeq": 4, "count": 2, "reason": "No space left on device"} == lines[4]["data"]
    assert ["session/loss", "tool/result", "step/end", "turn/end"] == [line["type"] for line in lines[4:]]

    loaded = SessionLog.load(path)
    assert log.losses == loaded.losses
    assert 1 == len(loaded.replay().messages)


def test_a_disk_that_stays_full_leaves_a_log_that_still_opens(path, monkeypatch):
    disk = FullDisk(monkeypatch, path)
    log = SessionLog.open(path)
    begin_call(log)
    disk.room = 0
    log.append("tool/code-dispatch-start", dispatch_data("call-1:code:1"))
    log.close()
    disk.room = None
    with SessionLog.open(path) as again:
        assert 3 == again.repaired


def test_a_new_log_on_a_full_disk_is_refused_before_the_run(path, monkeypatch):
    path.touch()
    FullDisk(monkeypatch, path).room = 5
    with pytest.raises(SessionFileError, match="No space left on device"):
        SessionLog.open(path)
    assert 0 == path.stat().st_size


# --- a torn last line ---


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_last_line_is_cut_off_and_stated(path, cut):
    with SessionLog.open(path) as log:
        whole_run(log)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    loaded = SessionLog.load(path)
    assert 1 == len(loaded.losses)
    assert whole[:-cut] == path.read_bytes()

    with SessionLog.open(path) as log:
        assert loaded.losses == log.losses
        assert "the last line broke off" in log.losses[0].reason
        whole_run(log, "call-2", turn=log.next_turn)
    assert list(SessionLog.load(path).events()) == records(path)


def test_zeros_at_the_end_left_by_a_power_cut_count_as_a_torn_line(path):
    with SessionLog.open(path) as log:
        whole_run(log)
    with path.open("ab") as stream:
        stream.write(b"\0" * 5000)
    with SessionLog.open(path) as log:
        assert "broke off after 5000 bytes" in log.losses[0].reason
    assert 10 == len(records(path))


# --- what load refuses ---


def edited(path, change):
    with SessionLog.open(path) as log:
        whole_run(log)
    lines = records(path)
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[0]["data"].update(version=1), "line 1: .*format version 1"),
        (lambda lines: lines[1].update(type="turn/begin"), "line 2: .*unknown type"),
        (lambda lines: lines[1].update(note="x"), "line 2: .*keys an event does not have: 'note'"),
        (lambda lines: lines[2].update(seq=7), "line 3: seq 7 follows seq 1"),
        (lambda lines: lines.pop(3), "line 4: seq 4 follows seq 2"),
        (lambda lines: lines.pop(0), "line 1: .*does not begin with a session/header"),
        (lambda lines: lines[1].update(time=1.5), "line 2: .*no valid `time`"),
        (lambda lines: lines[6].pop("surfaceOp"), "line 7: .*surfaceOp"),
        (lambda lines: lines[6].update(sourceEventSeqs=[99]), "line 7: .*earlier seqs"),
        (lambda lines: lines[6]["data"]["message"].update(content=[]), "line 7: .*data.message"),
        (lambda lines: lines[1].update(ignorable=False), "line 2: .*ignorable"),
    ],
)
def test_a_log_with_a_wrong_record_is_refused_with_its_line(path, change, message):
    edited(path, change)
    with pytest.raises(SessionFormatError, match=message):
        SessionLog.load(path)
    with pytest.raises(SessionFormatError, match=message):
        SessionLog.open(path)


def test_an_unknown_type_marked_ignorable_is_carried_along(path):
    edited(
        path,
        lambda lines: lines.append({"type": "x/new", "seq": 9, "time": 0, "data": {}, "ignorable": True}),
    )
    assert "x/new" == list(SessionLog.load(path).events())[-1]["type"]


def test_a_header_of_another_session_in_the_middle_is_refused(path):
    def splice(lines):
        lines.append({**lines[0], "seq": 9, "data": {**lines[0]["data"], "id": "other"}})

    edited(path, splice)
    with pytest.raises(SessionFormatError, match="line 10: a header of session 'other'"):
        SessionLog.load(path)


# --- replay and receipts ---


def test_replay_rebuilds_messages_and_results_byte_for_byte(path):
    with SessionLog.open(path) as log:
        log.append("turn/start", {"turn": 0})
        log.append(
            "user/message",
            {
                "id": "m1",
                "role": "user",
                "content": [{"type": "text", "text": "hi"}],
                "source": {"kind": "user"},
            },
            APPEND,
        )
        log.append("step/start", {"turn": 0, "step": 0})
        block = {"type": "tool-call", "id": "c", "name": "read", "arguments": '{"file_path": "a"}'}
        log.append(
            "assistant/message",
            {"turn": 0, "step": 0, "message": {"id": "m2", "role": "assistant", "content": [block]}},
            APPEND,
        )
        call = log.append(
            "tool/call",
            {"turn": 0, "step": 0, "callId": "c", "name": "read", "arguments": '{"file_path": "a"}'},
        )
        failed = result_data(
            "c", "Error: no", is_error=True, error={"name": "FsError", "code": "FS_IO_ERROR"}, meta=[1]
        )
        log.append("tool/result", failed, APPEND, [call["seq"]])
        log.append(
            "assistant/message",
            {"turn": 0, "step": 0, "message": {"id": "m3", "role": "assistant", "content": []}},
            APPEND,
        )
        log.append("step/end", {"turn": 0, "step": 0})
        log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})
        live = log.replay()
    read_back = SessionLog.load(path).replay()
    assert json.dumps(live.messages) == json.dumps(read_back.messages)
    assert ["m1", "m2", "c:result"] == [message["id"] for message in read_back.messages]
    (shown,) = read_back.results
    assert ("c", "read", '{"file_path": "a"}', True) == (
        shown.call_id,
        shown.name,
        shown.arguments,
        shown.is_error,
    )
    assert ({"name": "FsError", "code": "FS_IO_ERROR"}, [1]) == (shown.error, shown.meta)
    assert [{"type": "text", "text": "Error: no"}] == shown.content


def test_nested_calls_derive_no_messages():
    log = SessionLog.in_memory()
    whole_run(log)
    assert ["call-1:result"] == [message["id"] for message in log.replay().messages]


def test_a_replacement_takes_the_place_of_the_range_it_cites():
    log = SessionLog.in_memory()
    for turn in range(3):
        whole_run(log, f"call-{turn}", turn)
    first, second = (
        event["seq"] for event in list(log.events()) if event["type"] == "tool/result" and event["seq"] < 15
    )
    summary = {
        "id": "s",
        "role": "user",
        "content": [{"type": "text", "text": "sum"}],
        "source": {"kind": "summary"},
    }
    with pytest.raises(SessionOrderError, match="without citing it"):
        log.append("user/message", summary, {"kind": "replace", "start": first, "end": second}, [first])
    log.append("user/message", summary, {"kind": "replace", "start": first, "end": second}, [first, second])
    assert ["s", "call-2:result"] == [message["id"] for message in log.replay().messages]


def test_a_rewritten_result_may_change_its_content_only():
    log = SessionLog.in_memory()
    whole_run(log)
    (seq,) = (event["seq"] for event in log.events() if event["type"] == "tool/result")
    replace = {"kind": "replace", "start": seq, "end": seq}
    with pytest.raises(SessionOrderError, match="only its content"):
        log.append("tool/result", result_data("call-1", "cut", is_error=True), replace, [seq])
    log.append("tool/result", result_data("call-1", "cut"), replace, [seq])
    assert ["cut"] == [item.content[0]["text"] for item in log.replay().results]


def test_a_receipt_lists_nested_calls_in_order_with_unpaired_starts_unknown(path):
    ticks = iter(range(1000, 2000, 5))
    with SessionLog.open(path, clock=lambda: next(ticks)) as log:
        call = begin_call(log)
        for number in (1, 2, 3):
            log.append("tool/code-dispatch-start", dispatch_data(f"call-1:code:{number}"))
        log.append("tool/code-dispatch", settled("call-1:code:2", "Error: no such file", is_error=True))
        log.append("tool/code-dispatch", settled("call-1:code:1"))
        end_call(log, call)
    receipt = SessionLog.load(path).receipt("call-1")
    assert [
        ("call-1:code:1", "read", {"file_path": "a.txt"}, "succeeded", 20.0, None),
        ("call-1:code:2", "read", {"file_path": "a.txt"}, "failed", 10.0, "no such file"),
        ("call-1:code:3", "read", {"file_path": "a.txt"}, "unknown", 0.0, None),
    ] == [
        (call.id, call.tool, call.arguments, call.status, call.duration_ms, call.error_message)
        for call in receipt
    ]
    assert all(call.executed for call in receipt)


def test_a_receipt_of_a_call_the_log_never_saw_is_an_error():
    with pytest.raises(SessionLogError, match="no call 'nope'"):
        SessionLog.in_memory().receipt("nope")


def test_a_clock_that_steps_back_gives_no_negative_times(path):
    ticks = iter([5000, 4000, 3000, 9000])
    with SessionLog.open(path, clock=lambda: next(ticks)) as log:
        log.append("turn/start", {"turn": 0})
        log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})
    assert [5000, 5000, 5000] == [record["time"] for record in records(path)]
