"""`enum`: the standard library's, except that members cannot be made from dunder names.

Knows: enum. Does not know: the attribute rules.

The functional form `Enum("E", {...})` stores a dunder key as a plain class attribute, which would let a
program define what a class statement refuses. The base classes here have a metaclass that looks at the
names first.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from sandbox.facades.appearance import renamed
from sandbox.guards.ownership import mark_class
from sandbox.policy import names


class CheckedEnumType(enum.EnumMeta):
    """Metaclass of the program's enums."""

    def __call__(cls, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Look a member up, or create an enum from a list of names."""
        if cls._member_map_ or not (args or "names" in kwargs):
            return super().__call__(value, *args, **kwargs)
        # `module` and `qualname` would put the class elsewhere; `type` is a base the class builder has not
        # seen.
        if "type" in kwargs or len(args) > 1:
            raise TypeError("write a class statement to mix another type into an enum")
        wanted = _checked_members(kwargs.pop("names") if "names" in kwargs else args[0])
        kwargs.pop("module", None)
        kwargs.pop("qualname", None)
        created: type = super().__call__(value, wanted, module="__main__", **kwargs)
        mark_class(created)
        return created


CheckedEnumType.__call__.__qualname__ = "EnumType.__call__"
renamed({CheckedEnumType: "EnumType"})


def _checked_members(wanted: Any) -> list[Any]:
    if isinstance(wanted, str):
        wanted = str.__str__(wanted).replace(",", " ").split()
    items = (
        list(wanted.items())
        if isinstance(wanted, Mapping)
        else [item if isinstance(item, str) else tuple(item) for item in wanted]
    )
    for item in items:
        name = item if isinstance(item, str) else item[0]
        if type(name) is not str or names.is_dunder(name) or names.looks_like_guard(name):
            raise ValueError(f"invalid enum member name: {name!r}")
    return items


class Enum(enum.Enum, metaclass=CheckedEnumType):
    """Base class of enumerations."""


class IntEnum(enum.IntEnum, metaclass=CheckedEnumType):
    """Base class of enumerations whose members are integers."""


class StrEnum(enum.StrEnum, metaclass=CheckedEnumType):
    """Base class of enumerations whose members are strings."""


class Flag(enum.Flag, metaclass=CheckedEnumType):
    """Base class of enumerations whose members combine with | and &."""


class IntFlag(enum.IntFlag, metaclass=CheckedEnumType):
    """Base class of flag enumerations whose members are integers."""


ENUM_BASES = (Enum, IntEnum, StrEnum, Flag, IntFlag)


def enum_members() -> dict[str, object]:
    """Return what `import enum` offers."""
    for base in ENUM_BASES:
        base.__module__ = "enum"
    members: dict[str, object] = {base.__name__: base for base in ENUM_BASES}
    for name in [
        "CONFORM",
        "CONTINUOUS",
        "EJECT",
        "KEEP",
        "NAMED_FLAGS",
        "STRICT",
        "UNIQUE",
        "FlagBoundary",
        "auto",
        "member",
        "nonmember",
        "property",
        "unique",
        "verify",
        "EnumCheck",
    ]:
        members[name] = getattr(enum, name)
    return members
