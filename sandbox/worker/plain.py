"""A program without the language wall: plain CPython, for tests that prove the kernel wall alone.

Offers what `sandbox.policy` and `sandbox.guards` offer, and checks nothing.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

ENTRY_NAME = "__program__"


def compile_plain(source: str, filename: str) -> Any:
    """Compile the source as the body of one coroutine function; see `ENTRY_NAME`."""
    body = ast.parse(source, filename).body
    if body and isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    template = ast.parse(f"async def {ENTRY_NAME}(): pass", filename)
    function = template.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = body or function.body
    return compile(template, filename, "exec", dont_inherit=True)


def plain_globals(bindings: Mapping[str, object], write: Callable[[str, str], None]) -> dict[str, Any]:
    """Return globals with every builtin; `print` goes to the logs."""

    def print_to_logs(*parts: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        write("stdout", sep.join(map(str, parts)) + end)

    return {"__name__": "__main__", "__builtins__": {**vars(builtins), "print": print_to_logs}, **bindings}
