"""The arguments of a call, as far as they stand in its text.

Knows: syntax trees, JSON types. Does not know: which call it is.
"""

from __future__ import annotations

import ast
import difflib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.preflight.spaces import Parameters


class _Given(NamedTuple):
    """The arguments of one call."""

    values: dict[str, ast.expr]
    is_whole: bool
    """Whether there are no others, as `**more` might bring."""


def given_arguments(node: ast.Call, order: Sequence[str]) -> _Given | None:
    """Return the arguments of a call by name, or None when they have a form no call may have."""
    values = {word.arg: word.value for word in node.keywords if word.arg is not None}
    given = _Given(values, is_whole=len(values) == len(node.keywords))
    if not node.args:
        return given
    if order:
        by_position = dict(zip(order, node.args, strict=False))
        if len(node.args) > len(order) or by_position.keys() & values.keys():
            return None
        return _Given(by_position | values, given.is_whole)
    if len(node.args) > 1 or values:
        return None
    record = _record(node.args[0])
    # Beside one dict there may be a `**more`, if that is empty.
    return record and record._replace(is_whole=record.is_whole and given.is_whole)


def _record(node: ast.expr) -> _Given | None:
    """Return the arguments in one dict, or None when it cannot be a dict."""
    types = _json_types(node)
    if types is not None and "object" not in types:
        return None
    if not isinstance(node, ast.Dict):
        return _Given({}, is_whole=False)
    values = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    return _Given(values, is_whole=len(values) == len(node.keys))


_WHOLE: Final = frozenset({"integer", "number"})
_NOUNS: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "True or False",
    "null": "None",
    "array": "a list",
    "object": "a dict",
}
_SHOWN_CHARS: Final = 40
"""Longest constant quoted in an error. Arbitrary."""


def argument_faults(parameters: Parameters, given: _Given) -> list[str]:
    """List what is wrong with the arguments of a call."""
    faults = []
    for name, node in given.values.items():
        if name not in parameters.names:
            if parameters.is_closed:
                close = [
                    f' (did you mean "{known}"?)'
                    for known in difflib.get_close_matches(name, parameters.names, 1)
                ]
                faults.append(f'it has no argument "{name}"{"".join(close)}')
            continue
        types = _json_types(node)
        wanted = parameters.types.get(name)
        if wanted is not None and types is not None and not types & set(wanted):
            nouns = " or ".join(_NOUNS[kind] for kind in wanted)
            faults.append(f'"{name}" must be {nouns}, not {_shown(node, types)}')
        elif isinstance(node, ast.Constant) and types is not None and name in parameters.choices:
            choices = parameters.choices[name]
            if not any(_is_same(choice, node.value) for choice in choices):
                texts = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
                faults.append(f'"{name}" must be one of {texts}, not {_shown(node, types)}')
    if given.is_whole:
        missing = [name for name in parameters.required if name not in given.values]
        faults += [f'the required argument "{name}" is missing' for name in missing]
    return faults


def _json_types(node: ast.expr) -> frozenset[str] | None:
    """Return the JSON types an expression's value is of, None when that depends."""
    match node:
        case ast.Constant(value=None):
            return frozenset({"null"})
        case ast.Constant(value=bool()):
            return frozenset({"boolean"})
        case ast.Constant(value=int()):
            return _WHOLE
        case ast.Constant(value=float(value)):
            # JSON Schema takes 1.0 for an integer.
            return _WHOLE if value.is_integer() else frozenset({"number"})
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float())):
            types = _json_types(node.operand)
            return None if types == frozenset({"boolean"}) else types
        case ast.Constant(value=str()) | ast.JoinedStr():
            return frozenset({"string"})
        case ast.List() | ast.ListComp() | ast.Tuple():
            return frozenset({"array"})
        case ast.Dict() | ast.DictComp():
            return frozenset({"object"})
    return None


def _shown(node: ast.expr, types: frozenset[str]) -> str:
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    noun = _NOUNS["integer" if "integer" in types else min(types)]
    if not isinstance(node, ast.Constant) or len(text := repr(node.value)) > _SHOWN_CHARS:
        return noun
    return f"{noun.replace('a ', 'the ', 1).replace('an ', 'the ', 1)} {text}"


def _is_same(choice: object, value: object) -> bool:
    return choice == value and (choice is True or choice is False) == (value is True or value is False)
