"""The scripts behind make: finding an interpreter, and keeping the virtual environment up to date."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FIND_PYTHON = PROJECT / "scripts" / "find-python"


def find(*arguments, path, **environ):
    done = subprocess.run(
        ["/bin/sh", FIND_PYTHON, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": f"{path}:/usr/bin:/bin", **environ},
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def command(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path):
    """Give a folder to put interpreters into."""
    return tmp_path / "bin"


def works_as(path):
    # A real interpreter behind another name; the exec keeps sys.executable honest.
    command(path, f'exec "{sys.executable}" "$@"')


def test_a_name_that_works_is_resolved_to_its_own_path(tools):
    works_as(tools / "python3.99")
    assert (0, sys.executable, "") == find("python3.99", path=tools)


def test_a_shim_that_fails_is_looked_up_among_the_versions_of_pyenv(tools, tmp_path):
    command(tools / "python3.99", "echo 'pyenv: version not selected' >&2; exit 127")
    works_as(tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python3.99")
    assert (0, sys.executable, "") == find("python3.99", path=tools, PYENV_ROOT=str(tmp_path / "pyenv"))
    (tmp_path / "pyenv").rename(tmp_path / ".pyenv")
    assert (0, sys.executable, "") == find("python3.99", path=tools, HOME=str(tmp_path))


def test_a_name_nothing_answers_to_is_one_clear_error(tools):
    status, out, err = find("python3.99", path=tools)
    assert (1, "") == (status, out)
    assert (
        "find-python: no working Python named 'python3.99'; give PYTHON=... the path of Python 3.11 or newer"
        == err
    )


def test_an_interpreter_that_is_too_old_is_named_with_its_version(tools):
    # Answers the version question and fails the check, as an old interpreter does.
    command(tools / "python3.9", "case $2 in *ensurepip*) exit 1;; *) echo 3.9.18;; esac")
    status, out, err = find("python3.9", path=tools)
    assert (1, "") == (status, out)
    assert (
        "find-python: python3.9 is Python 3.9.18 and lacks what is needed: 3.11 or newer, with venv and pip"
        == err
    )


def test_without_a_name_any_interpreter_that_works_is_taken(tools):
    command(tools / "python3", "exit 1")
    works_as(tools / "python3.13")
    assert (0, sys.executable, "") == find(path=tools)
    assert (0, sys.executable, "") == find("", path=tools)


# --- make_venv ---


@pytest.fixture
def make_venv(tmp_path, monkeypatch):
    """Give the script as a module whose steps are only noted, on a project of its own."""
    spec = importlib.util.spec_from_file_location(
        "make_venv_under_test", PROJECT / "scripts" / "make_venv.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text("[project]\noptional-dependencies = {dev = [], mcp = []}\n")
    monkeypatch.setattr(module, "PROJECT", project)
    monkeypatch.setattr(module, "PYPROJECT", project / "pyproject.toml")
    module.steps = []

    def run(step):
        module.steps.append(" ".join(map(str, step)))
        if "venv" in step:
            python = Path(step[-1]) / "bin" / "python"
            works_as(python)
            (Path(step[-1]) / "pyvenv.cfg").touch()

    monkeypatch.setattr(module, "run", run)
    return module


def test_a_new_environment_gets_the_project_with_every_extra_and_is_then_left_alone(
    make_venv, tmp_path, capsys
):
    venv = tmp_path / "venv"
    assert 0 == make_venv.main([str(venv)])
    create, install, compile_all = make_venv.steps
    assert create.endswith(f"-m venv {venv}")
    assert install.endswith(f"--editable {tmp_path}/project[dev,mcp]")
    assert "-m compileall -q" in compile_all
    assert compile_all.endswith(f"{tmp_path}/project/tool_bindings")
    assert "Creating venv with Python" in capsys.readouterr().out
    assert 0 == make_venv.main([str(venv)])
    assert 3 == len(make_venv.steps)


def test_a_changed_pyproject_is_installed_again_without_starting_over(make_venv, tmp_path):
    venv = tmp_path / "venv"
    make_venv.main([str(venv)])
    make_venv.PYPROJECT.write_text("[project]\noptional-dependencies = {dev = []}\n")
    make_venv.main([str(venv)])
    assert 5 == len(make_venv.steps)
    assert make_venv.steps[-2].endswith("[dev]")


def test_another_interpreter_rebuilds_only_when_it_was_asked_for(make_venv, tmp_path):
    venv = tmp_path / "venv"
    make_venv.main([str(venv)])
    stamp = venv / make_venv.STAMP
    record = json.loads(stamp.read_text())
    stamp.write_text(json.dumps({**record, "interpreter": "/usr/bin/python3.11 3.11.2"}))
    make_venv.main([str(venv), "--keep-interpreter"])
    assert 3 == len(make_venv.steps)
    make_venv.main([str(venv)])
    assert 6 == len(make_venv.steps)
    assert record == json.loads(stamp.read_text())


def test_an_installation_that_was_cut_off_is_done_again(make_venv, tmp_path):
    venv = tmp_path / "venv"
    make_venv.main([str(venv)])
    (venv / make_venv.STAMP).unlink()
    make_venv.main([str(venv)])
    assert 6 == len(make_venv.steps)


def test_a_folder_that_is_no_environment_is_never_removed(make_venv, tmp_path, capsys):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    assert 1 == make_venv.main([str(precious)])
    assert [] == make_venv.steps
    assert (precious / "file").exists()
    assert "is no virtual environment" in capsys.readouterr().err


def test_scripts_can_be_executed():
    for name in (".ci/run", "scripts/find-python", "scripts/demo"):
        assert os.access(PROJECT / name, os.X_OK), name


# --- .ci/run ---


def ci(tools, make, *pythons):
    """Run the CI script with a `make` that does what the shell text says; `$target` is what is to be made."""
    command(tools / "make", f'for target; do :; done\necho "$*" >> "{tools}/calls"\n{make}')
    return subprocess.run(
        ["bash", PROJECT / ".ci" / "run", *pythons],
        capture_output=True,
        text=True,
        env={"PATH": f"{tools}:/usr/bin:/bin", "TMPDIR": str(tools)},
    )


def test_ci_checks_and_tests_each_python_in_its_own_clean_environment(tools):
    done = ci(tools, "echo '12 passed, 1 skipped in 3.4s'")
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.endswith(
        "=== pytest\n"
        "python3.11: 12 passed, 1 skipped in 3.4s\n"
        "python3.13: 12 passed, 1 skipped in 3.4s\n"
        "all passed\n"
    )
    calls = [line.split() for line in (tools / "calls").read_text().splitlines()]
    assert ["venv", "check", "test"] * 2 == [call[-1] for call in calls]
    assert 2 == len({call[2] for call in calls})
    assert all(call[2].startswith("VENV=/") for call in calls)
    assert ["bin"] == [item.name for item in tools.parent.iterdir()]
    assert ["calls", "make"] == sorted(item.name for item in tools.iterdir())


@pytest.mark.parametrize(
    ("expected", "make"),
    [
        ("python3: check", '[ "$target" != check ]; status=$?; echo "3 passed in 1s"; exit $status'),
        ("python3: test", '[ "$target" != test ]; status=$?; echo "1 failed, 2 passed in 1s"; exit $status'),
        ("python3: install", '[ "$target" != venv ]; status=$?; echo "3 passed in 1s"; exit $status'),
        ("python3: no test passed", "echo 'no tests ran in 0.01s'"),
        ("python3: no test passed", "echo '7 skipped in 0.01s'"),
        ("python3: no test passed", "echo nothing"),
    ],
)
def test_ci_fails_on_any_failure_and_when_no_test_passed(tools, expected, make):
    done = ci(tools, make, "python3")
    assert 1 == done.returncode
    assert f"FAILED: {expected}" in done.stdout
    assert "all passed" not in done.stdout


def test_ci_fails_when_all_tests_that_need_a_program_were_skipped(tools):
    done = ci(
        tools, "echo 'needs_node: none of 3 tests was run'; echo '5 passed, 3 skipped in 1s'", "python3"
    )
    assert 1 == done.returncode
    assert "FAILED: python3: needs_node: none of 3 tests was run" in done.stdout
    done = ci(tools, "echo 'needs_node: 3 tests were skipped'; echo '5 passed, 3 skipped in 1s'", "python3")
    assert 0 == done.returncode


@pytest.mark.parametrize(("needed", "package"), [("node", "nodejs"), ("chromium", "chromium"), (None, None)])
def test_ci_installs_a_program_where_tests_need_it_and_it_is_missing(tools, tmp_path, needed, package):
    project = tmp_path / "project"
    for folder in (".ci", "tests"):
        (project / folder).mkdir(parents=True)
    shutil.copy(PROJECT / ".ci" / "run", project / ".ci" / "run")
    (project / "tests" / "test_x.py").write_text(f"@pytest.mark.needs_{needed}\n" if needed else "")
    command(tools / "make", "echo '1 passed in 1s'")
    command(tools / "apt-get", f'echo "$*" >> "{tools}/installed"')
    for name in ("bash", "sh", "dirname", "basename", "mktemp", "rm", "tee", "grep", "tail"):
        (tools / name).symlink_to(shutil.which(name))
    environ = {"PATH": str(tools), "TMPDIR": str(tools)}
    run = [tools / "bash", project / ".ci" / "run", "python3"]
    done = subprocess.run(run, capture_output=True, text=True, env=environ)
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    installed = tools / "installed"
    assert (["update -qq", f"install -qq --yes {package}"] if needed else []) == (
        installed.read_text().splitlines() if installed.exists() else []
    )
    if needed:
        installed.unlink()
        command(tools / needed, "")
        assert 0 == subprocess.run(run, capture_output=True, env=environ).returncode
        assert not installed.exists()
