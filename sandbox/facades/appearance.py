"""What the functions and classes of this package are called in reprs and error texts.

Knows: the names Python's own have. Does not know: what they do.

A program's author reads `print() got an unexpected keyword argument`, and looks for `print`.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PACKAGE = "sandbox."


def named(function: Any, name: str, module: str = "builtins") -> Any:
    """Give a function of this package the name and module programs know it by; return it."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return function


def named_members(module: str, members: Mapping[str, object]) -> None:
    """Do so for every function and class of this package among a facade's members."""
    for name, member in members.items():
        if not str(getattr(member, "__module__", "")).startswith(_PACKAGE):
            continue
        if type(member) is types.FunctionType:
            named(member, name, module)
        elif isinstance(member, type):
            _place(member, module)


def plain_function(method: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """Return a bound method as a function, which does not show what it is bound to."""
    named(method.__func__, name, module)  # type: ignore[attr-defined]  # a bound method

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return named(call, name, module)  # type: ignore[no-any-return]  # what went in


def renamed(names: Mapping[type, str]) -> None:
    """Call classes, and with them their methods, what they are to a program."""
    for cls, name in names.items():
        for key, method in vars(cls).items():
            if type(method) is types.FunctionType:
                method.__qualname__ = f"{name}.{key}"
        for attribute in ("__name__", "__qualname__"):
            type.__setattr__(cls, attribute, name)
        _place(cls, "builtins")


def _place(cls: type, module: str) -> None:
    type.__setattr__(cls, "__module__", module)
    for method in vars(cls).values():
        if type(method) is types.FunctionType:
            method.__module__ = module
