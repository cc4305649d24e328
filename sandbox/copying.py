"""Copies of values: the checks that make a value lossless JSON, and the walks that make it.

Every function has two paths. The fast one walks exact types recursively to a fixed depth and gives up
on anything unusual; the slow one is iterative, keeps track of the path, and either produces the value
or says what is wrong with it. They must accept the same values.

Knows: which Python objects are JSON values, and what to write instead of those that are not.
Does not know: JSON text (`json_text`).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import chain
from json.encoder import encode_basestring
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from sandbox.collector import MANY_CONTAINERS, uncollected
from sandbox.frozen import FrozenDict, FrozenList, frozen_dict, frozen_dicts, frozen_list
from sandbox.numerals import number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sandbox.frozen import JsonValue

__all__ = [
    "FAST_DEPTH",
    "GIVE_UP",
    "NotJsonError",
    "are_finite",
    "child_path",
    "freeze",
    "freeze_fast",
    "freeze_many",
    "from_program",
    "snapshot",
    "snapshot_frozen",
    "thaw",
]

FAST_DEPTH: Final = 64
"""Levels the recursive paths go down before the iterative ones take over (arbitrary: far above real
data, far below the interpreter's recursion limit wherever the caller stands)."""

_MANY: Final = 16
"""Items from which on it pays to look at all of them at once (arbitrary)."""

_MAX_PATH_CHARS: Final = 200
"""Characters of a path shown in an error (arbitrary: a path of 20 000 levels helps nobody)."""

GIVE_UP: Final[Any] = object()
"""What a fast path returns when the slow path must decide."""


class NotJsonError(ValueError):
    """A value is not lossless JSON; the caller's value is at fault.

    Attributes:
        path: Where it is, from the root label, for example `value.items[2]`.
        reason: What is wrong there and what to write instead.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f'"{path}" {reason}')
        self.path = path
        self.reason = reason


_ATOMS: Final = frozenset({str, int, bool, NoneType})
"""Exact types that are JSON as they are. Floats are not among them: they must be finite."""
_LASTING: Final = _ATOMS | {float, FrozenDict, FrozenList}
"""Exact types that are kept as they are, floats when they are finite."""


def snapshot(value: object, root: str = "value") -> JsonValue:
    """Copy a lossless JSON value into plain, detached dicts and lists.

    Strict: only exact `dict`, `list`, `str`, `int`, `float`, `bool`, `None` and our frozen types.
    No method of a foreign object is run. Shared parts are duplicated, `-0.0` stays `-0.0`, integers
    may have any size, lone surrogates are data, depth has no bound.

    Args:
        value: What to copy.
        root: Name of the value in error paths.

    Raises:
        NotJsonError: The value is not lossless JSON; says where and what to write instead.
    """
    plain = _plain_levels(value, FAST_DEPTH, generous=False)
    return _walk(value, root, _strict, frozen=False) if plain is GIVE_UP else plain


def snapshot_frozen(value: object, root: str = "value") -> JsonValue:
    """Copy like `snapshot`, into frozen containers. Parts that are already frozen are kept as they are."""
    frozen = freeze_fast(value)
    return _walk(value, root, _strict, frozen=True) if frozen is GIVE_UP else frozen


def freeze(value: JsonValue) -> JsonValue:
    """Return a deep-frozen copy of a lossless value; a frozen value is returned as it is."""
    return snapshot_frozen(value)


def thaw(value: JsonValue) -> JsonValue:
    """Return a plain, mutable copy of a lossless value, frozen or not."""
    return snapshot(value)


def from_program(value: object, root: str = "value") -> JsonValue:
    """Copy a value that a program hands out: a little more than JSON is understood.

    Also accepts tuples, named tuples, deques, Counter, defaultdict, OrderedDict, and subclasses
    (enums too) of `dict`, `list`, `str`, `int` and `float`. They are read through the base type's own
    iteration, never through overridden methods, so an object cannot lie about what it holds.

    Raises:
        NotJsonError: Anything else, naming the conversion to write.
    """
    plain = _plain_levels(value, FAST_DEPTH, generous=True)
    return _walk(value, root, _generous, frozen=False) if plain is GIVE_UP else plain


def _plain_levels(value: Any, depth: int, *, generous: bool) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is float:
        return value if value - value == 0 else GIVE_UP
    if not depth:
        return GIVE_UP
    if kind is dict or kind is FrozenDict:
        fields = dict(value)
        for key, item in fields.items():
            if type(key) is not str:
                return GIVE_UP
            if type(item) not in _ATOMS:
                item = _plain_levels(item, depth - 1, generous=generous)
                if item is GIVE_UP:
                    return GIVE_UP
                fields[key] = item
        return fields
    if kind is list or kind is FrozenList or (generous and kind is tuple):
        items = list(value)
        for index, item in enumerate(items):
            if type(item) not in _ATOMS:
                item = _plain_levels(item, depth - 1, generous=generous)
                if item is GIVE_UP:
                    return GIVE_UP
                items[index] = item
        return items
    if generous:
        exact = _generous(value)
        return GIVE_UP if exact is GIVE_UP else _plain_levels(exact, depth - 1, generous=True)
    return GIVE_UP


def freeze_fast(value: Any) -> Any:
    """Return the frozen value, or GIVE_UP when only the slow path can tell whether it is lossless."""
    return _freeze_levels(value, FAST_DEPTH)


def _freeze_levels(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _ATOMS or kind is FrozenDict or kind is FrozenList:
        return value
    if kind is float:
        return value if value - value == 0 else GIVE_UP
    if not depth:
        return GIVE_UP
    if kind is dict:
        # Copied before it is looked at, so that another thread cannot change it in between.
        fields = value.copy()
        for key, item in fields.items():
            if type(key) is not str:
                return GIVE_UP
            if type(item) not in _ATOMS:
                item = _freeze_levels(item, depth - 1)
                if item is GIVE_UP:
                    return GIVE_UP
                fields[key] = item
        return frozen_dict(fields)
    if kind is list:
        items = value.copy()
        if len(items) >= _MANY:
            frozen = freeze_many(items) if len(items) < MANY_CONTAINERS else uncollected(freeze_many, items)
            if frozen is not GIVE_UP:
                return frozen_list(frozen)
        for index, item in enumerate(items):
            if type(item) not in _ATOMS:
                item = _freeze_levels(item, depth - 1)
                if item is GIVE_UP:
                    return GIVE_UP
                items[index] = item
        return frozen_list(items)
    return GIVE_UP


def freeze_many(values: list[Any]) -> Any:
    """Freeze atoms, or objects of atoms, all at once and mostly in C.

    Returns:
        A list, the given one when nothing had to be frozen; GIVE_UP when only looking at one after the other
        can tell.
    """
    kinds = set(map(type, values))
    if kinds <= _LASTING:
        return values if float not in kinds or are_finite(values) else GIVE_UP
    if kinds != {dict}:
        return GIVE_UP
    # Copied before they are looked at, as above.
    rows = frozen_dicts(values)
    if not {str}.issuperset(map(type, chain.from_iterable(rows))):
        return GIVE_UP
    fields = list(chain.from_iterable(map(dict.values, rows)))
    kinds = set(map(type, fields))
    return rows if kinds <= _LASTING and (float not in kinds or are_finite(fields)) else GIVE_UP


def are_finite(values: list[Any]) -> bool:
    """Whether all floats among some values are finite."""
    return all(map(isfinite, [item for item in values if type(item) is float]))


class _Frame:
    """One open container of the iterative walk."""

    __slots__ = ("children", "key", "out", "source")

    def __init__(self, source: object, children: Iterator[tuple[Any, Any]], out: Any) -> None:
        self.source = source  # Keeps the object alive, so that its id stays its own.
        self.children = children
        self.out = out
        self.key: str | int = 0


def _walk(value: object, root: str, classify: Callable[[Any], Any], *, frozen: bool) -> JsonValue:
    """Copy iteratively; `classify` maps an object to an exact JSON type, or to `GIVE_UP`."""
    frames: list[_Frame] = []
    ancestors: set[int] = set()
    item: Any = value
    while True:
        exact = classify(item)
        kind = type(exact)
        if kind is dict or kind is list:
            if id(item) in ancestors:
                raise NotJsonError(
                    _path(root, frames), "contains itself; JSON has no cycles, write each part only once"
                )
            ancestors.add(id(item))
            if kind is dict:
                frames.append(_Frame(item, iter(list(exact.items())), {}))
            else:
                frames.append(_Frame(item, iter(list(enumerate(exact))), []))
        elif exact is GIVE_UP or (kind is float and exact - exact != 0):
            raise NotJsonError(_path(root, frames), _refusal(item))
        elif not frames:
            return exact  # type: ignore[no-any-return]  # classify let only exact JSON types through
        else:
            _attach(frames[-1], exact)
        # Close every container that has no children left, then take the next child.
        while True:
            frame = frames[-1]
            child = next(frame.children, None)
            if child is not None:
                break
            frames.pop()
            ancestors.discard(id(frame.source))
            done = frame.out
            if frozen:
                done = frozen_dict(done) if type(done) is dict else frozen_list(done)
            if not frames:
                return done  # type: ignore[no-any-return]  # built here from JSON parts only
            _attach(frames[-1], done)
        key, item = child
        if type(frame.out) is dict:
            exact_key = classify(key)
            if type(exact_key) is not str:
                raise NotJsonError(
                    _path(root, frames[:-1]), f"has the key {_key_text(key)}; write str(key) for every key"
                )
            if exact_key in frame.out:
                raise NotJsonError(
                    _path(root, frames[:-1]), f"has the key {encode_basestring(exact_key)} twice"
                )
            key = exact_key
        frame.key = key


def _attach(frame: _Frame, item: Any) -> None:
    if type(frame.out) is dict:
        frame.out[frame.key] = item
    else:
        frame.out.append(item)


def _strict(value: Any) -> Any:
    """Map to an exact type without running anything: our frozen types become plain ones."""
    kind = type(value)
    if kind is FrozenDict:
        return dict(value)
    if kind is FrozenList:
        return list(value)
    if kind in _ATOMS or kind is dict or kind is list or kind is float:
        return value
    return GIVE_UP


def _generous(value: Any) -> Any:
    """Map also the program-side conveniences to exact types, through the base types' own methods."""
    exact = _strict(value)
    if exact is not GIVE_UP:
        return exact
    kind = type(value)
    # `issubclass` on real types is answered by the interpreter; `isinstance` would ask `__class__`.
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, OrderedDict):
        # Its own order differs from the underlying dict's after move_to_end.
        return {key: dict.__getitem__(value, key) for key in OrderedDict.__iter__(value)}
    if issubclass(kind, dict):
        return dict(dict.items(value))
    if issubclass(kind, tuple):
        return list(tuple.__iter__(value))
    if issubclass(kind, list):
        return list(list.__iter__(value))
    if issubclass(kind, deque):
        return list(deque.__iter__(value))
    return GIVE_UP


def _path(root: str, frames: Iterable[_Frame]) -> str:
    return child_path(root, [frame.key for frame in frames])


def child_path(root: str, keys: Iterable[str | int]) -> str:
    """Write a path: `root.key[0]`, without the dot when the root is empty, cut when very long."""
    parts = [root]
    for key in keys:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        else:
            text = encode_basestring(key)[1:-1]
            parts.append(f".{text}" if len(parts) > 1 or root else text)
    path = "".join(parts)
    if len(path) > _MAX_PATH_CHARS:
        half = _MAX_PATH_CHARS // 2
        path = f"{path[:half]}…{path[-half:]}"
    return path


_real_name: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
_real_mro: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__

_CONVERSIONS: Final = {
    "set": "list(...)",
    "frozenset": "list(...)",
    "tuple": "list(...)",
    "list": "list(...)",
    "deque": "list(...)",
    "range": "list(...)",
    "generator": "list(...)",
    "map": "list(...)",
    "filter": "list(...)",
    "zip": "list(...)",
    "enumerate": "list(...)",
    "reversed": "list(...)",
    "dict_keys": "list(...)",
    "dict_values": "list(...)",
    "dict_items": "list(...)",
    "array": "list(...)",
    "ndarray": ".tolist()",
    "dict": "dict(...)",
    "mappingproxy": "dict(...)",
    "ChainMap": "dict(...)",
    "bytes": ".decode() for text or base64.b64encode(...).decode() for binary data",
    "bytearray": ".decode() for text or base64.b64encode(...).decode() for binary data",
    "memoryview": "base64.b64encode(...).decode()",
    "datetime": ".isoformat()",
    "date": ".isoformat()",
    "time": ".isoformat()",
    "timedelta": ".total_seconds()",
    "Decimal": "str(...) to keep every digit or float(...)",
    "Fraction": "str(...) or float(...)",
    "complex": "[z.real, z.imag]",
    "UUID": "str(...)",
    "PurePath": "str(...)",
    "Enum": ".value",
    "BaseException": "str(...)",
    "Match": ".group() or .groupdict()",
    "coroutine": "await before it",
    "Future": "await before it",
    "function": "a call of it",
    "method": "a call of it",
    "builtin_function_or_method": "a call of it",
    "type": "an instance's fields, not the class",
    "str": "str(...)",
    "int": "int(...)",
    "float": "float(...)",
}


def _refusal(value: Any) -> str:
    """Say why a value is not JSON and what to write; looks only at its real type."""
    kind = type(value)
    if kind is float:
        shown = "NaN" if value != value else "infinite"  # only NaN differs from itself
        return f"is {shown}; JSON has only finite numbers, write None or a string"
    name = _real_name(kind)
    article = "an" if name[:1] in "aeiouAEIOU" else "a"
    mro = _real_mro(kind)
    if any("__dataclass_fields__" in type.__getattribute__(base, "__dict__") for base in mro):
        return f"is {article} {name}; write dataclasses.asdict(...)"
    for base in mro:
        hint = _CONVERSIONS.get(_real_name(base))
        if hint is not None:
            return f"is {article} {name}; write {hint}"
    return f"is {article} {name}; write a dict, list, string or number made from it"


def _key_text(key: Any) -> str:
    kind = type(key)
    if kind in _ATOMS or kind is float:
        text = number_text(key) if kind is int else repr(key)
        return f"{text[:40]} ({_real_name(kind)})"
    return f"of type {_real_name(kind)}"
