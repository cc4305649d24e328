"""The text view of an event log: everything that can be read is shown, everything that cannot is named."""

from __future__ import annotations

import json

import pytest

from codemode.session_events import APPEND, SessionFormatError
from codemode.session_file import read_lines
from codemode.session_log import SessionLog
from codemode.terminal import Paint, cells
from codemode.timeline import Timeline


def nested(number, name="read", arguments=None):
    return {
        "rootCallId": "call-1",
        "parentCallId": "call-1",
        "subCallId": f"call-1:code:{number}",
        "name": name,
        "arguments": arguments or {"file_path": "README.md"},
    }


def ended(number, text, *, is_error=False, **more):
    return {**nested(number, **more), "isError": is_error, "content": [{"type": "text", "text": text}]}


def result(text):
    block = {
        "type": "tool-result",
        "toolCallId": "call-1",
        "content": [{"type": "text", "text": text}],
        "isError": False,
    }
    message = {"id": "r", "role": "user", "source": {"kind": "tool", "callId": "call-1"}, "content": [block]}
    return {"turn": 0, "step": 0, "message": message}


@pytest.fixture
def path(tmp_path):
    """Give the log of one run: two nested calls, the second failed."""
    path = tmp_path / "events.jsonl"
    ticks = iter(range(1_700_000_000_000, 1_800_000_000_000, 100))
    with SessionLog.open(path, clock=lambda: next(ticks)) as log:
        log.append("turn/start", {"turn": 0})
        log.append("step/start", {"turn": 0, "step": 0})
        arguments = json.dumps({"code": "a\nb\nc", "description": "count \x1b[31mthings"})
        step = {"turn": 0, "step": 0}
        call = log.append(
            "tool/call", {**step, "callId": "call-1", "name": "run_code", "arguments": arguments}
        )
        log.append("tool/code-dispatch-start", nested(1))
        log.append("tool/code-dispatch-start", nested(2, "grep", {"pattern": "(\u202e"}))
        log.append("tool/code-dispatch", ended(2, "Error: bad pattern", is_error=True, name="grep"))
        log.append("tool/code-dispatch", ended(1, "x" * 3000))
        log.append("tool/result", result("first\nsecond\n"), APPEND, [call["seq"]])
        log.append("step/end", {"turn": 0, "step": 0})
        log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})
    return path


def shown(path, *, width=100, color=False):
    return list(Timeline(Paint(color), width).render(read_lines(path)))


def test_a_run_reads_as_a_header_a_call_its_nested_calls_and_its_end(path):
    lines = shown(path, width=120)
    assert "2023-11-14 22:13:20 UTC" in lines[0]
    assert [
        "turn 0  22:13:20.100",
        r"  run_code  call-1  count \x1b[31mthings (3 lines)",
        # In the order of their start, though the second ended first.
        '    +  0.100 s    300 ms  ok       read      file_path="README.md"  2.9 KiB shown',
        '    +  0.200 s    100 ms  failed   grep      pattern="(\\u202e"  Error: bad pattern',
        "  run_code  ok  500 ms  2 nested calls, 1 failed",
        "    | first",
        "    | second",
        "turn 0  completed",
        "11 events, 2 nested calls, 1 failed",
    ] == lines[1:]


def test_every_line_fits_and_none_can_act_on_the_terminal(path):
    for width in (60, 80, 200):
        for line in shown(path, width=width):
            assert cells(line) <= max(width, 100)
            assert line.isprintable()


def test_colour_is_only_added_around_the_same_text(path):
    plain, coloured = shown(path), shown(path, color=True)
    assert plain != coloured
    for code in ("0", "1", "2", "31", "32", "33"):
        coloured = [line.replace(f"\x1b[{code}m", "") for line in coloured]
    assert plain == coloured


def test_a_torn_last_line_is_tolerated_and_what_is_missing_is_named(path):
    path.write_bytes(path.read_bytes()[:-10])
    lines = shown(path)
    assert "turn 0  completed" not in lines
    broke_off = "missing: the last line of events.jsonl broke off after "
    assert any(line.startswith(broke_off) for line in lines)
    assert "missing: no end of turn 0; the session may still be running" == lines[-1]


def test_a_nested_call_without_an_end_is_shown_as_unknown(path):
    kept = path.read_text().splitlines(keepends=True)[:7]
    path.write_text("".join(kept))
    lines = shown(path)
    assert any("unknown  read " in line for line in lines)
    assert "missing: no end of read (call-1:code:1): it may have taken effect" in lines
    assert "missing: no result of run_code (call-1)" in lines


def test_damaged_lines_are_skipped_and_named(path):
    lines = path.read_text().splitlines(keepends=True)
    lines[4] = "{broken\n"
    lines[6] = '{"type": "x/unknown", "seq": 6, "time": 0, "data": {}}\n'
    path.write_text("".join(lines))
    text = shown(path)
    assert "missing: events.jsonl, line 5 is not a JSON record" in text
    unknown = "missing: events.jsonl, line 7 has the unknown type 'x/unknown'"
    assert any(line.startswith(unknown) for line in text)
    assert "turn 0  completed" in text


def test_a_gap_in_the_sequence_is_named(path):
    lines = path.read_text().splitlines(keepends=True)
    del lines[4]
    path.write_text("".join(lines))
    assert "missing: seq 5 follows seq 3" in shown(path)


def test_a_stated_loss_is_shown(tmp_path):
    path = tmp_path / "events.jsonl"
    SessionLog.open(path).close()
    with path.open("a") as stream:
        stream.write('{"type": "tur')
    SessionLog.open(path).close()
    assert "missing: 1 event from seq 1 on: the last line broke off after 13 bytes" in shown(path)


def test_older_files_of_a_rotated_log_come_first(tmp_path):
    path = tmp_path / "events.jsonl"
    with SessionLog.open(path, max_file_bytes=500) as log:
        for turn in range(5):
            log.append("turn/start", {"turn": turn})
            log.append("turn/end", {"turn": turn, "reason": {"kind": "completed"}})
    lines = shown(path)
    assert [0, 1, 2, 3, 4] == [int(line.split()[1]) for line in lines if line.endswith("completed")]
    assert not [line for line in lines if line.startswith("missing")]
    path.with_name("events.jsonl.1").unlink()
    assert any(line.startswith("missing: events before seq ") for line in shown(path))


@pytest.mark.parametrize("content", ["", "# Notes\n", '{"a": 1}\n', '{"type": "turn/st'])
def test_a_file_that_is_no_log_is_refused(tmp_path, content):
    path = tmp_path / "notes.md"
    path.write_text(content)
    with pytest.raises(SessionFormatError, match=r"no event|is this an event log"):
        shown(path)


def test_another_format_version_is_refused(path):
    path.write_text(path.read_text().replace('"version":0', '"version":1', 1))
    with pytest.raises(SessionFormatError, match="format version 1"):
        shown(path)


def test_text_comes_out_while_the_log_is_being_read(path):
    taken = []

    def lines():
        for item in read_lines(path):
            taken.append(item)
            yield item

    text = Timeline(Paint(enabled=False), 100).render(lines())
    next(text)
    assert 1 == len(taken)
