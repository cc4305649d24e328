"""What `type(x)` answers: a class the program may hold, or a stand-in that only names and recognises it.

Knows: the published classes. Does not know: attributes, modules.
"""

from __future__ import annotations

import types
from typing import Any, NoReturn

from sandbox.guards.ownership import is_program_class
from sandbox.values import FrozenDict, FrozenList

PUBLISHED: set[type] = set()
"""Foreign classes a program may hold: builtins and what the facades list. Filled when the facades are
built."""

_SHOWN_AS: dict[type, type] = {FrozenDict: dict, FrozenList: list}
"""Classes that answer as the plain type they behave like, so that `type(x) is dict` holds for a tool
result."""

_opaque: dict[type, type] = {}
_real: dict[type, type] = {}


class _StandInMeta(type):
    """Class of the stand-ins: they recognise instances, and refuse to be called, extended or changed."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is type_stand_in:
            return _one_argument_type(args, kwargs)
        raise TypeError(f"cannot create {cls.__name__!r} instances")

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real[cls])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(_real.get(subclass, subclass), _real[cls])

    def __repr__(cls) -> str:
        return f"<class {cls.__name__!r}>"

    def __getitem__(cls, item: Any) -> Any:
        if cls is not type_stand_in:
            raise TypeError(f"type {cls.__name__!r} is not subscriptable")
        return types.GenericAlias(cls, item)

    def __setattr__(cls, name: str, value: object) -> NoReturn:
        raise AttributeError(f"class {cls.__name__!r} is read-only")

    def __delattr__(cls, name: str) -> NoReturn:
        raise AttributeError(f"class {cls.__name__!r} is read-only")


def stand_in(real: type) -> type:
    """Return the stand-in of a class: its name, its place in isinstance, and nothing else."""
    known = _opaque.get(real)
    if known is None:
        known = _opaque[real] = _StandInMeta(
            real.__name__, (), {"__slots__": (), "__module__": "builtins", "__doc__": None}
        )
        _real[known] = real
    return known


type_stand_in: type = stand_in(type)
"""What the name `type` means in a program."""


def _one_argument_type(args: tuple[Any, ...], kwargs: dict[str, Any]) -> type:
    if len(args) != 1 or kwargs:
        raise TypeError("type() takes one argument here; write a class statement to create a class")
    return expose_type(type(args[0]))


def expose_type(cls: type) -> type:
    """Return what a program gets to hold for class `cls`."""
    if is_program_class(cls) or cls in PUBLISHED:
        return cls
    shown = _SHOWN_AS.get(cls)
    if shown is not None:
        return shown
    if issubclass(cls, type):
        return type_stand_in
    return stand_in(cls)


def type_of(value: object) -> type:
    """`type(value)` for programs."""
    return expose_type(type(value))
