"""The value contract: lossless JSON values, their frozen form, and their text.

Knows: which Python objects are JSON values, how to copy, freeze, encode, decode and measure them
at any depth and any integer size. It is the one leaf that `sandbox` and `tool_bindings` share, and
the worker loads it, so it needs nothing but the standard library.
Does not know: schemas, tools, frames, or who sends a value to whom.

Every function here has two paths. The fast one walks exact types recursively to a fixed depth and
gives up on anything unusual; the slow one is iterative, keeps track of the path, and either
produces the value or says what is wrong with it. They must accept the same values.
"""

from __future__ import annotations

import decimal
import json
import re
from collections import OrderedDict, deque
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from json.encoder import encode_basestring, encode_basestring_ascii
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
    """Any lossless JSON value."""
else:
    # At run time the alias is a marker: a recursive union would have to be resolved in the namespace
    # of every module that annotates with it, and fail there.
    JsonValue = Annotated[Any, "JSON value"]

__all__ = [
    "GIVE_UP",
    "FrozenDict",
    "FrozenList",
    "JsonValue",
    "NotJsonError",
    "child_path",
    "decode",
    "encode",
    "freeze",
    "freeze_fast",
    "from_program",
    "frozen_dict",
    "frozen_list",
    "json_size",
    "number_text",
    "snapshot",
    "snapshot_frozen",
    "string_size",
    "thaw",
]

_FAST_DEPTH: Final = 64
"""Levels the recursive paths go down before the iterative ones take over (arbitrary: far above real
data, far below the interpreter's recursion limit wherever the caller stands)."""

_MAX_PATH_CHARS: Final = 200
"""Characters of a path shown in an error (arbitrary: a path of 20 000 levels helps nobody)."""

_INT_TEXT_DIGITS: Final = 4000
"""Digits converted by `int` and `str` directly; the interpreter refuses more than 4300 by default."""

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


# --- frozen types -----------------------------------------------------------------------------------

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

    def __deepcopy__(self, _memo: dict[int, object]) -> JsonValue:
        return thaw(self)

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
        return thaw(self)

    def __reduce_ex__(self, _protocol: object) -> tuple[type, tuple[object, ...]]:
        return (list, (list(self),))


# The only ways in: the base types' own methods, bound once because freezing is a hot path.
_new_dict: Final[Callable[[type[FrozenDict]], FrozenDict]] = dict.__new__
_new_list: Final[Callable[[type[FrozenList]], FrozenList]] = list.__new__
_fill_dict: Final[Callable[[FrozenDict, dict[str, Any]], None]] = dict.update
_fill_list: Final[Callable[[FrozenList, list[Any]], None]] = list.extend


def frozen_dict(items: dict[str, Any]) -> FrozenDict:
    """Wrap items that are already frozen; the caller vouches for them."""
    frozen = _new_dict(FrozenDict)
    _fill_dict(frozen, items)
    return frozen


def frozen_list(items: list[Any]) -> FrozenList:
    """Wrap items that are already frozen; the caller vouches for them."""
    frozen = _new_list(FrozenList)
    _fill_list(frozen, items)
    return frozen


# --- copying and freezing ---------------------------------------------------------------------------

_ATOMS: Final = frozenset({str, int, bool, NoneType})
"""Exact types that are JSON as they are. Floats are not among them: they must be finite."""


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
    plain = _plain_levels(value, _FAST_DEPTH, generous=False)
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
    plain = _plain_levels(value, _FAST_DEPTH, generous=True)
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
    return _freeze_levels(value, _FAST_DEPTH)


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
        frozen = _new_dict(FrozenDict)
        _fill_dict(frozen, fields)
        return frozen
    if kind is list:
        items = value.copy()
        for index, item in enumerate(items):
            if type(item) not in _ATOMS:
                item = _freeze_levels(item, depth - 1)
                if item is GIVE_UP:
                    return GIVE_UP
                items[index] = item
        frozen_items = _new_list(FrozenList)
        _fill_list(frozen_items, items)
        return frozen_items
    return GIVE_UP


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


# --- refusals ---------------------------------------------------------------------------------------

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


# --- text -------------------------------------------------------------------------------------------

_compact: Final = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def encode(value: JsonValue) -> bytes:
    """Write a lossless value as compact ASCII JSON; lone surrogates are escaped.

    The value must be lossless already (`snapshot` and its like make it so).
    """
    try:
        return _compact(value).encode("ascii")
    except (RecursionError, ValueError):
        # Too deep for the C encoder, or an integer above the interpreter's digit limit.
        return _encode_slow(value).encode("ascii")


def _encode_slow(value: JsonValue) -> str:
    parts: list[str] = []
    # Work still to do, last first: text to write as it is, or a value in a 1-tuple.
    todo: list[Any] = [(value,)]
    while todo:
        step = todo.pop()
        if type(step) is str:
            parts.append(step)
            continue
        item = step[0]
        if isinstance(item, dict):
            todo.append("}")
            for position, (key, child) in reversed(list(enumerate(item.items()))):
                todo.append((child,))
                todo.append(("," if position else "") + encode_basestring_ascii(key) + ":")
            todo.append("{")
        elif isinstance(item, list):
            todo.append("]")
            for position, child in reversed(list(enumerate(item))):
                todo.append((child,))
                if position:
                    todo.append(",")
            todo.append("[")
        elif type(item) is int:
            parts.append(_int_text(item))
        else:
            parts.append(_compact(item))
    return "".join(parts)


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not JSON; only finite numbers are"
    raise ValueError(msg)


def _finite_float(text: str) -> float:
    number = float(text)
    if number - number != 0:
        msg = f"the number {text[:40]} is too large for a JSON number that a program can hold"
        raise ValueError(msg)
    return number


_decode_fast: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float).decode


def decode(data: bytes | str, *, frozen: bool = False) -> JsonValue:
    """Read one JSON value of any depth with integers of any size.

    Args:
        data: JSON text; bytes are UTF-8.
        frozen: Return a deep-frozen value instead of plain dicts and lists.

    Raises:
        ValueError: Not JSON: syntax, NaN or Infinity, bad UTF-8, or something after the value.
    """
    text = data if isinstance(data, str) else data.decode("utf-8")
    try:
        value: JsonValue = _decode_fast(text)
    except RecursionError:
        value = _decode_slow(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # The digit limit looks like this; so do our own refusals, which the slow path repeats.
        value = _decode_slow(text)
    return snapshot_frozen(value) if frozen else value


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: Final = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


def _decode_slow(text: str) -> JsonValue:
    """Parse iteratively: one open container per stack entry, with the key that waits for its value."""
    containers: list[Any] = []
    keys: list[str | None] = []
    position = _skip(text, 0)
    while True:
        opener = text[position : position + 1]
        if opener in ("{", "["):
            closer = "}" if opener == "{" else "]"
            after = _skip(text, position + 1)
            value: Any = {} if opener == "{" else []
            if text[after : after + 1] != closer:
                containers.append(value)
                keys.append(None)
                position = after
                if opener == "{":
                    keys[-1], position = _scan_key(text, position)
                continue
            position = after + 1
        else:
            value, position = _scan_atom(text, position)
        # The value is complete: put it into its container, and close what closes here.
        while True:
            position = _skip(text, position)
            if not containers:
                if position != len(text):
                    raise json.JSONDecodeError("Extra data", text, position)
                return value  # type: ignore[no-any-return]  # built here from JSON parts only
            top = containers[-1]
            mark = text[position : position + 1]
            if type(top) is dict:
                top[keys[-1]] = value
            else:
                top.append(value)
            if mark == ",":
                position = _skip(text, position + 1)
                if type(top) is dict:
                    keys[-1], position = _scan_key(text, position)
                break
            if mark != ("}" if type(top) is dict else "]"):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            value = containers.pop()
            keys.pop()
            position += 1


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _scan_key(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
    key, position = scanstring(text, position + 1, True)  # the C function takes no keywords
    position = _skip(text, position)
    if text[position : position + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, position)
    return key, _skip(text, position + 1)


def _scan_atom(text: str, position: int) -> tuple[Any, int]:
    head = text[position : position + 1]
    if head == '"':
        string, after = scanstring(text, position + 1, True)  # the C function takes no keywords
        return string, after
    if head in _WORDS:
        word, constant = _WORDS[head]
        if text.startswith(word, position):
            return constant, position + len(word)
    match = _NUMBER.match(text, position)
    if match is None:
        for constant_name in ("NaN", "Infinity", "-Infinity"):
            if text.startswith(constant_name, position):
                _refuse_constant(constant_name)
        raise json.JSONDecodeError("Expecting value", text, position)
    integer, fraction, exponent = match.groups()
    if fraction or exponent:
        return _finite_float(match.group()), match.end()
    return _int_from_text(integer), match.end()


# --- integers of any size ---------------------------------------------------------------------------


def _int_from_text(text: str) -> int:
    """Convert decimal digits without the interpreter's limit, in sub-quadratic time."""
    if len(text) <= _INT_TEXT_DIGITS:
        return int(text)
    if text.startswith("-"):
        return -_int_from_text(text[1:])
    # Halving keeps both factors of every product the same size, where multiplication is fastest.
    low_digits = len(text) // 2
    shift: int = 10**low_digits
    return _int_from_text(text[:-low_digits]) * shift + _int_from_text(text[-low_digits:])


def _int_text(number: int) -> str:
    """Write an integer in decimal without the interpreter's limit, in sub-quadratic time."""
    # 3.3 bits to a digit: below this many bits the direct conversion is always allowed.
    if number.bit_length() < 3 * _INT_TEXT_DIGITS:
        return int.__repr__(number)
    if number < 0:
        return "-" + _int_text(-number)
    # The decimal module multiplies in near-linear time, where int division is quadratic. A context
    # of its own: the exact result needs every digit, and the caller's settings stay untouched.
    exact = decimal.Context(
        prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact]
    )
    powers: dict[int, decimal.Decimal] = {}

    def power_of_two(bits: int) -> decimal.Decimal:
        power = powers.get(bits)
        if power is None:
            if bits <= 256:  # Arbitrary: small enough for the direct conversion.
                power = decimal.Decimal(1 << bits)
            else:
                half = bits >> 1
                power = exact.multiply(power_of_two(half), power_of_two(bits - half))
            powers[bits] = power
        return power

    def convert(part: int, bits: int) -> decimal.Decimal:
        if bits <= 256:
            return decimal.Decimal(part)
        half = bits >> 1
        high = part >> half
        low = part - (high << half)
        return exact.add(exact.multiply(convert(high, bits - half), power_of_two(half)), convert(low, half))

    return format(convert(number, number.bit_length()), "f")


# --- sizes ------------------------------------------------------------------------------------------

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def number_text(number: float) -> str:
    """Write a number as JavaScript does: `1.0` is `1`, `1e21` is `1e+21`, `1e-7` is `1e-7`.

    Integers are written exactly at any size, and `-0.0` as `-0`.
    """
    if type(number) is int:
        return _int_text(number)
    plain = repr(number)
    if "e" not in plain:
        # Without an exponent both languages write the same, but for a whole number's fraction.
        return plain.removesuffix(".0")
    sign, digits, exponent = decimal.Decimal(plain).as_tuple()
    assert isinstance(exponent, int), "a lossless number is finite"
    text = "".join(map(str, digits))
    stripped = text.rstrip("0") or "0"
    exponent += len(text) - len(stripped)
    minus = "-" if sign else ""
    if stripped == "0":
        return minus + "0"
    point = len(stripped) + exponent  # Digits before the decimal point; may be negative.
    if len(stripped) <= point <= 21:
        return minus + stripped + "0" * (point - len(stripped))
    if 0 < point <= 21:
        return f"{minus}{stripped[:point]}.{stripped[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{stripped}"
    mantissa = stripped[0] + (f".{stripped[1:]}" if len(stripped) > 1 else "")
    return f"{minus}{mantissa}e{point - 1:+d}"


def string_size(text: str) -> int:
    """Bytes of a string as JSON text in UTF-8, quotes and escapes included; a lone surrogate costs 6."""
    quoted = encode_basestring(text)
    if quoted.isascii():
        return len(quoted)
    try:
        return len(quoted.encode("utf-8"))
    except UnicodeEncodeError:
        # Written raw a surrogate would take 3 bytes, as an escape it takes 6.
        return len(quoted.encode("utf-8", "surrogatepass")) + 3 * len(_SURROGATE.findall(quoted))


def json_size(value: JsonValue) -> int:
    """Bytes of a lossless value as compact JSON text in UTF-8, numbers written as `number_text` does."""
    key_sizes: dict[str, int] = {}  # Keys repeat from row to row.
    size = -2  # The brackets of the list that holds the value.
    todo: list[Any] = [[value]]
    while todo:
        node = todo.pop()
        # Two brackets and a comma between neighbours; an object adds each key and its colon.
        size += 2 + max(len(node) - 1, 0)
        if isinstance(node, dict):
            for key in node:
                key_size = key_sizes.get(key)
                if key_size is None:
                    key_size = key_sizes[key] = string_size(key) + 1
                size += key_size
            node = node.values()
        for item in node:
            kind = type(item)
            if kind is str:
                size += string_size(item)
            elif kind is int or kind is float:
                size += len(number_text(item))
            elif item is None or kind is bool:
                size += 5 if item is False else 4
            else:
                todo.append(item)
    return size
