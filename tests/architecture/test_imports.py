"""Who may import whom."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codemode.cli.arguments import _parser
from sandbox import launch

PROJECT = Path(__file__).resolve().parents[2]


def test_the_import_contracts_hold():
    # As its own process: the linter imports the packages it looks at.
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=PROJECT, capture_output=True, text=True)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_importing_the_package_alone_loads_nothing_heavy():
    program = "import sys, codemode; print(sorted({'trio', 'cattrs', 'jsonschema'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True)
    assert ("[]\n", "") == (done.stdout, done.stderr)


NOT_FOR_A_RUN = {
    # Of the standard library: what costs a short run milliseconds and gives it nothing.
    "asyncio",
    "datetime",
    "decimal",
    "importlib.metadata",
    "importlib.resources",
    "multiprocessing",
    "uuid",
    # Of others: only some tools, schemas and servers need them.
    "cattrs",
    "jsonschema",
    "mcp",
    "opentelemetry",
    "psutil",
    "pydantic",
    # Of ours: what runs elsewhere, and what a run may call for, but this one does not.
    "RestrictedPython",
    "codemode.batch",
    "codemode.discovery",
    "codemode.prompt",
    "codemode.server",
    "codemode.session_log",
    "sandbox.guards",
    "sandbox.isolation.plan",
    "sandbox.policy",
    "sandbox.preflight.finder",
    "sandbox.worker",
    "tool_bindings.annotations",
    "tool_bindings.conversion",
    "tool_bindings.full_schema",
    "tool_bindings.mcp",
    "tool_bindings.timeouts",
}


BEFORE = "import sys; before = set(sys.modules);"
"""Leaves out what the installation itself loads when Python starts, as editable ones do."""


@pytest.mark.needs_linux
def test_a_short_run_loads_nothing_that_it_does_not_need():
    program = (
        f"{BEFORE} from codemode.cli import main; status = main(['run', '-c', 'return 1']);"
        "print(status, *set(sys.modules) - before)"
    )
    status, *loaded = fresh("-c", program).split()[1:]
    assert "0" == status
    assert "trio" in loaded
    assert set() == NOT_FOR_A_RUN & set(loaded)


def test_the_fork_server_is_launched_before_anything_heavy_is_loaded():
    program = f"{BEFORE} import codemode.cli, sandbox.launch; print(*set(sys.modules) - before)"
    loaded = set(fresh("-c", program).split())
    assert set() == {"argparse", "dataclasses", "inspect", "json", "logging", "pathlib", "trio"} & loaded


def test_a_command_learns_its_own_grammar_only():
    only_run = _parser("run").format_help()
    assert "run a program" in only_run
    assert "offer run_code to MCP clients" not in only_run
    assert "offer run_code to MCP clients" in _parser("--help").format_help()


NOT_FOR_THE_FORK_SERVER = {
    "_ssl",
    "importlib.metadata",
    "importlib.resources",
    "multiprocessing",
    "shutil",
    "tempfile",
    "zipfile",
}


def test_the_fork_server_loads_nothing_that_no_program_needs():
    before, main, _ = launch.START.partition("from sandbox.zygote import main\n")
    places = [path for path in sys.path if path.endswith("site-packages")]
    program = before.format(paths=[str(PROJECT), *places]) + main
    program += "import sandbox.worker.restricted; print(*sys.modules)"
    loaded = set(fresh("-I", "-S", "-c", program).split())
    assert "sandbox.zygote" in loaded
    assert set() == NOT_FOR_THE_FORK_SERVER & loaded


def fresh(*arguments):
    """Return what a Python process of its own prints."""
    done = subprocess.run([sys.executable, *arguments], cwd=PROJECT, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout
