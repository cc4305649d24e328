"""The size cap of a session log, and when it waits for the disk."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat

import pytest

from codemode.session_events import APPEND, SessionFileError
from codemode.session_log import SessionLog


def whole_turn(log, turn):
    """Record one direct call without nested ones: six events."""
    step = {"turn": turn, "step": 0}
    log.append("turn/start", {"turn": turn})
    log.append("step/start", step)
    call = log.append("tool/call", {**step, "callId": f"call-{turn}", "name": "read", "arguments": "{}"})
    block = {"type": "tool-result", "toolCallId": f"call-{turn}", "content": [], "isError": False}
    source = {"kind": "tool", "callId": f"call-{turn}"}
    message = {"id": f"result-{turn}", "role": "user", "source": source, "content": [block]}
    log.append("tool/result", {**step, "message": message}, APPEND, [call["seq"]])
    log.append("step/end", step)
    log.append("turn/end", {"turn": turn, "reason": {"kind": "completed"}})


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def test_a_log_past_its_cap_goes_on_in_a_new_private_file_and_reads_as_one(path):
    with SessionLog.open(path, max_file_bytes=1500) as log:
        for turn in range(6):
            whole_turn(log, turn)
        live = list(log.events())
    parts = sorted(item.name for item in path.parent.iterdir())
    assert ["events.jsonl", "events.jsonl.1"] == parts[:2]
    assert all(0o600 == stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir())
    assert all(item.stat().st_size < 3000 for item in path.parent.iterdir())
    loaded = SessionLog.load(path)
    assert live == list(loaded.events())
    assert list(range(len(live))) == [event["seq"] for event in live]
    assert 6 == len(loaded.replay().messages)


def test_only_so_many_older_files_are_kept_and_the_rest_still_loads(path):
    with SessionLog.open(path, max_file_bytes=400, keep_files=2) as log:
        for turn in range(8):
            whole_turn(log, turn)
    assert 3 == len(list(path.parent.iterdir()))
    first = next(SessionLog.load(path).events())
    assert "session/header" == first["type"]
    assert first["seq"] > 0
    with SessionLog.open(path) as log:
        whole_turn(log, log.next_turn)
        assert 9 == log.next_turn


def test_the_lock_moves_to_the_new_file(path):
    with SessionLog.open(path, max_file_bytes=300) as log:
        whole_turn(log, 0)
        assert path.with_name("events.jsonl.1").exists()
        with pytest.raises(SessionFileError, match="another run"):
            SessionLog.open(path)
        with path.with_name("events.jsonl.1").open("rb") as older:
            fcntl.flock(older, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_rotation_that_fails_goes_on_in_the_same_file(path, monkeypatch, caplog):
    def refuse(*args, **kwargs):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    with SessionLog.open(path, max_file_bytes=300) as log:
        whole_turn(log, 0)
    assert ["events.jsonl"] == [item.name for item in path.parent.iterdir()]
    assert 7 == len(records(path))
    assert "not rotated" in caplog.text


@pytest.mark.parametrize(("policy", "expected"), [("never", 0), ("turn", 2), ("event", 7)])
def test_the_sync_policy_decides_how_often_the_disk_is_waited_for(path, monkeypatch, policy, expected):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    with SessionLog.open(path, sync=policy) as log:
        whole_turn(log, 0)
    assert expected == len(calls)
