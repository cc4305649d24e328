"""Hints for operations on the wrong kind of value.

Knows: how Python says so. Does not know: attributes, keys.
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import TYPE_CHECKING

from sandbox.advice.attributes import error_as_value
from sandbox.advice.calls import awaited
from sandbox.advice.conversions import not_a_number
from sandbox.advice.words import DICTS, LISTS, SCALARS, code, described

if TYPE_CHECKING:
    from sandbox.advice.failed import Failed


def not_usable(failed: Failed) -> str | None:
    """An operation on a number, None or a function that wants something else."""
    text = failed.text
    if "can't be used in 'await' expression" in text:
        return _awaited(failed)
    if text.startswith("the JSON object must be str"):
        return "the value is data already, not JSON text: use it without json.loads"
    if "is not JSON serializable" in text:
        return _serializable(text)
    if "object is not callable" in text:
        return _called(failed)
    if "builtin_function_or_method" in text:
        return _method(failed)
    if re.search("'(coroutine|Future|Task|_asyncio.Task)' object|(coroutine|Future|Task)'", text):
        return awaited(failed.node)
    if re.search(r"Error' object|Exception' object", text):
        return error_as_value(text)
    if "async_generator" in text:
        return "loop over it with `async for`"
    if "unsupported operand" in text or "can only concatenate" in text or "not supported between" in text:
        return _operands(text)
    if "can't multiply sequence by non-int" in text:
        return "convert one side: int(text) or float(text) makes a number of text"
    if "exceptions must derive from" in text:
        return 'write `raise ValueError("...")`'
    if text.startswith("dump() missing"):
        return "json.dumps(value) gives the text"
    if "offset-naive and offset-aware" in text:
        return "give both a time zone: datetime.now(timezone.utc), or value.replace(tzinfo=timezone.utc)"
    if (hint := not_a_number(text)) is not None:
        return hint
    if re.match(r"sequence item \d+: expected str instance", text):
        return "make text of the items first: join(str(item) for item in items), or a field of each"
    if text.startswith("unhashable type"):
        return _unhashable(text)
    if text.endswith(("is not iterable", "has no len()")) and failed.node is not None:
        node = failed.node
        if isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            node = node.generators[0].iter
        found, value = failed.value_of(node)
        if found and type(value) is int and text.endswith("is not iterable"):
            return f"`{code(node)}` is {described(value)}: write `range({code(node)})` to count"
        if found and type(value) in (int, float, bool, type(None)):
            return f"`{code(node)}` is {described(value)}"
    return None


def _awaited(failed: Failed) -> str | None:
    found = re.search(r"object (\w+) can't", failed.text)
    kind = found[1] if found else ""
    if (
        kind == "function"
        and isinstance(failed.node, ast.Await)
        and not isinstance(failed.node.value, ast.Call)
    ):
        return f"call it: `await {code(failed.node.value)}(...)`"
    if isinstance(failed.node, ast.Await) and isinstance(failed.node.value, ast.Await):
        return "one `await` gives the value already: leave out `await` once"
    is_data = isinstance(failed.node, ast.Await) and _is_data(failed, failed.node.value)
    if kind in ("list", "tuple") and not is_data:
        return "await each item, or all of them with `await asyncio.gather(*calls)`"
    if is_data or kind in ("dict", "str", "int", "float", "bool", "NoneType"):
        return "that is a value already, not a call: leave out `await`"
    return None


def _is_data(failed: Failed, node: ast.expr) -> bool:
    """Whether a list holds nothing that could be awaited."""
    found, value = failed.value_of(node)
    return found and type(value) in LISTS and all(type(item) in (*SCALARS, *DICTS) for item in value)


def _called(failed: Failed) -> str | None:
    if not isinstance(failed.node, ast.Call):
        return None
    function = failed.node.func
    found, value = failed.value_of(function)
    if isinstance(function, ast.Name) and hasattr(builtins, function.id) and found:
        return f"the program gave the name `{function.id}` another value: use a name of its own for that"
    if found and type(value) in (*DICTS, *LISTS, tuple, str):
        return f"read a part of `{code(function)}` with square brackets"
    return None


def _method(failed: Failed) -> str | None:
    """A method that is not called, or with the wrong brackets."""
    if isinstance(failed.node, ast.Subscript) and isinstance(failed.node.value, ast.Attribute):
        return f"methods take round brackets: `{code(failed.node.value)}({code(failed.node.slice)})`"
    for node in ast.walk(failed.node) if failed.node is not None else ():
        if isinstance(node, ast.Attribute):
            found, value = failed.value_of(node.value)
            if found and type(value) in (*DICTS, *LISTS, str) and hasattr(type(value), node.attr):
                number = f"; `len({code(node.value)})` is how many" if node.attr == "count" else ""
                return f"`{code(node)}` is a method: call it, `{code(node)}(...)`{number}"
    return None


def _serializable(text: str) -> str | None:
    kind = text.removeprefix("Object of type ").partition(" ")[0]
    advice = {
        "datetime": ".isoformat()",
        "date": ".isoformat()",
        "Decimal": "str(x) or float(x)",
        "set": "sorted(x) or list(x)",
        "bytes": ".decode()",
        "UUID": "str(x)",
    }
    return f"convert it first: {advice[kind]}, or give json.dumps default=str" if kind in advice else None


def _operands(text: str) -> str | None:
    kinds = set(re.findall(r"(?:'|\"|concatenate )(\w+)", text))
    if kinds == {"str", "datetime"} or kinds == {"str", "date"}:
        return "make a time of the text: datetime.fromisoformat(text), after `from datetime import datetime`"
    if kinds & {"list", "dict", "tuple"} and kinds & {"int", "float"} and "not supported between" in text:
        return "one side has items: compare how many, len(value), or one of them"
    if "NoneType" in kinds:
        return "one side is None: test for that before, or put another value in its place"
    if "str" in kinds and kinds & {"int", "float"}:
        return "convert one side: str(number) or an f-string for text, int(text) or float(text) for a number"
    if kinds == {"dict"} and "not supported between" in text:
        return 'say what to order by: key=lambda item: item["..."]'
    if kinds >= {"dict", "list"} or ("str" in kinds and kinds & {"dict", "list"}):
        return (
            "the two sides are of different kinds: take the part you mean, or make text of it with json.dumps"
        )
    return None


def _unhashable(text: str) -> str | None:
    kind = text.rpartition("'")[0].rpartition("'")[2]
    if kind == "slice":
        return "a dict has no order to slice: list(value.items())[:n]"
    if kind in ("dict", "list", "set"):
        return "a key must not change: use a tuple, or text such as json.dumps(value, sort_keys=True)"
    return None


def nothing_there(failed: Failed) -> str | None:
    """Give the hint of an operation that needs at least one item."""
    if re.search(r"(arg is an|iterable argument is) empty( sequence)?$", failed.text):
        return "there are no items: test for that before, or give default=..."
    if failed.text.startswith("pop from") and "empty" in failed.text:
        return "it is empty: test for that before"
    return None


def nested_loop(failed: Failed) -> str | None:
    """Give the hint of asyncio used in a way that needs no event loop."""
    if failed.text.startswith("asyncio.run() cannot be called"):
        return "write `await main()`: a program may use await anywhere"
    if "await wasn't used with future" in failed.text:
        return "write `await` before the call"
    return None


def too_large(locate_failure: Failed) -> str | None:
    """Give the hint of memory that ran out."""
    return "keep less at a time: take items one by one, or let a tool filter"


def too_deep(locate_failure: Failed) -> str | None:
    """Give the hint of a recursion without an end."""
    return "the recursion has no end, or is too deep: loop with a list as the stack"
