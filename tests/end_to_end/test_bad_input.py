"""Every bad input gives one clear line, the right exit status, and nothing half-done."""

from __future__ import annotations

import json

import pytest

from codemode.session_log import SessionLog

pytestmark = pytest.mark.needs_linux

TOOLS = """
from tool_bindings import ToolRegistry
registry = ToolRegistry()
"""


@pytest.fixture
def workplace(folder):
    (folder / "dir").mkdir()
    (folder / "empty.py").touch()
    (folder / "binary.py").write_bytes(b"\x7fELF\0\0")
    (folder / "raises.py").write_text("raise RuntimeError('cannot start')\n")
    (folder / "tools.py").write_text(TOOLS)
    (folder / "notes.md").write_text("# Notes\n")
    (folder / "link.jsonl").symlink_to("target.jsonl")
    return folder


CASES = {
    "missing file": (["run", "missing.py"], "no such file: 'missing.py'"),
    "directory": (["run", "dir"], "'dir' is a directory, not a program"),
    "empty": (["run", "empty.py"], "'empty.py' is empty"),
    "binary": (["run", "binary.py"], "'binary.py' is not a text file: it has a zero byte at offset 4"),
    "unknown module": (["run", "-c", "1", "--tools", "nowhere:x"], "there is no module 'nowhere'"),
    "unknown attribute": (["run", "-c", "1", "--tools", "tools.py:x"], "'tools.py' has no attribute 'x'"),
    "raises on import": (
        ["run", "-c", "1", "--tools", "raises.py:registry"],
        "importing it raised RuntimeError: cannot start (raises.py, line 1)",
    ),
    "events in no directory": (
        ["run", "-c", "1", "--events", "no/e.jsonl"],
        "the directory 'no' does not exist",
    ),
    "events is a directory": (["run", "-c", "1", "--events", "dir"], "cannot write events to 'dir'"),
    "events is a link": (["run", "-c", "1", "--events", "link.jsonl"], "it is a symbolic link"),
    "events is no log": (["run", "-c", "1", "--events", "notes.md"], "is this an event log?"),
    "events is a device": (["run", "-c", "1", "--events", "/dev/null"], "it is not a regular file"),
    "call: no JSON": (["call", "read", "{"], "the arguments are not valid JSON"),
    "call: NaN": (["call", "read", '{"offset": NaN}'], "the arguments are not valid JSON"),
    "call: no object": (["call", "read", "[1]"], "the arguments must be a JSON object"),
    "call: too deep": (["call", "read", '{"a": ' + "[" * 600 + "]" * 600 + "}"], "601 levels deep"),
    "call: a key twice": (
        ["call", "read", '{"file_path": "a", "x": {"b": 1, "b": 2}}'],
        "the arguments: the key 'b' stands twice in one object",
    ),
    "call: unknown tool": (["call", "raed", "{}"], "did you mean 'read'?"),
    "unknown option": (["run", "--nope", "-c", "1"], "unrecognized argument '--nope'"),
    "unknown allowed tool": (["run", "-c", "1", "--allow", "raed"], "did you mean 'read'?"),
}


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("case", CASES)
def test_a_bad_input_gives_one_line_and_status_2(codemode, workplace, case, as_json):
    (command, *rest), expected = CASES[case]
    before = sorted(item.name for item in workplace.rglob("*"))
    status, out, err = codemode(command, *(["--json"] if as_json else []), *rest)
    assert 2 == status
    if as_json:
        assert "" == err
        assert 1 == out.count("\n")
        answer = json.loads(out)
        assert (False, "usage") == (answer["ok"], answer["error"]["kind"])
        assert expected in answer["error"]["message"]
    else:
        assert "" == out
        (line,) = err.splitlines()
        assert line.startswith(f"codemode {command}: ")
        assert expected in line
    left = sorted(item.name for item in workplace.rglob("*") if "__pycache__" not in item.parts)
    assert before == [name for name in left if name != "__pycache__"]
    assert "# Notes\n" == (workplace / "notes.md").read_text()


def test_a_log_another_run_is_writing_is_refused(codemode, folder):
    with SessionLog.open("e.jsonl"):
        status, out, err = codemode("run", "-c", "return 1", "--events", "e.jsonl")
    assert (2, "") == (status, out)
    assert "being written by another run" in err


def test_a_program_that_is_too_large_is_refused_by_policy(codemode, folder):
    (folder / "big.py").write_text("# " + "x" * 1_048_576)
    status, out, _ = codemode("run", "--json", "big.py")
    assert (1, "policy") == (status, json.loads(out)["error"]["kind"])


def test_a_syntax_error_is_the_programs_fault(codemode):
    status, out, _ = codemode("run", "--json", "-c", "return (")
    assert (1, "policy") == (status, json.loads(out)["error"]["kind"])
