# ruff: noqa: A002 -- the names and signatures are the library's
"""`inspect` for programs: what kind a thing is, and its docstring; nothing that leads into the interpreter.

Knows: kinds of objects. Does not know: frames, code, sources; this text runs as a program does.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable
from typing import Any, NoReturn

__all__ = [
    "cleandoc", "getdoc", "getsource", "isasyncgen", "isawaitable", "isbuiltin", "isclass", "iscoroutine",
    "iscoroutinefunction", "isfunction", "isgenerator", "ismethod", "ismodule", "isroutine",
]  # fmt: skip


def isclass(object: Any) -> bool:
    """Say whether it is a class."""
    return isinstance(object, type)


def isfunction(object: Any) -> bool:
    """Say whether it is a function written in Python."""
    return isinstance(object, types.FunctionType)


def ismethod(object: Any) -> bool:
    """Say whether it is a bound method written in Python."""
    return isinstance(object, types.MethodType)


def isbuiltin(object: Any) -> bool:
    """Say whether it is a function or method written in C."""
    return isinstance(object, types.BuiltinFunctionType)


def isroutine(object: Any) -> bool:
    """Say whether it is a function or method of any kind."""
    return isfunction(object) or ismethod(object) or isbuiltin(object)


def ismodule(object: Any) -> bool:
    """Say whether it is a module."""
    return isinstance(object, types.ModuleType) or type(object).__name__ == "module"


def isgenerator(object: Any) -> bool:
    """Say whether it is a generator."""
    return isinstance(object, types.GeneratorType)


def isasyncgen(object: Any) -> bool:
    """Say whether it is an asynchronous generator."""
    return isinstance(object, types.AsyncGeneratorType)


def iscoroutine(object: Any) -> bool:
    """Say whether it is a coroutine."""
    return isinstance(object, types.CoroutineType)


def isawaitable(object: Any) -> bool:
    """Say whether it can be awaited."""
    return isinstance(object, Awaitable)


def iscoroutinefunction(obj: Any) -> bool:
    """Say whether it is a function written with `async def`."""
    return asyncio.iscoroutinefunction(obj)


def cleandoc(doc: str) -> str:
    """Remove the indentation of a docstring."""
    first, *rest = doc.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    lines = [first.lstrip(), *(line[margin:] for line in rest)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines)


def getdoc(object: Any) -> str | None:
    """Return the docstring of an object, without its indentation."""
    doc = getattr(object, "__doc__", None)
    return cleandoc(doc) if isinstance(doc, str) else None


def getsource(object: Any) -> NoReturn:
    """Refuse: programs have no source files."""
    raise OSError("could not get source code: programs have no files")
