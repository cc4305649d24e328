"""Hints for attributes that are not there.

Knows: what other languages call them, and what JSON data has instead. Does not know: keys and indexes.
"""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import difflib
import re
from typing import TYPE_CHECKING, Any, Final

from sandbox.advice.calls import awaited
from sandbox.advice.reading import part_of_items, text_advice
from sandbox.advice.words import DICTS, LISTS, NEAR, code, described, is_json_text, shown_keys

if TYPE_CHECKING:
    from sandbox.advice.failed import Failed


def missing_attribute(failed: Failed) -> str | None:
    """Give the hint of an attribute that is not there."""
    if not isinstance(failed.error, AttributeError):
        return None
    alone = re.match(r"unknown \w+ '(\w+)'", failed.text)
    if alone and alone[1] in failed.around.names and not hasattr(builtins, alone[1]):
        return f"write `{alone[1]}` alone"
    value, name = failed.error.obj, failed.error.name
    where = code(failed.node.value) if isinstance(failed.node, ast.Attribute) else "value"
    if type(name) is not str:
        return None
    if isinstance(value, BaseException) and type(value).__name__ in failed.around.names:
        return _missing_on_error(failed, value, where)
    if type(value) in DICTS:
        return _missing_on_dict(value, where, name)
    if type(value) in LISTS:
        return _missing_on_list(value, where, name)
    if type(value) is str:
        if name in ("get", "keys", "items", "values") or is_json_text(value):
            return text_advice(value, where)
        if name in _STRING_METHODS:
            return f"write {_STRING_METHODS[name].format(where)}"
    if value is None:
        return f"`{where}` is None: test for that before"
    if type(value) in (int, float, bool):
        return f"`{where}` is {described(value)}: it is the value itself"
    if type(value).__name__ in ("coroutine", "Future", "Task"):
        return awaited(failed.node)
    if type(value).__name__ == "function" and (label := repr(value)).startswith("<tool "):
        return f"call it: `await {label[6:-1]}(...)`"
    return _class_or_module(value, name) or _near_attribute(value, name)


def _class_or_module(value: object, name: str) -> str | None:
    """The module of that name for its class, and the other way round."""
    if value is dt.datetime:
        if name == "datetime":
            return "`datetime` is the class here, not the module: leave one `datetime.` out"
        if hasattr(dt, name):
            return f"`datetime` is the class here, not the module: add `from datetime import {name}`"
    elif repr(value).startswith("<module 'datetime'") and hasattr(dt.datetime, name):
        return f"`datetime` is the module here, not the class: write `datetime.datetime.{name}(...)`"
    return None


def _missing_on_dict(value: Any, where: str, name: str) -> str:
    if name in value:
        return f'a JSON object is a dict: write `{where}["{name}"]`'
    if name in ("append", "add", "push"):
        return f'a dict has no order to append to: write `{where}["key"] = ...` on a copy'
    if name in _DICT_METHODS:
        return f"write {_DICT_METHODS[name].format(where)}"
    return f'a JSON object is a dict, read by key: `{where}["key"]`; {shown_keys(value)}'


def _missing_on_list(value: Any, where: str, name: str) -> str | None:
    if name in _LIST_METHODS:
        return f"write {_LIST_METHODS[name].format(where)}"
    if name in ("get", "keys", "items", "values"):
        return f"`{where}` is a list of {len(value)}: take one with `{where}[0]`, or loop over it"
    near = _near_attribute(value, name)
    if near is None and value and type(value[0]) in DICTS:
        return part_of_items(value, where, f'["{name}"]' if name in value[0] else None)
    return near


_DICT_METHODS: Final = {
    "has_key": '`"key" in {}`',
    "has": '`"key" in {}`',
    "hasOwnProperty": '`"key" in {}`',
    "iteritems": "`{}.items()`",
    "entries": "`{}.items()`",
    "iterkeys": "`{}.keys()`",
    "itervalues": "`{}.values()`",
    "length": "`len({})`",
    "size": "`len({})`",
    "to_dict": "`{}`: it is a dict already",
    "dict": "`{}`: it is a dict already",
    "model_dump": "`{}`: it is a dict already",
    "toString": "`json.dumps({})`, after `import json`",
}
_LIST_METHODS: Final = {
    "push": "`{}.append(x)`",
    "add": "`{}.append(x)`",
    "length": "`len({})`",
    "size": "`len({})`",
    "len": "`len({})`",
    "map": "`[f(x) for x in {}]`",
    "forEach": "`for x in {}: ...`",
    "filter": "`[x for x in {} if ...]`",
    "find": "`next((x for x in {} if ...), None)`",
    "includes": "`x in {}`",
    "contains": "`x in {}`",
    "join": '`", ".join({})`',
    "first": "`{}[0]`",
    "last": "`{}[-1]`",
    "slice": "`{}[start:stop]`",
    "concat": "`{} + other`",
    "head": "`{}[:5]`",
}
_STRING_METHODS: Final = {
    "length": "`len({})`",
    "size": "`len({})`",
    "trim": "`{}.strip()`",
    "toUpperCase": "`{}.upper()`",
    "toLowerCase": "`{}.lower()`",
    "includes": "`x in {}`",
    "contains": "`x in {}`",
    "startsWith": "`{}.startswith(x)`",
    "endsWith": "`{}.endswith(x)`",
    "substring": "`{}[start:stop]`",
    "replaceAll": "`{}.replace(old, new)`",
    "append": "`{0} = {0} + x`",
    "decode": "`{}`: it is text already",
}


def _near_attribute(value: object, name: str) -> str | None:
    kind = type(value)
    if kind.__module__ not in ("builtins", "datetime", "re", "collections", "decimal"):
        return None
    public = [known for known in dir(kind) if known[:1] != "_"]
    near = difflib.get_close_matches(name, public, 1, NEAR)
    return f"did you mean `.{near[0]}`?" if near else None


def _missing_on_error(failed: Failed, error: BaseException, where: str) -> str | None:
    kind = type(error).__name__
    handlers = (node.name for node in ast.walk(failed.tree) if isinstance(node, ast.ExceptHandler))
    if where not in handlers:
        return error_as_value(f"'{kind}'")
    own = sorted(name for name in vars(error) if name[:1] != "_")
    more = f"; it has {', '.join(f'`{where}.{name}`' for name in own)}" if own else ""
    return f"`str({where})` is its text{more}"


def error_as_value(text: str) -> str:
    """Say how to tell a failed call among results."""
    kind = text.partition("'")[2].partition("'")[0]
    return f"a failed call became an item: test `isinstance(item, {kind})` before reading it"
