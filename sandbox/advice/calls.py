"""Hints for calls that were not awaited, or handed to asyncio in another form than it takes.

Knows: what asyncio and unawaited calls say. Does not know: data.
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import TYPE_CHECKING, Final

from sandbox.advice.words import DICTS, LISTS, SCALARS, code, described
from sandbox.preflight.finder import part_text

if TYPE_CHECKING:
    from sandbox.advice.failed import Failed

_ASYNC_MANAGERS: Final = frozenset(
    {"TaskGroup", "Timeout", "Lock", "Semaphore", "BoundedSemaphore", "Condition", "aclosing"}
    | {"_AsyncGeneratorContextManager"}
)

_NOT_RUNNABLE: Final = (
    "unhashable type|awaitable is required|coroutine was expected|no coroutine|can't be used in 'await'"
)
"""What asyncio says of something that it cannot run."""


def not_awaited(failed: Failed) -> str | None:
    """Give the hint of a call whose value was worked with before it ran."""
    found = re.match(r"(\S.*)\(\.\.\.\) was not awaited", failed.text)
    if found is None:
        return None
    call = f"await {found[1]}(...)"
    match failed.node:
        case ast.Subscript(value=ast.Call()) | ast.Attribute(value=ast.Call()):
            part = part_text(failed.node)
            return f"put the await in brackets: `({call}){part}`" if part else f"write `{call}`"
        case ast.Call(func=ast.Call()):
            return f"it is called twice: write `{call}`"
    if any(isinstance(node, ast.AsyncFor) for node in failed.on_line()):
        return f"write `for ... in {call}`, without async"
    return None


def awaited(node: ast.expr | None) -> str:
    """Say how to use the value of a coroutine, task or future in place of itself."""
    match node:
        case ast.Subscript(value=base) | ast.Attribute(value=base):
            part = part_text(node)
            return f"write `(await {code(base)}){part}`" if part else f"write `await {code(base)}`"
    return "write `await` before the call that gives it"


def given_to_asyncio(failed: Failed) -> str | None:
    """Give the hint of something that asyncio cannot run: a list of calls, a value, a tool."""
    node = failed.node.value if isinstance(failed.node, ast.Await) else failed.node
    if failed.text.startswith("batch() takes"):
        return "it takes one list: `await codemode.batch([tools.a(...), tools.b(...)])`"
    if failed.text.startswith("Passing coroutines is forbidden"):
        return "write `await asyncio.gather(*calls)`; wait takes tasks, asyncio.create_task(call)"
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else code(node.func)
    if name not in ("gather", "create_task", "ensure_future", "wait_for", "shield", "wait", "as_completed"):
        return None
    if not re.search(_NOT_RUNNABLE, failed.text):
        return None
    for argument in node.args:
        label = failed.label_of(argument)
        if label is not None:
            return f"call it: `{label}(...)`"
        if isinstance(argument, ast.Await):
            return f"{name} takes the call, not its value: leave out `await` inside it"
        if name == "gather" and _is_many(failed, argument):
            return f"gather takes the calls one by one: write `await asyncio.gather(*{_starred(argument)})`"
        found, value = failed.value_of(argument)
        if isinstance(argument, ast.Constant) or (found and type(value) in (*SCALARS, *DICTS, *LISTS)):
            return f"`{code(argument)}` is a value already: give {name} the call itself, without `await`"
    if "Future" in failed.text.partition("got ")[2]:
        return "that runs already: `await` it"
    return None


def _is_many(failed: Failed, argument: ast.expr) -> bool:
    if isinstance(argument, ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp):
        return True
    found, value = failed.value_of(argument)
    return (
        found
        and type(value) in (list, tuple)
        and bool(value)
        and not any(type(item) in (*SCALARS, *DICTS, *LISTS) for item in value)
    )


def _starred(argument: ast.expr) -> str:
    if isinstance(argument, ast.GeneratorExp):
        return "[...]"
    return code(argument, "calls")


def context_manager(failed: Failed) -> str | None:
    """Give the hint of `with` for `async with`, and the other way round."""
    found = re.match(r"'([\w.]+)' object does not support the (asynchronous )?context manager", failed.text)
    if found is None:
        return None
    if found[2]:
        return "write `with`, without async"
    return "write `async with`" if found[1] in _ASYNC_MANAGERS else None


def looped_over(failed: Failed) -> str | None:
    """Give the hint of `async for` over what an ordinary loop takes."""
    if failed.text.startswith("'async for' requires"):
        return "write `for`, without async"
    return None


def called(failed: Failed) -> str | None:
    """Give the hint of a number or of a namespace that is called."""
    if "object is not callable" not in failed.text or not isinstance(failed.node, ast.Call):
        return None
    function = failed.node.func
    for word in failed.node.keywords:
        if word.arg == "key" and isinstance(word.value, ast.Constant):
            return f"key takes a function: `key=lambda item: item[{code(word.value)}]`"
    if isinstance(function, ast.Name) and function.id in failed.around.spaces:
        space = failed.around.spaces[function.id]
        return f"call a {space.noun} by its own name: `await {function.id}.NAME(key=value)`"
    if isinstance(function, ast.Name) and hasattr(builtins, function.id):
        return None
    found, value = failed.value_of(function)
    if found and type(value) in (int, float, bool, type(None)):
        return f"`{code(function)}` is {described(value)}, and no function"
    return None
