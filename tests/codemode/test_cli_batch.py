"""`codemode batch`: lines in, records out, and what an interrupted one goes on with."""

from __future__ import annotations

import fcntl
import json
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from codemode.bridge import OUTCOME_UNKNOWN
from codemode.cli import main
from codemode.cli.batch_lines import BAD_LINE, MAX_ID_CHARS, MAX_LINE_BYTES, UNKNOWN_TOOL
from codemode.cli.batch_output import BatchOutput
from codemode.cli.interrupt import Interrupt
from codemode.depth import MAX_DEPTH
from codemode.session_log import SessionLog

TOOLS = textwrap.dedent(
    """
    import trio
    from tool_bindings import ToolRegistry
    from sandbox.values import JsonValue

    registry = ToolRegistry()
    ran = []

    @registry.tool(concurrency_safe=True)
    async def double(n: int) -> int:
        "Twice a number; the smaller it is, the longer it takes."
        ran.append(n)
        for _ in range(20 - n):
            await trio.lowlevel.checkpoint()
        return 2 * n

    @registry.tool
    async def broken() -> None:
        "Always fail."
        raise ValueError("it is broken")

    @registry.tool(concurrency_safe=True)
    async def deep(levels: int) -> JsonValue:
        "Nest lists."
        value = []
        for _ in range(levels - 1):
            value = [value]
        return value
    """
)


@pytest.fixture
def batch(tmp_path, monkeypatch, capsys):
    """Give a function that runs the command on lines; it returns status, records and errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(TOOLS)

    def batch(lines, *options):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (tmp_path / "in.jsonl").write_text(text)
        return again(*options)

    def again(*options, file="in.jsonl"):
        status = main(["batch", file, "--tools", "tools.py:registry", "--tools", "none", *options])
        out, err = capsys.readouterr()
        if "--output" in options:
            assert "" == out
            out = (tmp_path / "out.jsonl").read_text() if (tmp_path / "out.jsonl").is_file() else ""
        # What follows the last line end was being written when the command was killed.
        return status, [json.loads(line) for line in out.split("\n")[:-1]], err

    batch.again = again
    return batch


def double(n, **more):
    return {"tool": "double", "arguments": {"n": n}, **more}


def test_records_come_in_input_order_with_line_value_and_the_callers_id(batch):
    status, records, err = batch([double(n, id=f"call {n}") for n in range(15)])
    assert (0, "") == (status, err)
    assert [(n + 1, f"call {n}", 2 * n) for n in range(15)] == [
        (record["line"], record["id"], record["value"]) for record in records
    ]
    assert {
        "tool": "double",
        "arguments": {"n": 3},
        "status": "succeeded",
        "executed": True,
    }.items() <= records[3].items()
    assert {"id", "tool", "arguments", "status", "executed", "durationMs", "line", "value"} == set(records[3])


def test_a_number_as_id_comes_back_as_one(batch):
    _, records, _ = batch([double(1, id=0), double(1, id=2**70), double(1, id="0"), double(1)])
    assert [0, 2**70, "0"] == [record["id"] for record in records[:3]]
    assert records[3]["id"].endswith(":4")


BAD = {
    "nope": "it is not JSON: Expecting value (character 1)",
    '{"tool": "double"': "it is not JSON: Expecting ',' delimiter (character 18)",
    '{"tool": "double", "arguments": {"n": NaN}}': "it is not JSON: NaN is not JSON; only finite numbers are",
    "[1]": 'it must be a JSON object such as {"tool": "read", "arguments": {"file_path": "README.md"}}',
    '{"tool": "double", "args": {}}': (
        'there is no member \'args\'; a line has "tool", "arguments" and, if you like, "id"'
    ),
    '{"arguments": {}}': (
        '"tool" must be the name of a tool, as in {"tool": "read", "arguments": {"file_path": "README.md"}}'
    ),
    '{"tool": "double"}': '"arguments" must be a JSON object; write {} for a tool that takes none',
    '{"tool": "double", "arguments": [1]}': (
        '"arguments" must be a JSON object; write {} for a tool that takes none'
    ),
    '{"tool": "double", "arguments": {"n": 1}, "id": true}': (
        '"id" must be text of 1 to 1000 characters, or a whole number'
    ),
    '{"tool": "double", "arguments": {"n": 1, "n": 2}}': (
        "the key 'n' stands twice in one object, so it is not clear which one is meant"
    ),
    '{"tool": "double", "arguments": {"n": ' + "[" * 600 + "]" * 600 + "}}": (
        "it is nested 602 levels deep; at most 500 are taken"
    ),
    '{"tool": "duoble", "arguments": {}}': "'duoble': there is no such tool; did you mean 'double'?",
}


@pytest.mark.parametrize("bad", BAD)
def test_a_line_that_is_no_call_is_reported_in_its_place_and_stops_nothing(batch, bad):
    status, records, err = batch([double(1), "", bad, double(2)])
    assert [(1, "succeeded"), (3, "not_started"), (4, "succeeded")] == [
        (record["line"], record["status"]) for record in records
    ]
    assert f"line 3: {BAD[bad]}" == records[1]["error"]["message"]
    assert ("UNKNOWN_TOOL" if "duoble" in bad else "BAD_LINE") == records[1]["error"]["code"]
    assert records[1]["executed"] is False
    assert 1 == status
    assert "codemode batch: 3 lines: 2 succeeded, 0 failed, 1 not a call (" in err


def test_lines_may_end_as_on_windows_and_begin_with_a_byte_order_mark(batch, tmp_path):
    line = json.dumps(double(1))
    (tmp_path / "in.jsonl").write_bytes(b"\xef\xbb\xbf" + f"{line}\r\n \t\r\n{line}".encode())
    status, records, _ = batch.again()
    assert (0, [1, 3]) == (status, [record["line"] for record in records])


def test_text_that_is_not_utf_8_is_a_bad_line(batch, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b'{"tool": "\xff"}\n')
    _, records, _ = batch.again()
    assert "line 1: it is not UTF-8 text: byte 0xff at offset 10" == records[0]["error"]["message"]


def test_failing_calls_are_records_and_status_1(batch):
    lines = [
        {"tool": "broken", "arguments": {}},
        double("one"),
        double(1),
        {"tool": "deep", "arguments": {"levels": 500}},
        {"tool": "deep", "arguments": {"levels": 501}},
    ]
    status, records, err = batch(lines)
    assert 1 == status
    assert ["failed", "failed", "succeeded", "succeeded", "succeeded"] == [
        record["status"] for record in records
    ]
    assert {"message": "it is broken"} == records[0]["error"]
    assert "INVALID_ARGS" == records[1]["error"]["code"]
    assert {
        "message": "the value is nested 501 levels deep; a record holds at most 500",
        "code": "INVALID_OUTPUT",
    } == records[4]["error"]
    assert "value" not in records[4]
    assert "5 lines: 2 succeeded, 3 failed (" in err


def test_no_lines_give_no_records(batch):
    assert (0, [], "") == batch([])
    assert (0, [], "") == batch(["", "  "])


def test_only_allowed_tools_are_called(batch):
    status, records, _ = batch([double(1), {"tool": "broken", "arguments": {}}], "--allow", "double")
    assert (1, "UNKNOWN_TOOL") == (status, records[1]["error"]["code"])


def test_every_call_is_recorded_as_a_turn_of_its_own_whatever_its_id(batch, tmp_path):
    status, _, _ = batch([double(n, id="same") for n in range(5)] + ["no call"], "--events", "e.jsonl")
    assert 1 == status
    log = SessionLog.load(tmp_path / "e.jsonl")
    assert (0, 5) == (log.repaired, len(log.replay().results))
    calls = [event["data"]["callId"] for event in log.events() if event["type"] == "tool/call"]
    assert "same" == calls[0]


OUTPUT = ("--output", "out.jsonl")


def test_the_output_file_has_the_records_and_is_private_and_no_journal_is_left(batch, tmp_path):
    status, records, err = batch([double(n) for n in range(5)], *OUTPUT)
    assert (0, "") == (status, err)
    assert [0, 2, 4, 6, 8] == [record["value"] for record in records]
    assert 0o600 == (tmp_path / "out.jsonl").stat().st_mode & 0o777
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_an_output_that_is_there_is_never_written_over(batch, tmp_path):
    (tmp_path / "out.jsonl").write_text("mine, with no line end")
    status, _, err = batch([double(1)], *OUTPUT)
    assert 2 == status
    assert "'out.jsonl' is there already; go on with it by --resume, or name another file" in err
    assert "mine, with no line end" == (tmp_path / "out.jsonl").read_text()
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_an_empty_output_is_written_to(batch, tmp_path):
    (tmp_path / "out.jsonl").touch()
    assert 0 == batch([double(1)], *OUTPUT)[0]


RESUME = (*OUTPUT, "--resume")


@pytest.fixture
def cut_off(batch, tmp_path, monkeypatch):
    """Leave a batch of eight lines that was killed while it had three calls on their way."""
    with monkeypatch.context() as patch:
        patch.setattr(BatchOutput, "complete", lambda self: None)
        batch([double(n, id=n) for n in range(8)], *OUTPUT)
    out, journal = tmp_path / "out.jsonl", tmp_path / "out.jsonl.journal"
    records = out.read_text().splitlines()
    out.write_text("\n".join(records[:3]) + "\n" + records[3][:20])
    header = journal.read_text().splitlines()[0]
    began = [json.dumps({"began": line}) for line in range(1, 7)]
    ended = json.dumps({"ended": 5, "record": {**json.loads(records[4]), "durationMs": 5.0}})
    journal.write_text("\n".join([header, *began, ended, '{"began": 7']))
    return batch


def ran():
    return sorted(sys.modules["codemode_tools_tools"].ran)


def test_a_batch_goes_on_where_it_was_cut_off(cut_off, tmp_path):
    before = ran()
    status, records, err = cut_off.again(*RESUME)
    assert list(range(1, 9)) == [record["line"] for record in records]
    assert ["succeeded"] * 3 + ["unknown", "succeeded", "unknown"] + ["succeeded"] * 2 == [
        record["status"] for record in records
    ]
    assert 5.0 == records[4]["durationMs"]
    assert {
        "message": "the batch was cut off while this call ran; it may have had its effect",
        "code": "TOOL_OUTCOME_UNKNOWN",
    } == records[3]["error"]
    assert (3, True) == (records[3]["id"], records[3]["executed"])
    assert sorted([*before, 6, 7]) == ran()
    assert 1 == status
    assert "8 lines: 6 succeeded, 0 failed, 2 of unknown outcome (" in err
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_a_complete_batch_is_left_as_it_is_however_often_it_is_resumed(cut_off, tmp_path):
    _, records, _ = cut_off.again(*RESUME)
    before = ran()
    for _ in range(2):
        status, same, err = cut_off.again(*RESUME)
        assert (1, records) == (status, same)
        assert "'out.jsonl' is complete; no call was left to make" in err
    assert before == ran()
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_resume_begins_a_batch_that_has_no_output_yet(batch):
    status, records, err = batch([double(1)], *RESUME)
    assert (0, [2], "") == (status, [record["value"] for record in records], err)


@pytest.mark.parametrize("options", [OUTPUT, RESUME])
def test_a_batch_that_was_killed_before_its_first_call_is_begun_again(batch, tmp_path, monkeypatch, options):
    with monkeypatch.context() as patch:
        patch.setattr(BatchOutput, "complete", lambda self: None)
        batch([], *OUTPUT)
    assert 1 == (tmp_path / "out.jsonl.journal").read_text().count("\n")
    status, records, _ = batch([double(1)], *options)
    assert (0, [2]) == (status, [record["value"] for record in records])
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_without_resume_a_journal_of_calls_that_ran_is_not_thrown_away(cut_off, tmp_path):
    (tmp_path / "out.jsonl").unlink()
    journal = (tmp_path / "out.jsonl.journal").read_text()
    status, _, err = cut_off.again(*OUTPUT)
    assert 2 == status
    assert (
        "'out.jsonl.journal' says that calls of an interrupted batch have run;"
        " go on with it by --resume, or remove it" in err
    )
    assert journal == (tmp_path / "out.jsonl.journal").read_text()
    assert not (tmp_path / "out.jsonl").exists()


def test_an_output_that_is_gone_makes_its_calls_unknown_and_repeats_none(cut_off, tmp_path):
    (tmp_path / "out.jsonl").unlink()
    _, records, _ = cut_off.again(*RESUME)
    assert ["unknown"] * 4 + ["succeeded", "unknown", "succeeded", "succeeded"] == [
        record["status"] for record in records
    ]


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


CHANGES = {
    "a line that has run": ("in.jsonl", '"n": 1}', '"n": 9}', "the input is not the one it began with"),
    "a line that has not": ("in.jsonl", '"n": 7}', '"n": 9}', "the input is not the one it began with"),
    "a line more": ("in.jsonl", "7}\n", "7}\n\n", "the input is not the one it began with"),
    "a tool less": (
        "out.jsonl.journal",
        '"broken"',
        '"broken","zip"',
        "it began with the tool 'zip', which is not there now",
    ),
    "a tool more": (
        "out.jsonl.journal",
        '"broken",',
        "",
        "it began without the tool 'broken', which is there now",
    ),
    "another root": (
        "out.jsonl.journal",
        '"root":"',
        '"root":"0',
        "--root is not the directory it began with",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_batch_whose_parts_have_changed_is_refused_and_nothing_is_touched(cut_off, tmp_path, change):
    name, old, new, expected = CHANGES[change]
    edit(tmp_path / name, old, new)
    before = ran(), (tmp_path / "out.jsonl").read_bytes(), (tmp_path / "out.jsonl.journal").read_bytes()
    status, _, err = cut_off.again(*RESUME)
    assert 2 == status
    assert f"codemode batch: cannot go on with 'out.jsonl': {expected};" in err
    after = ran(), (tmp_path / "out.jsonl").read_bytes(), (tmp_path / "out.jsonl.journal").read_bytes()
    assert before == after


def test_the_output_of_another_batch_is_refused_and_not_touched(cut_off, tmp_path):
    edit(tmp_path / "out.jsonl", '"arguments":{"n":2}', '"arguments":{"n":3}')
    before = ran(), (tmp_path / "out.jsonl").read_bytes()
    status, _, err = cut_off.again(*RESUME)
    assert 2 == status
    assert "'out.jsonl' is the output of another batch: its record of line 3 is not one of 'in.jsonl'" in err
    assert before == (ran(), (tmp_path / "out.jsonl").read_bytes())


@pytest.mark.parametrize("text", ["no record\n", "[1]\n", '{"id": 1}\n'])
def test_a_file_that_is_no_output_at_all_is_refused_and_not_touched(batch, tmp_path, text):
    (tmp_path / "notes.md").write_text(text)
    status, _, err = batch([double(1)], "--output", "notes.md", "--resume")
    assert 2 == status
    assert "codemode batch: 'notes.md', line 1: this is no record of a batch" in err
    assert text == (tmp_path / "notes.md").read_text()
    assert not (tmp_path / "notes.md.journal").exists()


def test_a_partial_output_without_its_journal_is_refused(cut_off, tmp_path):
    (tmp_path / "out.jsonl.journal").unlink()
    (tmp_path / "out.jsonl").write_text("".join((tmp_path / "out.jsonl").read_text().splitlines(True)[:3]))
    before = ran()
    status, records, err = cut_off.again(*RESUME)
    assert (2, 3) == (status, len(records))
    assert (
        "'out.jsonl.journal' is missing, so it is not known which calls after line 3 have run;"
        " write to another --output" in err
    )
    assert before == ran()
    assert not (tmp_path / "out.jsonl.journal").exists()


@pytest.mark.parametrize("text", ["# my journal\n", '{"batch": "b", "version": 99}\n'])
def test_something_else_where_the_journal_would_be_is_left_alone(batch, tmp_path, text):
    (tmp_path / "out.jsonl.journal").write_text(text)
    for options in (OUTPUT, RESUME):
        status, _, err = batch([double(1)], *options)
        assert 2 == status
        assert "'out.jsonl.journal' would be the journal beside the output, but is something else" in err
    assert text == (tmp_path / "out.jsonl.journal").read_text()
    assert not (tmp_path / "out.jsonl").exists()


def test_a_damaged_journal_is_refused(cut_off, tmp_path):
    edit(tmp_path / "out.jsonl.journal", '{"began": 3}', "\0\0\0")
    status, _, err = cut_off.again(*RESUME)
    assert 2 == status
    assert "'out.jsonl.journal', line 4 cannot be read, so it is not certain which calls have run" in err


def test_two_batches_cannot_write_one_output(cut_off, tmp_path):
    with (tmp_path / "out.jsonl.journal").open() as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        status, _, err = cut_off.again(*RESUME)
    assert 2 == status
    assert "another batch is writing 'out.jsonl'; give this one its own --output" in err


def test_tools_cannot_change_input_output_or_journal(batch, tmp_path, capsys):
    names = ("in.jsonl", "out.jsonl", "out.jsonl.journal", "e.jsonl")
    lines = [
        {"tool": "write", "arguments": {"file_path": name, "content": "gone"}} for name in (*names, "x.txt")
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert 1 == main(["batch", "in.jsonl", *OUTPUT, "--events", "e.jsonl"])
    capsys.readouterr()
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ["failed"] * 4 + ["succeeded"] == [record["status"] for record in records]
    assert "gone" == (tmp_path / "x.txt").read_text()


BAD_USES = {
    "no output to resume": (["in.jsonl", "--resume"], "--resume goes on with an output file; name it with"),
    "output is a dash": (["in.jsonl", "--output", "-"], "--output must name a file; without it, results go"),
    "no such input": (["no.jsonl"], "no such file: 'no.jsonl'"),
    "input is a directory": (["."], "'.' is a directory, not a file of calls"),
    "output in no directory": (
        ["in.jsonl", "--output", "no/out.jsonl"],
        "cannot write to 'no/out.jsonl': the directory 'no' does not exist",
    ),
    "output is a directory": (["in.jsonl", "--output", "dir"], "cannot write to 'dir': it is not a regular"),
    "output is a link": (["in.jsonl", "--output", "link"], "cannot write to 'link': it is a symbolic link"),
    "output is a device": (
        ["in.jsonl", "--output", "/dev/null"],
        "cannot write to '/dev/null': it is not a regular file",
    ),
    "nothing at a time": (["in.jsonl", "--max-parallel", "0"], "'0' is not a whole number above 0"),
}


@pytest.mark.parametrize("use", BAD_USES)
def test_a_wrong_use_gives_one_line_and_status_2_and_makes_no_call(batch, tmp_path, capsys, use):
    arguments, expected = BAD_USES[use]
    (tmp_path / "in.jsonl").write_text(json.dumps(double(1)) + "\n")
    (tmp_path / "dir").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert 2 == main(["batch", "--tools", "tools.py:registry", *arguments])
    out, err = capsys.readouterr()
    assert "" == out
    (line,) = err.splitlines()
    assert line.startswith("codemode batch: ")
    assert expected in line
    assert before == sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__")


def test_at_most_so_many_calls_run_at_a_time_as_asked_for(batch, tmp_path):
    (tmp_path / "tools.py").write_text(
        TOOLS.replace("ran.append(n)", "ran.append(n)\n    live.add(n)\n    most.append(len(live))")
        .replace("return 2 * n", "live.discard(n)\n    return 2 * n")
        .replace("ran = []", "ran, live, most = [], set(), []")
    )
    for option, expected in (([], 10), (["--max-parallel", "3"], 3)):
        sys.modules.pop("codemode_tools_tools", None)
        assert 0 == batch([double(n) for n in range(15)], *option)[0]
        assert expected == max(sys.modules["codemode_tools_tools"].most)


def test_a_signal_while_an_old_output_is_being_read_changes_nothing(batch, tmp_path, monkeypatch):
    interrupts = []

    class Noted(Interrupt):
        def __init__(self, tell):
            super().__init__(tell)
            interrupts.append(self)

    def interrupted(self, records=BatchOutput.records):
        for number, record in enumerate(records(self)):
            yield record
            if number == 1:
                interrupts[-1].number = signal.SIGINT
                interrupts[-1].abort.abort("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(BatchOutput, "complete", lambda self: None)
        # A line that is no call has its record at once, so it would be the one that is written out of place.
        batch([double(0), double(1), double(2), "no call", "no call"], *OUTPUT)
    before = ran(), (tmp_path / "out.jsonl").read_bytes(), (tmp_path / "out.jsonl.journal").read_bytes()
    monkeypatch.setattr("codemode.cli.batch.Interrupt", Noted)
    monkeypatch.setattr(BatchOutput, "records", interrupted)
    assert 130 == batch.again(*RESUME)[0]
    after = ran(), (tmp_path / "out.jsonl").read_bytes(), (tmp_path / "out.jsonl.journal").read_bytes()
    assert before == after


def test_a_call_that_a_policy_keeps_from_running_has_its_record_like_any_other(batch, tmp_path):
    (tmp_path / "tools.py").write_text(
        TOOLS
        + textwrap.dedent(
            """
            from tool_bindings import AbortSignal

            @registry.around
            async def too_late(call, proceed):
                if call.arguments.get("n") == 1:
                    call.signal = AbortSignal()
                    call.signal.abort("too late")
                return await proceed()
            """
        )
    )
    status, records, _ = batch([double(n) for n in range(3)], *OUTPUT)
    assert (1, ["succeeded", "failed", "succeeded"]) == (status, [record["status"] for record in records])
    assert "ABORTED_BEFORE_DISPATCH" == records[1]["error"]["code"]
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_the_page_on_batches_names_every_code_member_and_bound(batch):
    text = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")
    _, records, _ = batch([double(1), double(1, id=1), {"tool": "broken", "arguments": {}}, "no call"])
    members = {member for record in records for member in record}
    for word in (*members, BAD_LINE, UNKNOWN_TOOL, OUTCOME_UNKNOWN, "INVALID_OUTPUT"):
        assert f"`{word}`" in text, word
    for bound in (f"{MAX_LINE_BYTES} bytes", f"{MAX_DEPTH} levels", f"{MAX_ID_CHARS} characters"):
        assert bound in text
