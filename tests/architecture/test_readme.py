"""The README tells the truth: its examples run, its tables agree with the code."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from codemode import open_service
from codemode.settings import Settings
from sandbox.facades.catalogue import module_names
from sandbox.policy import ProgramRefusedError, compile_program
from tool_bindings import ToolRegistry

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
"""Language and text of every fenced block that names a language."""


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


def matches(expected, found):
    """Compare line by line; `...` stands for anything within a line."""
    pattern = "\n".join(
        ".*".join(map(re.escape, line.split("..."))) for line in expected.strip().splitlines()
    )
    return re.fullmatch(pattern, found.strip()) is not None


def test_the_two_commands_come_first():
    first = blocks("sh")[0].splitlines()
    assert ["make run", "make test"] == [line.split("#")[0].strip() for line in first]
    before = README[: README.index("```sh")]
    assert ["# Code Mode"] == [line for line in before.splitlines() if line]


@pytest.mark.needs_linux
def test_the_python_example_prints_what_the_readme_says(tmp_path):
    (program,), (expected,) = blocks("python"), blocks("text")
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    assert expected == done.stdout


def commands():
    """Yield each command of the console examples with the output shown below it."""
    for text in blocks("console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.needs_linux
def test_the_console_examples_print_what_the_readme_says(tmp_path):
    (tmp_path / "notes.txt").write_text("the first line\nthe second line\n")
    (tmp_path / "calls.jsonl").write_text("".join(blocks("jsonl")))
    environ = {**os.environ, "NO_COLOR": "1"}
    seen = 0
    for command, expected in commands():
        program, *arguments = shlex.split(command)
        assert "codemode" == program
        done = subprocess.run(
            [sys.executable, "-m", "codemode", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environ,
        )
        assert matches(expected, done.stdout + done.stderr), f"$ {command}\n{done.stdout}{done.stderr}"
        seen += 1
    assert seen >= 5


def limits_table():
    section = README[README.index("## Limits") : README.index("## The language")]
    return [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in section.splitlines()
        if row.startswith("| `")
    ]


def test_the_limits_table_agrees_with_the_settings():
    table = {name.strip("`"): default for name, default, _unit, _effect in limits_table()}
    settings = {field.name: getattr(Settings(), field.name) for field in dataclasses.fields(Settings)}
    # Neither is a limit; and the number of parked workers depends on the machine.
    del settings["isolation"], settings["parked_workers"]
    assert {name: f"{value:g}" if value < 10**6 else str(value) for name, value in settings.items()} == table


def test_every_limit_says_its_unit_and_what_happens():
    assert all(unit and effect for _name, _default, unit, effect in limits_table())


def language_row(name):
    section = README[README.index("## The language") : README.index("## Installing")]
    (row,) = (line for line in section.splitlines() if line.startswith(f"| {name} |"))
    return re.findall(r"`([^`]+)`", row.split("|")[2].partition(";")[0])


def test_the_modules_listed_are_those_a_program_can_import():
    assert list(module_names()) == language_row("Modules")


def test_what_is_listed_as_refused_is_refused():
    examples = language_row("Refused before it starts")
    assert len(examples) >= 5
    for example in examples:
        with pytest.raises(ProgramRefusedError):
            compile_program(example)


@pytest.mark.needs_linux
async def test_what_is_listed_as_failing_when_executed_starts_and_fails():
    examples = language_row("Fails when executed")
    assert len(examples) >= 3
    async with open_service(ToolRegistry()) as service:
        for example in examples:
            outcome = await service.run_code(example)
            assert "exception" == outcome.failure.kind, example


def test_every_link_to_a_file_leads_somewhere():
    targets = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert [] == [target for target in targets if not (PROJECT / target).exists()]


@pytest.mark.parametrize("name", ["docs/architecture.md", "docs/glossary.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_other_pages_lead_somewhere(name):
    page = PROJECT / name
    targets = re.findall(r"\]\((?!https?://)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [] == [target for target in targets if not (page.parent / target).exists()]


def test_every_module_the_architecture_page_names_exists():
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = re.findall(r"^\| `(\w+)` \| ", text[text.index("## The session log") :], re.MULTILINE)
    assert len(modules) >= 5
    assert [] == [name for name in modules if not (PROJECT / "codemode" / f"{name}.py").exists()]


def test_the_changelog_keeps_its_form():
    headings = re.findall(r"^## (.*)$", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert "[Unreleased]" == headings[0]
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])
