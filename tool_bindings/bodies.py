"""What kind of body a tool has.

Knows: functions and callable objects. Does not know: annotations, what bodies are given.
"""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["is_async"]


def is_async(function: Any) -> bool:
    """Whether calling a function gives a coroutine; an object may define an async `__call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
