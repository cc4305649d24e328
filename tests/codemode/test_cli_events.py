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
        ("codemode events: 'notes.md': line 1 is not a JSON record; is this an event log?", "notes.md"),
        ("codemode events: './empty': it holds no event; is this an event log?", "./empty"),
    ],
)
def test_what_is_no_log_gives_one_line_and_status_2(folder, capsys, expected, name):
    (folder / "notes.md").write_text("# Notes\n")
    (folder / "empty").touch()
    assert 2 == main(["events", name])
    out, err = capsys.readouterr()
    assert "" == out
    assert [expected] == err.splitlines()
    if (folder / name).is_file():
        assert 2 == main(["events", name, "--html", "-"])
        assert expected.replace("./", "") == capsys.readouterr().err.rstrip("\n")


def log_of_one_turn():
    with SessionLog.open("e.jsonl") as log:
        log.append("turn/start", {"turn": 0})
        log.append("turn/end", {"turn": 0, "reason": {"kind": "completed"}})


def test_a_page_is_written_readable_by_its_owner_only_and_takes_the_place_of_an_older_one(folder, capsys):
    log_of_one_turn()
    for _ in range(2):
        assert 0 == main(["events", "e.jsonl", "--html", "e.html"])
        assert ("", "") == capsys.readouterr()
        text = (folder / "e.html").read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>\n")
        assert text.endswith("</html>\n")
        assert 0o600 == (folder / "e.html").stat().st_mode & 0o777
    assert 0 == main(["events", "e.jsonl", "--html", "-"])
    assert text == capsys.readouterr().out
    assert ["e.html", "e.jsonl"] == sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("expected", "target"),
    [
        ("--html 'e.jsonl' is the event log itself; name another file", "e.jsonl"),
        ("--html 'link' is the event log itself; name another file", "link"),
        ("cannot write to '.': it is not a regular file", "."),
        ("cannot write to 'no/e.html': No such file or directory", "no/e.html"),
    ],
)
def test_a_page_that_cannot_be_written_gives_one_line_and_leaves_the_log(folder, capsys, expected, target):
    log_of_one_turn()
    (folder / "link").symlink_to("e.jsonl")
    before = (folder / "e.jsonl").read_bytes()
    assert 2 == main(["events", "e.jsonl", "--html", target])
    assert f"codemode events: {expected}\n" == capsys.readouterr().err
    assert before == (folder / "e.jsonl").read_bytes()
    assert ["e.jsonl", "link"] == sorted(path.name for path in folder.iterdir())


def test_a_page_of_what_is_no_log_leaves_no_file(folder, capsys):
    (folder / "notes.md").write_text("# Notes\n")
    assert 2 == main(["events", "notes.md", "--html", "out.html"])
    assert "is this an event log?" in capsys.readouterr().err
    assert ["notes.md"] == [path.name for path in folder.iterdir()]
