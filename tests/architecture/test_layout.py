"""The shape of the source tree."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("codemode", "sandbox", "tool_bindings")
MODULES = sorted(path for package in PACKAGES for path in (PROJECT / package).rglob("*.py"))

MAX_LINES = 600
"""A module that needs more has more than one job."""


def name_of(path):
    return str(path.relative_to(PROJECT))


def test_no_module_is_longer_than_one_job_needs():
    everything = [*MODULES, *(PROJECT / "tests").rglob("*.py"), *(PROJECT / "benchmarks").rglob("*.py")]
    sizes = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in everything}
    assert {} == {name: size for name, size in sizes.items() if size > MAX_LINES}


def test_every_module_says_what_it_is_for():
    silent = [
        name_of(path)
        for path in MODULES
        if path.stat().st_size and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [] == silent


def test_the_distribution_lists_exactly_the_packages_there_are():
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {
        ".".join(path.parent.relative_to(PROJECT).parts) for path in MODULES if path.name == "__init__.py"
    }
    assert sorted(found) == sorted(pyproject["tool"]["setuptools"]["packages"])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_marked_as_typed(package):
    assert (PROJECT / package / "py.typed").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_modules_is_a_package(package):
    folders = {path.parent for path in MODULES if path.is_relative_to(PROJECT / package)}
    assert [] == [name_of(folder) for folder in folders if not (folder / "__init__.py").exists()]
