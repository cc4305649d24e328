"""Plain text, bytes and numbers in place of instances of a program's subclasses of them.

Knows: how to get at the value underneath a subclass without running a method of it. Does not know: who asks.

Trusted code that caches by a key would believe a lying `__eq__` and `__hash__`, and trusted code that calls
a method of its argument would run the program's and pass it whatever it passes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_WHOLE = slice(None)


def exact(value: Any) -> Any:
    """Return a str, bytes, int or float of exactly that type; anything else comes back unchanged."""
    kind = type(value)
    if kind is str or kind is bytes or kind is int or kind is bool:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes.__getitem__(value, _WHOLE)
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else value


def on_exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with every argument made exact."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {name: exact(value) for name, value in kwargs.items()}
        return function(*map(exact, args), **kwargs)

    return call


def first_exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with its first argument made exact; the others go to C code that needs no help."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is not str:
            args = (exact(args[0]), *args[1:])
        return function(*args, **kwargs)

    return call
