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
    futures: Any = base_futures
    tasks: Any = base_tasks
    # The C classes call the functions that look these up.
    futures._future_repr_info = _describe_future
    tasks._task_repr_info = _describe_task


def _describe_future(future: Any) -> list[str]:
    info = [future._state.lower()]
    if future._state == "FINISHED":
        if future._exception is not None:
            info.append(f"exception={future._exception!r}")
        else:
            info.append(f"result={reprlib.repr(future._result)}")
    return info


def _describe_task(task: Any) -> list[str]:
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
