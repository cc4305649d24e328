"""Tasks and futures as programs see them: their state, and only the callbacks the program gave.

Knows: asyncio's tasks. Does not know: the loop, attribute rules.

asyncio puts callbacks of its own on the tasks of a program and shows them, and the files behind coroutines,
in `repr`. A program could have them compared with an object of its own, whose `__eq__` then holds them.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import reprlib
import types
import weakref
from asyncio import base_futures, base_tasks
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_Given = list[tuple[Any, Any]]

_given: weakref.WeakKeyDictionary[asyncio.Future[Any], _Given] = weakref.WeakKeyDictionary()
"""For each future the callbacks of the program, and what stands for each of them among asyncio's."""


def hide_internals() -> None:
    """Make the texts of tasks and futures tell their state and nothing of the process."""
    # An object of the program that looked like a future would be given asyncio's callbacks.
    for module in (asyncio, asyncio.futures, base_futures):
        vars(module)["isfuture"] = isfuture
    # The C classes call the functions that look these up.
    vars(base_futures)["_future_repr_info"] = _describe_future
    vars(base_tasks)["_task_repr_info"] = _describe_task


def isfuture(obj: object) -> bool:
    """Say whether an object is a future or task; no other may pass for one."""
    return isinstance(obj, asyncio.Future)


class CheckedSteps:
    """What a program's `__await__` returns, as the event loop may see it: it yields futures, or nothing.

    To anything else that calls itself a future the loop would give the callback that wakes a task up.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Any) -> None:
        self._steps = iter(steps)

    def __iter__(self) -> CheckedSteps:
        return self

    def __next__(self) -> Any:
        return _checked_step(next(self._steps))

    def send(self, value: Any) -> Any:
        """Go on, with what the loop answers."""
        return _checked_step(next(self._steps) if value is None else self._steps.send(value))

    def throw(self, *error: Any) -> Any:
        """Go on with an exception; steps that cannot take one end with it."""
        throw = getattr(self._steps, "throw", None)
        if throw is None:
            raise error[-1] if isinstance(error[-1], BaseException) else error[0]
        return _checked_step(throw(*error))

    def close(self) -> None:
        """End the steps."""
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()


def _checked_step(step: Any) -> Any:
    if step is None or isinstance(step, asyncio.Future):
        return step
    raise RuntimeError(f"__await__ yields futures or None, not a {type(step).__name__!r} object")


def _describe_future(future: asyncio.Future[Any]) -> list[str]:
    if not future.done():
        return ["pending"]
    if future.cancelled():
        return ["cancelled"]
    error = future.exception()
    return [
        "finished",
        f"result={reprlib.repr(future.result())}" if error is None else f"exception={error!r}",
    ]


def _describe_task(task: asyncio.Task[Any]) -> list[str]:
    info = _describe_future(task)
    if task.cancelling() and not task.done():
        info[0] = "cancelling"
    info.insert(1, f"name={task.get_name()!r}")
    return info


def callback_method(future: asyncio.Future[Any], name: str) -> Callable[..., Any]:
    """Return `add_done_callback` or `remove_done_callback` of a future, for programs."""

    def add_done_callback(fn: Callable[..., Any], /, *, context: Any = None) -> None:
        if context is not None and type(context) is not contextvars.Context:
            raise TypeError("a callback runs in the task's own context: leave out `context`")
        stands_for = functools.partial(fn)
        _given.setdefault(future, []).append((fn, stands_for))
        future.add_done_callback(stands_for, context=context)

    def remove_done_callback(fn: Callable[..., Any], /) -> int:
        given = _given.get(future, [])
        removed = [entry for entry in given if _is_same(entry[0], fn)]
        given[:] = [entry for entry in given if not any(entry is gone for gone in removed)]
        return sum(future.remove_done_callback(stands_for) for _, stands_for in removed)

    method = add_done_callback if name == "add_done_callback" else remove_done_callback
    method.__qualname__ = f"{type(future).__name__}.{name}"
    method.__module__ = "asyncio"
    return method


def _is_same(first: Any, second: Any) -> bool:
    if first is second:
        return True
    kind = type(first)
    if kind is not type(second):
        return False
    if kind is types.MethodType:
        # Reading a method from an object makes a new one each time.
        return first.__self__ is second.__self__ and first.__func__ is second.__func__
    if kind is types.BuiltinMethodType:
        return first.__self__ is second.__self__ and first.__name__ == second.__name__
    return False
