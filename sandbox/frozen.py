"""JSON values and their frozen form.

Knows: the type of a JSON value, and dicts and lists that refuse every change.
Does not know: how a value is checked or copied (`copying`).
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
    """Any lossless JSON value."""
else:
    # At run time the alias is a marker: a recursive union would have to be resolved in the namespace
    # of every module that annotates with it, and fail there.
    JsonValue = Annotated[Any, "JSON value"]

__all__ = [
    "FrozenDict",
    "FrozenList",
    "JsonValue",
    "frozen_dict",
    "frozen_dicts",
    "frozen_list",
    "frozen_rows",
    "set_field",
]

_T = TypeVar("_T", bound=type)


def _read_only(copy_hint: str, *names: str) -> Callable[[_T], _T]:
    """Make a class decorator that replaces the named methods by one that refuses."""

    def refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
        msg = f"this value is read-only; change a copy: {copy_hint}, or copy.deepcopy(value) for all levels"
        raise TypeError(msg)

    def decorate(cls: _T) -> _T:
        for name in names:
            setattr(cls, name, refuse)
        return cls

    return decorate


# `__setattr__` is among the names because `x.__class__ = other` goes through it.
_OBJECT_MUTATORS: Final = (
    "__init__",
    "__setattr__",
    "__delattr__",
    "__setstate__",
    "__setitem__",
    "__delitem__",
)


@_read_only("dict(value)", *_OBJECT_MUTATORS, "__ior__", "clear", "pop", "popitem", "setdefault", "update")
class FrozenDict(dict[str, JsonValue]):
    """A dict that refuses every change. Made by `freeze` and its like, never by calling the class.

    Everything inside it is frozen too. Copies (`dict(x)`, `x.copy()`, `x | y`, `copy.deepcopy`,
    unpickling) are ordinary mutable dicts.
    """

    __slots__ = ()

    fromkeys = dict.fromkeys

    def __init_subclass__(cls) -> NoReturn:
        msg = "FrozenDict cannot be subclassed; a subclass could undo the freeze"
        raise TypeError(msg)

    def copy(self) -> dict[str, JsonValue]:
        """Return an ordinary dict with the same (still frozen) items."""
        return dict(self)

    __copy__ = copy

    def __missing__(self, key: object) -> NoReturn:
        # As without it; but the frame of this call shows whoever explains the error which dict it was.
        raise KeyError(key)

    def __deepcopy__(self, _memo: dict[int, object]) -> JsonValue:
        return _thawed(self)

    def __reduce_ex__(self, _protocol: object) -> tuple[type, tuple[object, ...]]:
        return (dict, (dict(self),))


@_read_only(
    "list(value)", *_OBJECT_MUTATORS, "__iadd__", "__imul__",
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
)  # fmt: skip
class FrozenList(list[JsonValue]):
    """A list that refuses every change. Made by `freeze` and its like, never by calling the class.

    Everything inside it is frozen too. Copies (`list(x)`, `x.copy()`, `x[:]`, `x + y`,
    `copy.deepcopy`, unpickling) are ordinary mutable lists.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> NoReturn:
        msg = "FrozenList cannot be subclassed; a subclass could undo the freeze"
        raise TypeError(msg)

    def copy(self) -> list[JsonValue]:
        """Return an ordinary list with the same (still frozen) items."""
        return list(self)

    __copy__ = copy

    def __deepcopy__(self, _memo: dict[int, object]) -> JsonValue:
        return _thawed(self)

    def __reduce_ex__(self, _protocol: object) -> tuple[type, tuple[object, ...]]:
        return (list, (list(self),))


# The only ways in: the base types' own methods, bound once because freezing is a hot path.
_new_dict: Final[Callable[[type[FrozenDict]], FrozenDict]] = dict.__new__
_new_list: Final[Callable[[type[FrozenList]], FrozenList]] = list.__new__
_fill_dict: Final[Callable[[FrozenDict, dict[str, Any]], None]] = dict.update
_add_field: Final[Callable[[FrozenDict, str, Any], object]] = dict.setdefault
"""Faster than `__setitem__`, which is called through a wrapper."""
_fill_list: Final[Callable[[FrozenList, list[Any]], None]] = list.extend


def frozen_dict(items: dict[str, Any]) -> FrozenDict:
    """Wrap items that are already frozen; the caller vouches for them."""
    frozen = _new_dict(FrozenDict)
    _fill_dict(frozen, items)
    return frozen


set_field: Final[Callable[[FrozenDict, str, Any], None]] = dict.__setitem__
"""Puts a frozen item in the place of another in a mapping that its maker has not given away yet."""


def frozen_list(items: list[Any]) -> FrozenList:
    """Wrap items that are already frozen; the caller vouches for them."""
    frozen = _new_list(FrozenList)
    _fill_list(frozen, items)
    return frozen


def frozen_dicts(rows: list[dict[str, Any]]) -> list[FrozenDict]:
    """Wrap many objects whose items are already frozen; the caller vouches for them."""
    frozen = list(map(_new_dict, repeat(FrozenDict, len(rows))))
    deque(map(_fill_dict, frozen, rows), maxlen=0)  # Only to call it, without a loop of the interpreter's.
    return frozen


def frozen_rows(names: Iterable[str], columns: list[list[Any]]) -> list[FrozenDict]:
    """Make objects with the same names from columns of items that are already frozen.

    Args:
        names: At least one.
        columns: For each name as many items as there are objects.
    """
    frozen = list(map(_new_dict, repeat(FrozenDict, len(columns[0]))))
    for name, column in zip(names, columns, strict=True):
        deque(map(_add_field, frozen, repeat(name), column), maxlen=0)
    return frozen


def _thawed(value: JsonValue) -> JsonValue:
    from sandbox.copying import thaw  # noqa: PLC0415  # that module is built on this one

    return thaw(value)
