"""`codemode events` from the outside."""

from __future__ import annotations

import pytest

from codemode.cli import main
from codemode.session_log import SessionLog


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_log_is_shown_in_plain_text(folder, capsys):
    with SessionLog.open("e.jsonl") as log:
        log.append("turn/start", {"turn": 0})
    assert 0 == main(["events", "e.jsonl"])
    out, err = capsys.readouterr()
    assert "" == err
    assert "\x1b" not in out
    assert out.endswith("missing: no end of turn 0; the session may still be running\n")


@pytest.mark.parametrize(
    ("expected", "name"),
    [
        (
            "codemode events: cannot read the event log 'missing.jsonl': No such file or directory",
            "missing.jsonl",
        ),
        ("codemode events: '.' is not a regular file, so it is no event log", "."),
        ("codemode events: notes.md, line 1 is not a JSON record; is this an event log?", "notes.md"),
        ("codemode events: the file holds no event", "empty"),
    ],
)
def test_what_is_no_log_gives_one_line_and_status_2(folder, capsys, expected, name):
    (folder / "notes.md").write_text("# Notes\n")
    (folder / "empty").touch()
    assert 2 == main(["events", name])
    out, err = capsys.readouterr()
    assert "" == out
    assert [expected] == err.splitlines()
