"""The language without its wall: plain CPython, for tests that prove the kernel wall alone.

Offers what `sandbox.worker.restricted` offers, and checks nothing.
"""

from __future__ import annotations

import ast
import builtins
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType

    from sandbox.worker.loop import WireLoop

PROGRAM_FILE = "<program>"
_ENTRY_NAME = "__program__"


def compile_program(source: str, provided: frozenset[str]) -> tuple[CodeType, str]:
    """Compile the source as the body of one coroutine function."""
    body = ast.parse(source, PROGRAM_FILE).body
    if body and isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    module = ast.parse(f"async def {_ENTRY_NAME}(): pass", PROGRAM_FILE)
    function = module.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = body or function.body
    return compile(module, PROGRAM_FILE, "exec", dont_inherit=True), _ENTRY_NAME


def prepare_programs(count: int) -> None:
    """Have nothing to do ahead."""


def build_globals(
    bindings: Mapping[str, object],
    write: Callable[[str, str], None],
    modules: Mapping[str, object],
    hints: Mapping[str, str],
    loop: WireLoop,
) -> dict[str, Any]:
    """Return globals with every builtin; `print` goes to the logs."""

    def print_to_logs(*parts: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        write("stdout", sep.join(map(str, parts)) + end)

    return {"__name__": "__main__", "__builtins__": {**vars(builtins), "print": print_to_logs}, **bindings}


def surroundings(
    names: Mapping[str, Any],
    spaces: Mapping[str, object],
    modules: Mapping[str, object],
    hints: Mapping[str, str],
) -> None:
    """Have nothing to look at."""


def certain_errors(source: str, around: None, judges_imports: Mapping[str, Any] | None) -> list[Any]:
    """Foresee nothing: here every program runs."""
    return []


def describe(error: BaseException, source: str, around: None) -> dict[str, Any]:
    """Return the wire form of an exception's text and place."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == PROGRAM_FILE]
    return {
        "message": f"{type(error).__name__}: {error}"[:1000],
        "errorType": type(error).__name__,
        "line": frames[-1].lineno if frames else None,
    }
