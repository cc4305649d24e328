"""Protocols that `isinstance` may ask about: the check reads attributes as the program itself might.

Knows: what a protocol demands. Does not know: which attributes are readable (the guards have the rule).

The library's own check reads attributes past the guards, and marks whatever it is given.
"""

from __future__ import annotations

import typing
from abc import ABCMeta
from typing import Any

from sandbox.facades.appearance import renamed
from sandbox.guards.attributes import read
from sandbox.guards.ownership import class_dict, is_program_class
from sandbox.policy import names

_checkable: set[type] = set()

_NOT_DEMANDED = frozenset(
    {
        "__class_getitem__", "__del__", "__doc__", "__init__", "__init_subclass__", "__match_args__",
        "__new__", "__post_init__", "__slots__",
    }
)  # fmt: skip
"""What a protocol may define without asking it of anything."""

_ProtocolType: Any = type(typing.Protocol)


class CheckedProtocolType(_ProtocolType):  # type: ignore[misc]  # without a public name
    """Metaclass of the program's protocols and of the classes that inherit from them."""

    def __instancecheck__(cls, instance: object) -> bool:  # noqa: N805  # its base is the type of typing.Protocol
        if not _is_protocol(cls):
            return ABCMeta.__instancecheck__(cls, instance)
        _require_checkable(cls)
        return cls in type(instance).__mro__ or all(_has(instance, name, cls) for name in _demanded(cls))

    def __subclasscheck__(cls, subclass: type) -> bool:  # noqa: N805  # as above
        if not _is_protocol(cls):
            return ABCMeta.__subclasscheck__(cls, subclass)
        if not isinstance(subclass, type):
            raise TypeError("issubclass() arg 1 must be a class")
        if cls in subclass.__mro__:
            return True
        _require_checkable(cls)
        demanded = _demanded(cls)
        if not all(callable(getattr(cls, name, None)) for name in demanded):
            raise TypeError("Protocols with non-method members don't support issubclass()")
        return all(_has(subclass, name, cls) for name in demanded)


renamed({CheckedProtocolType: "type"})


def _is_protocol(cls: type) -> bool:
    return class_dict(cls).get("_is_protocol") is True


def _require_checkable(cls: type) -> None:
    if cls not in _checkable:
        raise TypeError("Instance and class checks can only be used with @runtime_checkable protocols")


def _demanded(cls: type) -> list[str]:
    found: dict[str, None] = {}
    for base in cls.__mro__:
        if is_program_class(base) and _is_protocol(base):
            annotations: Any = class_dict(base).get("__annotations__", {})
            found.update(dict.fromkeys([*class_dict(base), *annotations]))
    return [
        name
        for name in found
        if name[:1] != names.HOOK_PREFIX
        and name not in names.MACHINERY_NAMES
        and name not in _NOT_DEMANDED
        and (not names.is_dunder(name) or name in names.DEFINABLE_METHODS)
    ]


def _has(value: Any, name: str, protocol: type) -> bool:
    try:
        found = read(value, name, literal=False)
    except AttributeError:
        return False
    # `__hash__ = None` says that there is none.
    return found is not None or not callable(getattr(protocol, name, None))


def runtime_checkable(cls: Any) -> Any:
    """Let `isinstance` ask whether an object has what a protocol of the program demands."""
    if not (isinstance(cls, type) and is_program_class(cls) and _is_protocol(cls)):
        raise TypeError(f"@runtime_checkable can be only applied to protocol classes, got {cls!r}")
    _checkable.add(cls)
    return cls
