"""Methods of standard library classes refuse an object of another kind as `self`.

Knows: which classes are published. Does not know: attribute rules.

A method written in C checks its receiver. A method written in Python does not: `UserList.copy(int)` computes
`int.__class__(int)`, which is the real `type`, and `ChainMap.new_child(P, "X")` calls it with three
arguments. Reading a public method from a class is a native operation, so the check has to be in the method
itself. This changes the classes of this process, which exists to run programs; for a proper receiver
nothing changes.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import TYPE_CHECKING, Any

from sandbox.guards.ownership import class_dict, is_program_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_hardened: set[type] = set()


def harden(classes: Iterable[type]) -> None:
    """Make the public Python methods of `classes` and of their bases check their receiver; once per class."""
    for cls in classes:
        for base in cls.__mro__:
            if base not in _hardened and base.__module__ != __name__ and not is_program_class(base):
                _hardened.add(base)
                _harden_one(base)


def _harden_one(cls: type) -> None:
    for name, function in list(class_dict(cls).items()):
        if name[:1] != "_" and type(function) is FunctionType:
            type.__setattr__(cls, name, checked(function, cls))


def checked(function: Callable[..., Any], cls: type) -> Callable[..., Any]:
    """Return `function` for receivers that are instances of `cls`."""

    @functools.wraps(function)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, cls):
            raise TypeError(
                f"{cls.__name__}.{function.__name__}() needs a {cls.__name__!r} object, not a "
                f"{type(self).__name__!r}"
            )
        return function(self, *args, **kwargs)

    return method
