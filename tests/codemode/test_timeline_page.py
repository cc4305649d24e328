"""The page of an event log: complete, self-contained, and harmless whatever the log says."""

from __future__ import annotations

import html.parser
import json
import re

import pytest

from codemode.session_events import APPEND, SessionFormatError
from codemode.session_file import read_lines
from codemode.session_log import SessionLog
from codemode.timeline_page import MAX_NESTED_CHARS, MAX_TEXT_CHARS, TimelinePage

HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(2)>\" ' &amp; \u202e\x1b[2J"


class Page(html.parser.HTMLParser):
    """Reads a page: its tags, which must be closed in order, its attributes and its text."""

    VOID = ("meta", "br")

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.tags = []
        self.attributes = []
        self.text = ""
        self._open = []
        self.feed(text)
        self.close()
        assert [] == self._open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert tag == self._open.pop()

    def handle_data(self, data):
        self.text += data


def page(path):
    return Page("\n".join(TimelinePage().render(read_lines(path))))


def write_log(path, *, text="shown", arguments=None, name="read", ended=True):
    ticks = iter(range(1_700_000_000_000, 1_800_000_000_000, 100))
    with SessionLog.open(path, clock=lambda: next(ticks)) as log:
        step = {"turn": 0, "step": 0}
        log.append("turn/start", {"turn": 0})
        log.append("step/start", step)
        given = json.dumps({"code": f"a = 1\n# {text}", "description": text})
        call = log.append("tool/call", {**step, "callId": "call-1", "name": "run_code", "arguments": given})
        nested = {
            "rootCallId": "call-1",
            "parentCallId": "call-1",
            "subCallId": "call-1:code:1",
            "name": name,
            "arguments": arguments or {"file_path": text},
        }
        log.append("tool/code-dispatch-start", nested)
        if ended:
            content = [{"type": "text", "text": text}]
            log.append("tool/code-dispatch", {**nested, "isError": True, "content": content})
            block = {"type": "tool-result", "toolCallId": "call-1", "content": content, "isError": False}
            message = {
                "id": "r",
                "role": "user",
                "source": {"kind": "tool", "callId": "call-1"},
                "content": [block],
            }
            log.append("tool/result", {**step, "message": message}, APPEND, [call["seq"]])
            log.append("step/end", step)
            log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})
    return path


def test_a_run_is_shown_with_its_program_its_calls_and_what_it_gave(tmp_path):
    read = page(write_log(tmp_path / "e.jsonl", text="some text"))
    for expected in (
        "2023-11-14 22:13:20 UTC",
        "run_code",
        "a = 1\n# some text",
        'read(file_path="some text")',
        "+0.100 s",
        "100 ms",
        "1 nested call",
        "1 failed",
        "9 events, 1 nested call",
    ):
        assert expected in read.text
    assert "missing" not in read.text
    # A nested call begins after a third of its call's 300 ms and takes a third of them.
    assert ("style", "left:33.33%;width:33.33%") in read.attributes


def test_nothing_in_a_log_becomes_markup_or_acts_on_the_reader(tmp_path):
    names = {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
    read = page(write_log(tmp_path / "e.jsonl", text=HOSTILE, **names))
    harmless = page(write_log(tmp_path / "f.jsonl"))
    assert harmless.tags == read.tags
    assert {name for name, _ in harmless.attributes} == {name for name, _ in read.attributes}
    assert "<script>alert(1)</script>" in read.text
    assert "\\u202e\\x1b[2J" in read.text
    assert not set("\u202e\x1b") & set(read.source)


def test_the_page_loads_nothing_and_runs_nothing(tmp_path):
    read = page(write_log(tmp_path / "e.jsonl"))
    assert not {"script", "link", "img", "iframe", "object", "form", "a"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in ("src", "href")]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes
    assert not re.search(r"url\(|@import|https?:", read.source)
    assert "prefers-color-scheme: dark" in read.source


def test_what_broke_off_is_shown_as_unknown_and_named(tmp_path):
    path = write_log(tmp_path / "e.jsonl", ended=False)
    with path.open("ab") as log:
        log.write(b'{"type": "turn/e')
    read = page(path)
    assert "no end of read (call-1:code:1): it may have taken effect" in read.text
    assert "no result of run_code (call-1)" in read.text
    assert "no end of turn 0" in read.text
    assert "the last line of e.jsonl broke off after 16 bytes" in read.text
    assert 2 == [value for name, value in read.attributes if name == "class"].count("unknown")


def test_a_log_whose_beginning_is_gone_is_shown_from_where_it_begins(tmp_path):
    path = write_log(tmp_path / "e.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(True)[3:]))
    read = page(path)
    assert "A part of a session" in read.text
    assert "events before seq 3 are not in this file" in read.text
    assert "run_code" in read.text


def test_long_texts_are_cut_and_say_so(tmp_path):
    read = page(write_log(tmp_path / "e.jsonl", text="x" * (MAX_TEXT_CHARS + 7)))
    assert "… (7 more characters)" in read.text
    assert f"… ({MAX_TEXT_CHARS + 7 - MAX_NESTED_CHARS} more characters)" in read.text


@pytest.mark.parametrize("text", ["# Notes\n", ""])
def test_what_is_no_log_is_refused(tmp_path, text):
    (tmp_path / "notes.md").write_text(text)
    with pytest.raises(SessionFormatError):
        page(tmp_path / "notes.md")
