"""Runs a program as a plain CPython module, for comparison: no policy, no guards, real modules."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import inspect
import io
import sys
from typing import Any

import harness

from sandbox import values


class _Returned(BaseException):
    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self.value = value


class _Returns(ast.NodeTransformer):
    """Turns the program's own `return` into an exception, which a module may raise."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        call = ast.Call(ast.Name("_Returned", ast.Load()), [node.value or ast.Constant(None)], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Raise(call, None), node))

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef  # noqa: N815  # names of ast


class _PlainTools:
    """The fixture tools as ordinary coroutine functions."""

    def __init__(self) -> None:
        self._host = harness._Host(frozen=False)

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._host.call(name, args[0] if args else kwargs)

        return call


class _LoopPolicy:
    """Lets a program call `asyncio.run` while it runs itself, as the sandbox does."""

    @staticmethod
    def run(main: Any) -> Any:
        outer = asyncio.events._get_running_loop()
        task = asyncio.tasks.current_task()
        asyncio.events._set_running_loop(None)
        asyncio.tasks._leave_task(outer, task)
        try:
            with asyncio.Runner() as runner:
                return runner.run(main)
        finally:
            asyncio.tasks._enter_task(outer, task)
            asyncio.events._set_running_loop(outer)


def run_plain(source: str) -> tuple[Any, str]:
    """Return the program's value (as JSON data) and what it printed."""
    tree = _Returns().visit(ast.parse(source))
    code = compile(tree, "<plain>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    names = {"__name__": "__main__", "__builtins__": builtins, "_Returned": _Returned, "tools": _PlainTools()}
    names["ToolCallError"] = harness.ToolCallError
    output = io.StringIO()
    real_run, real_main, real_stdin = asyncio.run, sys.modules["__main__"], sys.stdin
    module = type(sys)("__main__")
    module.__dict__.update(names)
    asyncio.run = _LoopPolicy.run
    sys.modules["__main__"] = module
    sys.stdin = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):

            async def wrapped() -> Any:
                try:
                    awaited = eval(code, module.__dict__)
                    if inspect.isawaitable(awaited):
                        await awaited
                except _Returned as returned:
                    return returned.value
                return None

            with asyncio.Runner() as runner:
                result = runner.run(wrapped())
    finally:
        asyncio.run, sys.modules["__main__"], sys.stdin = real_run, real_main, real_stdin
    return values.from_program(result), output.getvalue()
