"""Hints for parts that are not there: keys, indexes, items of a loop.

Knows: dicts, lists and texts. Does not know: attributes.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
from typing import TYPE_CHECKING, Any

from sandbox.advice.words import (
    DICTS,
    LISTS,
    NEAR,
    SCALARS,
    code,
    described,
    is_json_text,
    shown_keys,
    text_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.advice.failed import Failed


def missing_key(failed: Failed) -> str | None:
    """Give the hint of a key that is not there."""
    if not (isinstance(failed.node, ast.Subscript) and failed.error.args):
        return None
    found, value = failed.value_of(failed.node.value)
    if not found:
        value = failed.result
    if type(value) not in DICTS:
        return None
    key = failed.error.args[0]
    where = code(failed.node.value)
    if type(key) is not str and not any(type(known) is type(key) for known in dict.__iter__(value)):
        return f"`{where}` is a dict, not a list; {shown_keys(value)}"
    near = difflib.get_close_matches(key, text_keys(value), 1, NEAR) if type(key) is str else []
    start = f"did you mean {json.dumps(near[0])}? " if near else ""
    return f"{start}`{where}` is a dict; {shown_keys(value)}"


def missing_index(failed: Failed) -> str | None:
    """Give the hint of an index beyond the end."""
    if not isinstance(failed.node, ast.Subscript):
        return None
    found, value = failed.value_of(failed.node.value)
    if not found or type(value) not in (*LISTS, tuple, str):
        return None
    what = "characters" if type(value) is str else "items"
    return f"`{code(failed.node.value)}` has {len(value)} {what}; test its length first"


def method_for_key(failed: Failed) -> str | None:
    """`r.items` where "items" is a key: it gives the dict's method."""
    if failed.node is None or "method" not in failed.text:
        return None
    for node in ast.walk(failed.node):
        if isinstance(node, ast.Attribute):
            found, value = failed.value_of(node.value)
            if found and type(value) in DICTS and node.attr in value:
                return f'`{code(node)}` is a method of dicts: write `{code(node.value)}["{node.attr}"]`'
    return None


def wrong_index(failed: Failed) -> str | None:
    """A subscript of something that has other parts, or none."""
    if not isinstance(failed.node, ast.Subscript) or not re.search("subscript|indices|'slice'", failed.text):
        return None
    base = failed.node.value
    where = code(base)
    found, value = failed.value_of(base)
    if not found:
        if not failed.text.startswith("list indices"):
            return None
        return f"`{where}` is a list: its index is a whole number, as in `{where}[0]`"
    if value is None:
        return f"`{where}` is None: test for that before"
    if type(value) is str:
        return _loop_over_dict(failed, base) or text_advice(value, where)
    if type(value) in LISTS:
        key = failed.node.slice
        if value and type(value[0]) in DICTS:
            is_lacking = isinstance(key, ast.Constant) and key.value not in value[0]
            return part_of_items(value, where, None if is_lacking else f"[{code(key)}]")
        return f"`{where}` is a list of {len(value)}: its index is a whole number"
    if type(value) in DICTS:
        return f"`{where}` is a dict, not a list; {shown_keys(value)}"
    if type(value) in SCALARS:
        return f"`{where}` is {described(value)}: it has no parts"
    return None


def _loop_over_dict(failed: Failed, name: ast.expr) -> str | None:
    """`for x in a_dict: x["key"]`: x is a key."""
    if not isinstance(name, ast.Name):
        return None
    for node in ast.walk(failed.tree):
        if not isinstance(node, ast.For | ast.comprehension):
            continue
        if isinstance(node.target, ast.Name) and node.target.id == name.id:
            found, value = failed.value_of(node.iter)
            if found and type(value) in DICTS:
                return f"looping over a dict gives its keys: {_instead_of_loop(code(node.iter), value)}"
    return None


def _instead_of_loop(where: str, value: Any) -> str:
    lists = [key for key in text_keys(value) if type(value[key]) in LISTS]
    if len(lists) == 1:
        return f"write `for ... in {where}[{json.dumps(lists[0])}]`"
    return f"write `for key, value in {where}.items()`; {shown_keys(value)}"


def unpacked(failed: Failed) -> str | None:
    """`for key, value in a_dict`, and other loops whose items have another number of parts."""
    if not re.search("values to unpack|cannot unpack", failed.text):
        return None
    for node in _loops(failed):
        if not (isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2):
            continue
        found, value = failed.value_of(node.iter)
        where = code(node.iter, "...")
        if isinstance(node.iter, ast.Dict) or (found and type(value) in DICTS):
            return f"write `{where}.items()` to get keys and values"
        if found and type(value) in LISTS and value and type(value[0]) in DICTS:
            return (
                f"each item is one dict: write `for item in {where}`, or `enumerate({where})` to number them"
            )
        return (
            "each item must have two parts: `enumerate(items)` gives number and item, `a_dict.items()` key"
            " and value"
        )
    return None


def _loops(failed: Failed) -> Iterator[ast.For | ast.comprehension]:
    line = failed.node.lineno if failed.node is not None else None
    for node in ast.walk(failed.tree):
        if isinstance(node, ast.For | ast.comprehension) and (line is None or node.target.lineno == line):
            yield node


def part_of_items(value: Any, where: str, part: str | None) -> str:
    """Say that a list is one of dicts, and how to read a part of them, or which parts there are."""
    if part is None:
        keys = shown_keys(value[0]).replace("its keys are", "with the keys")
        return f"`{where}` is a list of {len(value)} dicts {keys}: take one, `{where}[0]`, or loop over it"
    return f"`{where}` is a list of {len(value)}: take one first, `{where}[0]{part}`, or loop over it"


def text_advice(value: str, where: str) -> str:
    """Say what to do with a text that was taken for data."""
    if is_json_text(value):
        return f"`{where}` is JSON text: `import json`, then `json.loads({where})` gives its data"
    return f"`{where}` is a str, not a dict"
