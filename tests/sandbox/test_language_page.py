"""The page that describes the language says what the code does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from sandbox.policy import ProgramRefusedError, compile_program

ROOT = Path(__file__).parent.parent.parent


def load_generator():
    spec = importlib.util.spec_from_file_location(
        "language_reference", ROOT / "scripts" / "language_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_part_is_up_to_date():
    generator = load_generator()
    text = generator.PAGE.read_text(encoding="utf-8")
    assert generator.page_with(text, generator.reference()) == text


@pytest.mark.parametrize(
    "name",
    [
        "__globals__",
        "__code__",
        "__closure__",
        "__self__",
        "__func__",
        "__subclasses__",
        "__traceback__",
        "__cause__",
        "__context__",
        "gi_frame",
        "tb_frame",
        "f_globals",
        "cr_await",
    ],
)
def test_what_the_page_calls_refused_is_refused(name):
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    assert re.search(rf"`{name}`", page)
    with pytest.raises(ProgramRefusedError):
        compile_program(f"x.{name}")
