"""Plain CPython: the program is compiled and executed in this process. No isolation of any kind."""

from __future__ import annotations

import ast
import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import shared
from measuring.protocol import serve_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from measuring.protocol import Case


async def run(program: str) -> Any:
    """Compile a program into a function, as anyone would, and await it."""
    module = ast.parse("async def program(): pass")
    function = module.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = ast.parse(program).body
    names: dict[str, Any] = {"add": shared.add, "rows": shared.rows, "asyncio": asyncio}
    exec(compile(module, "<program>", "exec"), names)
    return await names["program"]()


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield all workloads."""
    yield shared.cases(run, shared.returning("return {}"))


if __name__ == "__main__":
    serve_asyncio(open_cases())
