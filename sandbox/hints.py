"""What to write instead, for the errors programs typically end with.

Knows: Python's messages, the expression that failed, plain data. Does not know: frames, the wire.

A hint is a function of `Failure`; `HINTS` is the list of them, asked in order. Nothing here runs code of
the program: values are looked at only if their type is exactly a plain one.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.facades.catalogue import module_names
from sandbox.values import FrozenDict, FrozenList

_MAX_SHOWN = 12
"""Keys or names listed in one hint. Arbitrary."""

_FOREIGN_LITERALS = {"null": "None", "undefined": "None", "true": "True", "false": "False", "nil": "None"}


@dataclass(frozen=True)
class Failure:
    """An exception as the hints see it."""

    error: BaseException
    message: str
    expression: str
    """Source text of the operation that failed; empty if unknown."""
    variables: Mapping[str, Any]
    """The variables of the frame it failed in."""


Hint = Callable[[Failure], str | None]


def find_hint(failure: Failure) -> str | None:
    """Return the first hint that fits."""
    for hint in HINTS:
        text = hint(failure)
        if text is not None:
            return text
    return None


def _missing_await(failure: Failure) -> str | None:
    if "coroutine" in failure.message and isinstance(failure.error, TypeError | AttributeError):
        return "a coroutine was used before it ran; write await in front of the call"
    return None


def _missing_key(failure: Failure) -> str | None:
    if not isinstance(failure.error, KeyError):
        return None
    node = _parse(failure.expression)
    if not isinstance(node, ast.Subscript):
        return None
    container = _value_of(node.value, failure.variables)
    if type(container) not in (dict, FrozenDict):
        return None
    keys = [key for key in container if type(key) in (str, int)]
    if not keys:
        return "the dict is empty"
    wanted = failure.error.args[0] if failure.error.args else None
    close = (
        difflib.get_close_matches(wanted, [key for key in keys if type(key) is str], 1)
        if type(wanted) is str
        else []
    )
    listed = ", ".join(repr(key) for key in keys[:_MAX_SHOWN]) + (", ..." if len(keys) > _MAX_SHOWN else "")
    return (f"did you mean {close[0]!r}? " if close else "") + f"the keys are: {listed}"


def _attribute_of_data(failure: Failure) -> str | None:
    if not isinstance(failure.error, AttributeError):
        return None
    found = re.search(
        r"'(dict|list|NoneType|str|int|float|bool)' object has no attribute '(\w+)'", failure.message
    )
    if found is None:
        return None
    kind, name = found.groups()
    if kind == "dict":
        return f'JSON objects are dicts: write value["{name}"], or value.get("{name}") if it may be missing'
    if kind == "list":
        return f'this is a list: loop over it, or take one item: value[0]["{name}"]'
    if kind == "NoneType":
        return "the value is None; test it before using it"
    return None


def _missing_name(failure: Failure) -> str | None:
    if not isinstance(failure.error, NameError):
        return None
    found = re.search(r"'([^']+)'", failure.message)
    if found is None:
        return None
    name = found.group(1)
    if name in _FOREIGN_LITERALS:
        return f"write {_FOREIGN_LITERALS[name]}"
    if (
        name in failure.variables
        or "referenced before" in failure.message
        or "not associated" in failure.message
    ):
        return "it is assigned later, or only in a branch that did not run"
    if name in module_names():
        return f"add: import {name}"
    known = [
        other
        for other in (*failure.variables, *dir(builtins))
        if type(other) is str and other[:1] not in ":_"
    ]
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    modules = difflib.get_close_matches(name, module_names(), 1)
    return f"add: import {modules[0]}" if modules else None


def _already_decoded(failure: Failure) -> str | None:
    if "the JSON object must be str" in failure.message:
        return "the value is decoded already; use it directly, without json.loads"
    if "is not JSON serializable" in failure.message:
        return (
            "convert it first: str(x), list(x), x.isoformat() or dataclasses.asdict(x); or pass default=str"
        )
    return None


def _wrong_index(failure: Failure) -> str | None:
    if not isinstance(failure.error, TypeError):
        return None
    if "string indices must be integers" in failure.message:
        return "the value is text, not a dict; if it holds JSON, decode it first: json.loads(value)"
    if "list indices must be integers" in failure.message:
        return "this is a list: loop over it, or take one item by number: value[0]"
    if "'builtin_function_or_method' object is not subscriptable" in failure.message:
        node = _parse(failure.expression)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            name = node.value.attr
            return f'JSON objects are dicts: write value["{name}"]; or call the method: .{name}()'
    if "unhashable type" in failure.message:
        return "dict keys and set items must be immutable; use a tuple, or json.dumps(value, sort_keys=True)"
    if "object is not callable" in failure.message:
        node = _parse(failure.expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
            return f"a variable of the program is called {node.func.id!r} and hides the builtin; rename it"
    return None


def _too_deep(failure: Failure) -> str | None:
    if isinstance(failure.error, RecursionError):
        return "the recursion has no end, or is too deep; use a loop with a list as stack"
    if isinstance(failure.error, MemoryError):
        return "keep less at a time: process items one by one, or let a tool filter"
    return None


HINTS: list[Hint] = [
    _missing_await,
    _missing_key,
    _attribute_of_data,
    _missing_name,
    _already_decoded,
    _wrong_index,
    _too_deep,
]


def _parse(expression: str) -> ast.expr | None:
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value_of(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """Evaluate a name, or constant subscripts of one, through exact dicts and lists only."""
    if isinstance(node, ast.Name):
        return variables.get(node.id)
    if isinstance(node, ast.Subscript):
        container = _value_of(node.value, variables)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else _value_of(node.slice, variables)
        if type(key) not in (str, int):
            return None
        if type(container) in (dict, FrozenDict):
            return dict.get(container, key)
        if (
            type(container) in (list, FrozenList)
            and type(key) is int
            and -len(container) <= key < len(container)
        ):
            return list.__getitem__(container, key)
    return None
