"""Hints for results of tools that a program wants to change: the expression that gives the changed value.

Knows: how changes are written. Does not know: values.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from sandbox.advice.words import code

if TYPE_CHECKING:
    from sandbox.advice.failed import Failed

_INSTEAD: Final = {
    "sort": "`sorted({0}, key=...)` gives a sorted list",
    "reverse": "`{0}[::-1]` gives the reversed list",
    "append": "`[*{0}, item]` gives a list with it",
    "insert": "`[item, *{0}]` gives a list with it",
    "extend": "`[*{0}, *more]` gives a list with them",
    "remove": "`[x for x in {0} if ...]` gives a list without it",
    "update": "`{{**{0}, ...}}` gives a dict with the changes",
    "setdefault": "`{0}.get(key, default)` reads with a default",
    "pop": "read with `{0}[...]`; a copy can be changed",
}


def read_only(failed: Failed) -> str | None:
    """Give the hint of a change to what a tool gave."""
    if not failed.text.startswith("this value is read-only"):
        return None
    match failed.node:
        case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in _INSTEAD:
            return _INSTEAD[method].format(code(base))
        case ast.Subscript(value=base, slice=ast.Constant(value=str()) as key, ctx=ast.Store()):
            return f"`{{**{code(base)}, {code(key)}: ...}}` gives a dict with the change"
    return None
