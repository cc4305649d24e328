"""The command line's grammar: each wrong one gives one line and status 2."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from codemode.cli import arguments, main

SEE_RUN = "(see `codemode run --help`)"
NO_PROGRAM = "codemode run: give one program: a FILE, `-` for standard input, or -c CODE"


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        ("codemode: the following arguments are required: COMMAND (see `codemode --help`)", []),
        (f"codemode run: unrecognized argument '--jsno' {SEE_RUN}", ["run", "--jsno", "x.py"]),
        (f"codemode run: unrecognized argument 'b.py' {SEE_RUN}", ["run", "a.py", "b.py"]),
        (f"codemode run: argument -c: expected one argument {SEE_RUN}", ["run", "-c"]),
        (NO_PROGRAM, ["run"]),
        (NO_PROGRAM, ["run", "x.py", "-c", "1"]),
        (
            f"codemode run: argument --wall-seconds: '-1' is not a number of seconds above 0 {SEE_RUN}",
            ["run", "-c", "1", "--wall-seconds=-1"],
        ),
        (
            f"codemode run: argument --memory-mb: '1_0' is not a whole number above 0 {SEE_RUN}",
            ["run", "-c", "1", "--memory-mb", "1_0"],
        ),
        (
            "codemode run: --description is blank; say in a few words what the program is for",
            ["run", "-c", "1", "--description", " "],
        ),
        ("codemode run: --root 'nowhere' does not exist", ["run", "-c", "1", "--root", "nowhere"]),
        (
            "codemode call: the following arguments are required: JSON (see `codemode call --help`)",
            ["call", "read"],
        ),
    ],
)
def test_a_wrong_command_line_gives_one_line_and_status_2(expected, arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert 2 == main(arguments)
    out, err = capsys.readouterr()
    assert "" == out
    assert [expected] == err.splitlines()


@pytest.mark.parametrize("value", ["nan", "inf", "0", "1e999", "ten", ""])
def test_seconds_are_finite_numbers_above_zero(value, capsys):
    assert 2 == main(["run", "-c", "1", "--wall-seconds", value])
    assert "is not a number of seconds above 0" in capsys.readouterr().err


def test_an_unknown_command_lists_those_there_are(capsys):
    assert 2 == main(["rnu"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "'rnu'" in line
    assert "'events'" in line


def test_with_json_a_wrong_command_line_gives_one_object_and_nothing_else(capsys):
    assert 2 == main(["run", "--json", "--nope"])
    out, err = capsys.readouterr()
    assert "" == err
    expected = {
        "ok": False,
        "error": {"kind": "usage", "message": "unrecognized argument '--nope' (see `codemode run --help`)"},
        "logs": [],
        "calls": [],
    }
    assert expected == json.loads(out)


def test_json_after_a_double_dash_is_not_an_option(capsys):
    assert 2 == main(["run", "--", "--json"])
    out, err = capsys.readouterr()
    assert "" == out
    assert ["codemode run: no such file: '--json'"] == err.splitlines()


def test_options_are_not_abbreviated(capsys):
    assert 2 == main(["run", "--js", "-c", "1"])
    assert "'--js'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [[], ["run"], ["check"], ["call"], ["tools"], ["batch"], ["stubs"], ["events"], ["doctor"], ["init"]],
)
def test_every_command_explains_itself_with_examples(command, capsys):
    assert 0 == main([*command, "--help"])
    out, err = capsys.readouterr()
    assert "" == err
    assert "usage: codemode" in out
    assert ("examples:" in out) == bool(command)


@pytest.mark.parametrize("command", [[], *([name] for name in sorted(arguments._COMMANDS))], ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert 0 == main([*command, "--help"])
    assert [] == [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]


@pytest.mark.parametrize(
    ("option", "value"), [("--token-file", "tokens.txt"), ("--allow-host", "example.org")]
)
def test_options_of_http_are_refused_without_http(option, value, capsys):
    assert 2 == main(["serve", option, value])
    expected = f"codemode serve: {option} is for HTTP only; add --http HOST:PORT, or leave {option} out"
    assert [expected] == capsys.readouterr().err.splitlines()


def test_the_version_is_the_distributions(capsys):
    from importlib.metadata import version

    assert 0 == main(["--version"])
    assert f"codemode {version('codemode')}\n" == capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"], ["run", "--nope"]])
def test_what_needs_no_tool_loads_nothing_heavy(arguments):
    program = (
        "import sys; from codemode.cli import main; status = main(sys.argv[1:]); "
        "print(sorted(m for m in ('trio', 'cattrs', 'jsonschema', 'RestrictedPython') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert "[]" == done.stdout.splitlines()[-1]
