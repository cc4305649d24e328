"""What kind of body a tool has.

Knows: functions and callable objects. Does not know: annotations, what bodies are given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["gives_coroutine", "is_async"]

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "_gives_coroutine"


def is_async(function: Any) -> bool:
    """Whether calling a function gives a coroutine; an object may define an async `__call__`."""
    return (
        inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(type(function).__call__)
        or getattr(function, _MARK, None) is function
    )


def gives_coroutine(function: F) -> F:
    """Mark a plain function that hands out the coroutine of another one; return it."""
    setattr(function, _MARK, function)
    return function
