"""`codemode run` in a real process: what it gives, what it leaves behind."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from codemode.session_log import SessionLog

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.needs_linux


def test_a_count_of_files_agrees_with_find(codemode):
    find = ["find", ".", "-name", "*.py", "-not", "-path", "./.git/*"]
    code = 'x = await tools.glob(pattern="**/*.py"); return len(x["paths"])'
    status, out, err = codemode("run", "--json", "-c", code, cwd=PROJECT)
    expected = subprocess.run(find, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.count(
        "\n"
    )
    outcome = json.loads(out)
    assert (0, "", True, expected) == (status, err, outcome["ok"], outcome["result"])
    (call,) = outcome["calls"]
    assert ("glob", {"pattern": "**/*.py"}, "succeeded", True) == (
        call["tool"],
        call["arguments"],
        call["status"],
        call["executed"],
    )


def test_a_run_leaves_a_private_log_with_the_dispatch_pair_inside_the_call(codemode, folder):
    (folder / "README.md").write_text("# Title\n")
    code = 'await tools.read(file_path="README.md"); return 1'
    assert (0, "1\n", "") == codemode("run", "--events", "e.jsonl", "-c", code)
    text = (folder / "e.jsonl").read_text(encoding="ascii")
    events = [json.loads(line) for line in text.splitlines()]
    types = [event["type"] for event in events]
    inside = types[types.index("tool/call") + 1 : types.index("tool/result")]
    assert ["tool/code-dispatch-start", "tool/code-dispatch"] == inside
    assert "turn/end" == types[-1]
    assert list(range(len(events))) == [event["seq"] for event in events]
    assert "totalLines" not in text
    assert "# Title" in text
    assert 0o600 == stat.S_IMODE((folder / "e.jsonl").stat().st_mode)
    status, out, err = codemode("events", "e.jsonl")
    assert (0, "") == (status, err)
    assert 'read      file_path="README.md"' in out
    assert "missing" not in out


def test_two_runs_may_share_a_log_one_after_the_other(codemode, folder):
    for number in (1, 2):
        assert 0 == codemode("run", "--events", "e.jsonl", "-c", f"return {number}")[0]
    log = SessionLog.load(folder / "e.jsonl")
    assert ["1", "2"] == [result.content[0]["text"] for result in log.replay().results]


def test_an_endless_loop_ends_at_its_deadline_and_leaves_no_process(codemode, orphans):
    status, out, err = codemode("run", "-c", "while True: pass", "--wall-seconds", "1", "--json")
    outcome = json.loads(out)
    assert (1, "", False, "timeout") == (status, err, outcome["ok"], outcome["error"]["kind"])
    assert outcome["durationMs"] >= 1000
    assert "wall-clock ceiling reached (1000ms)" in outcome["error"]["message"]
    assert [] == orphans()


def test_memory_beyond_the_limit_ends_the_run_or_is_an_error_the_program_can_catch(codemode, orphans):
    status, out, _ = codemode("run", "-c", 'x = "a" * 10**10', "--json")
    error = json.loads(out)["error"]
    assert 1 == status
    assert error["kind"] == "memory-limit" or error["errorType"] == "MemoryError"
    caught = "try:\n    x = 'a' * 10**10\nexcept MemoryError:\n    return 'caught'"
    assert (0, "caught\n", "") == codemode("run", "-c", caught)
    assert [] == orphans()


def test_what_is_printed_and_returned_goes_to_standard_output(codemode, folder):
    (folder / "p.py").write_text("print('one\\ntwo')\nreturn {'a': [1, 2.0]}\n")
    assert (0, 'one\ntwo\n{\n  "a": [\n    1,\n    2\n  ]\n}\n', "") == codemode("run", "p.py")
    assert (0, "", "") == codemode("run", "-c", "pass")
    assert (0, "null\n", "") == codemode("run", "-c", "return None")


def test_a_program_on_standard_input_is_run(codemode):
    assert (0, "3\n", "") == codemode("run", "-", typed="return 1 + 2")


def test_a_failing_program_says_why_on_standard_error_and_keeps_what_it_printed(codemode):
    status, out, err = codemode("run", "-c", "print('before')\ndef f():\n    return 1 / 0\nf()")
    assert (1, "before\n") == (status, out)
    assert [
        "code run failed (exception): ZeroDivisionError: division by zero",
        "  line 4, in <module>: f()",
        "  line 3, in f: return 1 / 0",
    ] == err.splitlines()[:3]


def test_what_was_done_comes_before_the_error_which_is_the_last_thing_a_person_reads(codemode, folder):
    code = "r = await tools.write(file_path='a.txt', content='x')\nreturn r['nope']"
    status, out, err = codemode("run", "-c", code)
    assert (1, "") == (status, out)
    assert [
        "Already done before the failure (do not repeat these calls):",
        '- write({"file_path":"a.txt","content":"x"}) (line 1)',
        "code run failed (exception): KeyError: 'nope'",
        "  line 2, in <module>: return r['nope']",
    ] == err.splitlines()[:4]
    assert err.splitlines()[-1].startswith("Hint: ")


def test_json_is_one_object_on_one_line_whatever_the_program_and_its_tools_print(codemode, folder):
    (folder / "loud.py").write_text(
        "from tool_bindings import ToolRegistry\nregistry = ToolRegistry()\nprint('import')\n"
        "@registry.tool\ndef noisy() -> int:\n    'Make noise.'\n    print('body')\n    return 1\n"
    )
    code = "print('program')\nreturn await tools.noisy()"
    status, out, err = codemode("run", "--json", "--tools", "loud.py:registry", "-c", code)
    assert 0 == status, err
    outcome = json.loads(out)
    assert 1 == out.count("\n")
    assert (True, ["program"], 1) == (outcome["ok"], outcome["logs"], outcome["result"])
    assert ["import", "body"] == err.split()


def test_a_result_that_is_too_deep_for_json_readers_is_named(codemode):
    code = "x = []\nfor _ in range({}):\n    x = [x]\nreturn x"
    status, out, _ = codemode("run", "--json", "-c", code.format(499))
    assert (0, True) == (status, json.loads(out)["ok"])
    status, out, _ = codemode("run", "--json", "-c", code.format(500))
    outcome = json.loads(out)
    assert (1, "invalid-output") == (status, outcome["error"]["kind"])
    assert "501 levels deep; --json gives at most 500" in outcome["error"]["message"]
    assert "return lists and dicts that are less deep" == outcome["error"]["hint"]
    assert "result" not in outcome


def test_exact_integers_and_lone_surrogates_come_out_of_json(codemode):
    _, out, _ = codemode("run", "--json", "-c", "return [2**70, '\\ud800', -0.0]")
    assert [2**70, "\ud800", -0.0] == json.loads(out)["result"]
    assert "-0.0" in out


@pytest.mark.parametrize(("option", "value", "code", "kind", "hint"), [
    ("--compute-seconds", "0.3", "while True: pass", "timeout", "do less work in Python itself"),
    ("--max-output-bytes", "50", "print('x' * 100)", "output-limit", "print and return less"),
])  # fmt: skip
def test_limits_given_on_the_command_line_hold(codemode, option, value, code, kind, hint):
    status, out, _ = codemode("run", "--json", option, value, "-c", code)
    error = json.loads(out)["error"]
    assert (1, kind, hint) == (status, error["kind"], error["hint"].partition(":")[0])


def test_allow_leaves_a_program_nothing_else(codemode, folder):
    code = "return await tools.write(file_path='x', content='y')"
    status, out, _ = codemode("run", "--json", "--allow", "read", "-c", code)
    assert (1, False) == (status, json.loads(out)["ok"])
    assert not (folder / "x").exists()


def test_file_tools_work_under_the_root_and_not_beside_it(codemode, folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "a.txt").write_text("inside\n")
    (folder / "secret.txt").write_text("outside\n")
    read = "r = await tools.read(file_path={!r}); return r['lines'][0]['text']"
    assert (0, "inside\n", "") == codemode("run", "--root", "inner", "-c", read.format("a.txt"))
    status, out, err = codemode("run", "--root", "inner", "-c", read.format("../secret.txt"))
    assert (1, "") == (status, out)
    assert "outside\n" not in err


def test_a_program_cannot_rewrite_its_own_log_or_the_tool_file(codemode, folder):
    (folder / "mine.py").write_text("from tool_bindings import ToolRegistry\nregistry = ToolRegistry()\n")
    for name in ("e.jsonl", "mine.py"):
        code = f"await tools.write(file_path={name!r}, content='gone')"
        status, _, _ = codemode("run", "--events", "e.jsonl", "--tools", "mine.py:registry", "-c", code)
        assert 1 == status
    assert SessionLog.load(folder / "e.jsonl").losses == []
    assert "ToolRegistry" in (folder / "mine.py").read_text()


def test_a_call_prints_what_a_model_is_shown_or_its_value_as_json(codemode, folder):
    (folder / "a.txt").write_text("one\ntwo\n")
    status, out, err = codemode("call", "read", '{"file_path": "a.txt"}')
    assert (0, "") == (status, err)
    assert "1: one\n2: two\n" in out
    status, out, _ = codemode("call", "--json", "read", "-", typed='{"file_path": "a.txt"}')
    answer = json.loads(out)
    assert (0, True, 2) == (status, answer["ok"], answer["value"]["totalLines"])
    assert ("read", "succeeded") == (answer["record"]["tool"], answer["record"]["status"])


def test_a_failing_call_has_status_1_and_its_code(codemode, folder):
    status, out, err = codemode("call", "read", '{"file_path": "missing.txt"}')
    assert (1, "") == (status, out)
    assert err.startswith("Error: ")
    status, out, _ = codemode("call", "--json", "read", '{"file_path": "missing.txt"}')
    assert (1, "FS_NOT_FOUND") == (status, json.loads(out)["error"]["code"])


def test_check_names_what_is_bound_to_fail_and_runs_nothing(codemode, folder):
    assert (0, "nothing in it is bound to fail\n", "") == codemode("check", "-c", "print('not run')")
    (folder / "p.py").write_text("x = 1\nawait tools.raed(file_path='a')\n")
    status, out, err = codemode("check", "p.py")
    assert (1, "") == (status, out)
    first, *_, last = err.splitlines()
    assert first.startswith("bound to fail: AttributeError: unknown tool 'raed'. Did you mean tools.read?")
    assert "  line 2, in <module>: await tools.raed(file_path='a')" == last
    status, out, err = codemode("check", "-c", "def f(x):\n    return x.__class__\ny.__dict__")
    assert (1, "") == (status, out)
    assert err.startswith('bound to fail: PolicyError: the attribute "__class__" cannot be read')
    assert "Also:\nline 3, column 1: the attribute" in err
    assert err.endswith("\nHint: use type(obj), or type(obj).__name__ for the name\n")
    # Nothing was to be run, so nothing is said of a run.
    assert "run" not in err
    assert "(column 12)\n  line 2, in f: return x.__class__\n" in err
    status, out, err = codemode("check", "-c", "import os")
    assert (1, "") == (status, out)
    expected = "bound to fail: ImportError: No module named 'os' here: programs have no file system"
    assert err.startswith(expected)
    assert err.endswith("\n  line 1, in <module>: import os\n")
    status, out, _ = codemode("check", "--json", "-c", "return (")
    assert (1, False, "policy") == (status, json.loads(out)["ok"], json.loads(out)["error"]["kind"])


def test_the_doctor_knows_the_walls_a_run_reports(codemode):
    status, out, err = codemode("doctor", "--json")
    assert (0, "") == (status, err)
    assert isinstance(json.loads(out), dict)
    assert 1 == out.count("\n")
    _, run_out, _ = codemode("run", "--json", "-c", "return 1")
    status, out, err = codemode("doctor")
    assert (0, "") == (status, err)
    assert "\x1b" not in out
    for wall in json.loads(run_out)["isolation"]:
        assert wall in out


def test_a_full_disk_under_the_log_is_stated_and_the_run_goes_on(codemode, folder):
    # A file size limit fails writes as a full disk does; Python ignores the signal that comes with it.
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    code = "for i in range(20):\n    await tools.glob(pattern='*')\nreturn 'done'"
    status, out, err = codemode("run", "--events", "e.jsonl", "-c", code, preexec_fn=limit)
    assert (0, "done\n") == (status, out)
    assert "codemode: the event log 'e.jsonl' is incomplete: " in err
    assert (folder / "e.jsonl").stat().st_size <= 1500
    status, out, _ = codemode("events", "e.jsonl")
    assert 0 == status
    assert "missing: no result of run_code" in out
