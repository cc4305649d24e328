"""`heapq`, `collections.namedtuple`, `copy`: functions that write to, or rebuild, what they are given.

Knows: those functions. Does not know: the attribute rules.
"""

from __future__ import annotations

import array
import collections
import copy
import datetime as dt
import decimal
import enum
import fractions
import heapq
import io
import random
import re
import types
import uuid
from typing import TYPE_CHECKING, Any

from sandbox.guards.attributes import read, write
from sandbox.guards.classes import open_class
from sandbox.guards.ownership import class_dict, is_program_class
from sandbox.guards.readonly import FrozenModule
from sandbox.policy import names
from sandbox.values import FrozenDict, FrozenList, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _on_own_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a heap function that refuses a frozen list, which its C code would write to."""

    def call(heap: Any, *args: Any) -> Any:
        if type(heap) is not list and isinstance(heap, FrozenList):
            raise TypeError("tool results are read-only; make a heap of a copy: heap = list(value)")
        return function(heap, *args)

    call.__name__ = call.__qualname__ = function.__name__
    return call


def heapq_members() -> dict[str, object]:
    """Return what `import heapq` offers."""
    members: dict[str, object] = {name: getattr(heapq, name) for name in ("merge", "nlargest", "nsmallest")}
    for name in (*_HEAP_FUNCTIONS, *_MAX_HEAP_FUNCTIONS):
        if hasattr(heapq, name):
            members[name] = _on_own_list(getattr(heapq, name))
    return members


_HEAP_FUNCTIONS = ("heapify", "heappop", "heappush", "heappushpop", "heapreplace")
_MAX_HEAP_FUNCTIONS = (
    "_heapify_max", "_heappop_max", "_heapreplace_max", "_siftdown", "_siftup",
    "heapify_max", "heappop_max", "heappush_max", "heappushpop_max", "heapreplace_max",
)  # fmt: skip
"""What ordinary code takes from `heapq` for max-heaps and changed priorities, documented or not."""


def namedtuple(
    typename: str,
    field_names: str | Iterable[str],
    *,
    rename: bool = False,
    defaults: Iterable[Any] | None = None,
    module: str | None = None,
) -> type:
    """Create a named tuple class; field names are identifiers without a leading underscore."""
    del module
    if not isinstance(field_names, str):
        given: Iterable[Any] = field_names
        listed = [str.__str__(name) if isinstance(name, str) else name for name in given]
        field_names = listed
        for name in listed:
            if type(name) is not str:
                raise TypeError(f"field names must be strings, not {type(name).__name__!r}")
    make: Callable[..., type] = collections.namedtuple  # noqa: PYI024  # this is namedtuple
    created = make(typename, field_names, rename=rename, defaults=defaults, module="__main__")
    open_class(created)
    return created


_IMMUTABLE: tuple[type, ...] = (
    int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), range, slice, type,
    property,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MappingProxyType, FrozenModule,
    enum.Enum, re.Pattern, re.Match, dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal,
    fractions.Fraction, uuid.UUID,
)  # fmt: skip
_COPYABLE: tuple[type, ...] = (
    list, dict, set, frozenset, tuple, bytearray, array.array, collections.deque, collections.OrderedDict,
    collections.defaultdict, collections.Counter, collections.ChainMap, collections.UserDict,
    collections.UserList, types.SimpleNamespace, random.Random, io.StringIO, io.BytesIO,
    decimal.Context, BaseException,
)  # fmt: skip


def _check_copyable(value: Any) -> None:
    kind = type(value)
    if not (is_program_class(kind) or isinstance(value, (*_IMMUTABLE, *_COPYABLE))):
        raise TypeError(f"a {kind.__name__!r} object cannot be copied; copy the data it holds")


def shallow_copy(x: Any) -> Any:
    """`copy.copy` for values and objects of the program."""
    if isinstance(x, FrozenDict | FrozenList):
        return x.copy()
    _check_copyable(x)
    if not is_program_class(type(x)) and isinstance(x, _IMMUTABLE):
        return x
    return _shallow(x, type(x))


def _shallow(value: Any, kind: type) -> Any:
    if _says_how(value, kind) and not hasattr(kind, "__copy__"):
        return rebuilt(value, kind, lambda part: part)
    return copy.copy(value)


def _says_how(value: Any, kind: type) -> bool:
    """Whether an object's class, or the object itself, has a method of the copy protocol."""
    own: Any = getattr(value, "__dict__", ())
    return is_program_class(kind) and (
        _defines(kind, names.COPY_PROTOCOL) or not names.COPY_PROTOCOL.isdisjoint(own)
    )


def _defines(kind: type, wanted: frozenset[str]) -> bool:
    """Whether a class of the program defines one of the methods."""
    return any(is_program_class(base) and not wanted.isdisjoint(class_dict(base)) for base in kind.__mro__)


def rebuilt(value: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """Copy an object whose class says how, in the way `copy` does it, and write only what a program may.

    The library's own would set whatever attribute the state names, on whatever object came out.
    """
    reduce = next(
        (name for name in ("__reduce_ex__", "__reduce__") if _defines(kind, frozenset({name}))), None
    )
    if reduce is not None:
        recipe = getattr(value, reduce)(*((4,) if reduce == "__reduce_ex__" else ()))
        if isinstance(recipe, str):
            return value
        make, arguments, state, items, entries = (*recipe, None, None, None, None)[:5]
        copied = make(*map(convert, arguments))
    else:
        copied, state, items, entries = _made_anew(value, kind, convert)
    if state is not None:
        _set_state(copied, convert(state))
    for item in items or ():
        read(copied, "append")(convert(item))
    for key, item in entries or ():
        copied[convert(key)] = convert(item)
    return copied


def _made_anew(value: Any, kind: Any, convert: Callable[[Any], Any]) -> tuple[Any, Any, Any, Any]:
    arguments: Any = ()
    options: Any = {}
    if _defines(kind, frozenset({"__getnewargs_ex__"})):
        arguments, options = value.__getnewargs_ex__()
    elif _defines(kind, frozenset({"__getnewargs__"})):
        arguments = value.__getnewargs__()
    elif not isinstance(value, (list, dict)) and kind.__new__ is not object.__new__:
        raise TypeError(f"a {kind.__name__!r} object cannot be copied so; define __copy__ and __deepcopy__")
    copied = kind.__new__(
        kind, *map(convert, arguments), **{key: convert(item) for key, item in options.items()}
    )
    if _defines(kind, frozenset({"__getstate__"})):
        state = value.__getstate__()
    else:
        state = (dict(getattr(value, "__dict__", {})), slot_values(value, kind))
    items = list.__iter__(value) if isinstance(value, list) else None
    entries = dict.items(value) if isinstance(value, dict) else None
    return copied, state, items, entries


def _set_state(copied: Any, state: Any) -> None:
    kind = type(copied)
    if _defines(kind, frozenset({"__setstate__"})):
        copied.__setstate__(state)
        return
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        for name, item in (part or {}).items():
            write(copied, name, item)


def slot_values(value: Any, kind: type) -> dict[str, Any]:
    """Return what the slots of an object hold."""
    found = {}
    for base in kind.__mro__:
        slots: Any = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            name = names.mangle(slot, base.__name__)
            if isinstance(base.__dict__.get(name), types.MemberDescriptorType) and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def deep_copy(x: Any, memo: dict[int, Any] | None = None) -> Any:
    """`copy.deepcopy` for values and objects of the program; each part is checked before it is copied."""
    memo = {} if memo is None else memo
    if type(memo) is not dict:
        raise TypeError("memo must be a dict")
    return _deep(x, memo)


def _deep(value: Any, memo: dict[int, Any]) -> Any:
    kind = type(value)
    if kind in (int, float, str, bool, type(None), bytes):
        return value
    known = memo.get(id(value), memo)
    if known is not memo:
        return known
    if kind is FrozenDict or kind is FrozenList:
        return thaw(value)
    result = _deep_of(value, kind, memo)
    memo[id(value)] = result
    # Keep the original alive while its id is a key.
    memo.setdefault(id(memo), []).append(value)
    return result


def _deep_of(value: Any, kind: type, memo: dict[int, Any]) -> Any:
    if kind is list:
        items: list[Any] = []
        memo[id(value)] = items
        items.extend(_deep(item, memo) for item in value)
        return items
    if kind is dict:
        entries: dict[Any, Any] = {}
        memo[id(value)] = entries
        for key, item in value.items():
            entries[_deep(key, memo)] = _deep(item, memo)
        return entries
    if kind is tuple:
        parts = tuple(_deep(item, memo) for item in value)
        known = memo.get(id(value), memo)
        if known is not memo:
            return known
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if kind is set or kind is frozenset:
        return kind(_deep(item, memo) for item in value)
    if is_program_class(kind):
        return _deep_object(value, kind, memo)
    if isinstance(value, _IMMUTABLE):
        return value
    if isinstance(value, tuple):
        return tuple.__new__(kind, (_deep(item, memo) for item in value))
    return _deep_foreign(value, kind, memo)


def _deep_object(value: Any, kind: type, memo: dict[int, Any]) -> Any:
    own = getattr(kind, "__deepcopy__", None)
    if own is not None:
        return own(value, memo)
    if isinstance(value, enum.Enum | type):
        return value
    if isinstance(value, tuple):
        return tuple.__new__(kind, (_deep(item, memo) for item in value))
    if _says_how(value, kind):
        return rebuilt(value, kind, lambda part: _deep(part, memo))
    result = copy.copy(value)
    memo[id(value)] = result
    for slot, item in slot_values(result, kind).items():
        object.__setattr__(result, slot, _deep(item, memo))
    state = getattr(result, "__dict__", None)
    if type(state) is dict:
        for key, item in list(state.items()):
            state[key] = _deep(item, memo)
    _deepen_contents(result, memo)
    return result


def _deep_foreign(value: Any, kind: type, memo: dict[int, Any]) -> Any:
    if not isinstance(value, _COPYABLE):
        raise TypeError(f"a {kind.__name__!r} object cannot be copied; copy the data it holds")
    result: Any = copy.copy(value)
    memo[id(value)] = result
    if isinstance(value, types.SimpleNamespace):
        for key, item in list(result.__dict__.items()):
            result.__dict__[key] = _deep(item, memo)
    elif isinstance(value, collections.UserDict | collections.UserList):
        result.data = _deep(result.data, memo)
    elif isinstance(value, collections.ChainMap):
        result.maps = [_deep(part, memo) for part in value.maps]
    else:
        _deepen_contents(result, memo)
    return result


def _deepen_contents(result: Any, memo: dict[int, Any]) -> None:
    """Replace the items of a copied list-, deque- or dict-like object by deep copies."""
    if isinstance(result, list):
        list.__setitem__(result, slice(None), [_deep(item, memo) for item in list.__iter__(result)])
    elif isinstance(result, collections.deque):
        items = [_deep(item, memo) for item in collections.deque.__iter__(result)]
        collections.deque.clear(result)
        collections.deque.extend(result, items)
    elif isinstance(result, dict):
        for key, item in list(dict.items(result)):
            dict.__setitem__(result, key, _deep(item, memo))


def copy_members() -> dict[str, object]:
    """Return what `import copy` offers."""
    shallow_copy.__name__ = shallow_copy.__qualname__ = "copy"
    deep_copy.__name__ = deep_copy.__qualname__ = "deepcopy"
    return {"copy": shallow_copy, "deepcopy": deep_copy, "error": copy.Error, "Error": copy.Error}
