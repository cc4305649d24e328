"""Large results packed for a worker: long lists as columns of numbers and texts, all else as JSON text.

Most of what large values are is rows with the same names. Their names are said once, their numbers as they
lie in memory, and their texts one after the other, so that taking them apart and putting them together is C's
work, and no digits are written and read again. It goes in parts, of so many items each, so that the worker
puts the first ones together while the host takes the others apart.

A part is a frame of its own. Its payload is a mark, the length of the head, the head, and columns. The head
is in JSON: whether this is the first part; the message, with null where a list was taken out, in the last
part and null in the others; the path of the list whose items these are; their names, null for atoms; and the
kind and length of each column.

Knows: that form, which is for one machine, and the frame around it. Does not know: limits, sockets.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sandbox import wire
from sandbox.freezing import freeze_own
from sandbox.frozen import FrozenDict, FrozenList, frozen_list, frozen_rows
from sandbox.json_text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.frozen import JsonValue

__all__ = ["MARK", "Part", "Unpacker", "pack"]

MARK: Final = ord("!")
"""First byte of a packed payload. JSON text begins otherwise."""
_LENGTH_BYTES: Final = 4
_MANY: Final = 256
"""Items from which on a list is taken out. Arbitrary: the text of a shorter one costs little."""
_ITEMS_PER_PART: Final = 1000
"""Arbitrary: so many rows stay in a processor's cache while they are worked on."""
_LEVELS: Final = 4
"""Levels of objects in which long lists are looked for. Arbitrary."""

_CONTAINERS: Final = frozenset({FrozenDict, FrozenList})
_COLUMN_TYPES: Final = frozenset({float, int, str})
_FLOATS: Final = "d"
_INTEGERS: Final = "q"
_TEXTS: Final = "texts"
_JSON: Final = "json"
"""Kinds of columns. The first two are type codes of arrays."""
_BETWEEN: Final = "\0"
"""What is between two texts of a column. A column with a text that holds it goes as JSON."""


class Part(NamedTuple):
    """A part of a packed message.

    Attributes:
        frame: Its frame, which it has for itself.
        most_json_bytes: What it holds of the value has no more bytes of JSON text than these.
    """

    frame: bytes
    most_json_bytes: int


class _LongList(NamedTuple):
    """A list that was taken out of a value.

    Attributes:
        path: Where it was, in objects.
        names: What all its items have in common, which are objects; None when they are atoms of one type.
        items: Its items.
    """

    path: list[str]
    names: list[str] | None
    items: Any


class _Column(NamedTuple):
    kind: str
    data: bytes
    most_json_bytes: int


def pack(name: str, number: int, value: JsonValue) -> Iterator[Part] | None:
    """Pack a message with a deep-frozen value; None when its JSON text serves as well.

    The parts belong together: between them no other packed message may be sent, unless this one is given up.
    """
    lists: list[_LongList] = []
    rest = _without_long_lists(value, [], lists)
    return _parts([name, number, rest], lists) if lists else None


def _without_long_lists(value: Any, path: list[str], lists: list[_LongList]) -> Any:
    """Return a value with null in place of its long lists, which are added to `lists`."""
    if type(value) is FrozenList and len(value) >= _MANY:
        names = _common_names(value)
        if names is None and not {type(value[0])} == set(map(type, value)) <= _COLUMN_TYPES:
            return value
        lists.append(_LongList(path, names, value))
        return None
    if (
        type(value) is not FrozenDict
        or len(path) == _LEVELS
        or _CONTAINERS.isdisjoint(map(type, value.values()))
    ):
        return value
    return {key: _without_long_lists(item, [*path, key], lists) for key, item in value.items()}


def _common_names(items: Any) -> list[str] | None:
    """Return the names that all of many objects have, in the same order; None when they are anything else."""
    if not {FrozenDict}.issuperset(map(type, items)):
        return None
    names = list(items[0])
    if not names:
        return None
    count = len(names) * len(items)
    # As names do not repeat within an object, it is enough that they do from object to object.
    if count == sum(map(len, items)) and names * len(items) == list(chain.from_iterable(items)):
        return names
    return None


def _parts(message: list[Any], lists: list[_LongList]) -> Iterator[Part]:
    is_first = True
    for path, names, items in lists:
        starts = range(0, len(items), _ITEMS_PER_PART)
        for start in starts:
            is_last = start == starts[-1] and path is lists[-1].path
            columns, names_bytes = _columns(names, items[start : start + _ITEMS_PER_PART])
            kinds = [[column.kind, len(column.data)] for column in columns]
            described: list[Any] = [is_first, message if is_last else None, path, names, kinds]
            head = encode(described)
            most_json_bytes = len(head) + names_bytes + sum(column.most_json_bytes for column in columns)
            yield Part(_frame(head, columns), most_json_bytes)
            is_first = False


def _columns(names: list[str] | None, items: list[Any]) -> tuple[list[_Column], int]:
    """Return columns, and what the JSON text of their items has besides atoms."""
    if names is None:
        return [_column(items)], 0
    fields = list(chain.from_iterable(map(dict.values, items)))
    # Two brackets and a comma for each object, and a colon for each name.
    names_bytes = len(items) * (3 + sum(len(encode(name)) + 1 for name in names))
    return [_column(fields[at :: len(names)]) for at in range(len(names))], names_bytes


def _column(items: list[Any]) -> _Column:
    kinds = set(map(type, items))
    if kinds == {float}:
        return _Column(_FLOATS, array(_FLOATS, items).tobytes(), 25 * len(items))
    if kinds == {int}:
        try:
            return _Column(_INTEGERS, array(_INTEGERS, items).tobytes(), 21 * len(items))
        except OverflowError:
            pass
    elif kinds == {str}:
        joined = _BETWEEN.join(items)
        if joined.count(_BETWEEN) == len(items) - 1:
            data = joined.encode("utf-8", "surrogatepass")
            return _Column(_TEXTS, data, 6 * len(data) + 3 * len(items))
    data = encode(items)
    return _Column(_JSON, data, len(data))


def _frame(head: bytes, columns: list[_Column]) -> bytes:
    pieces = [
        MARK.to_bytes(1, "little"),
        len(head).to_bytes(_LENGTH_BYTES, "little"),
        head,
        *(column.data for column in columns),
    ]
    return b"".join((sum(map(len, pieces)).to_bytes(wire.HEADER_BYTES, "little"), *pieces))


class Unpacker:
    """Puts packed messages together. For a worker: it trusts who packed them."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[tuple[str, ...], list[Any]] = {}

    def add(self, payload: memoryview) -> list[Any] | None:
        """Add a part; return the message when it was the last, its value deep-frozen."""
        begin = 1 + _LENGTH_BYTES
        end = begin + int.from_bytes(payload[1:begin], "little")
        head: Any = decode(str(payload[begin:end], "ascii"))
        is_first, message, path, names, kinds = head
        if is_first:
            self._lists = {}  # Those of a message that was given up.
        columns = []
        for kind, length in kinds:
            begin, end = end, end + length
            columns.append(_items(kind, payload[begin:end]))
        items = self._lists.setdefault(tuple(path), [])
        items += columns[0] if names is None else frozen_rows(names, columns)
        if message is None:
            return None
        for place, whole in self._lists.items():
            holder: Any = message
            key: Any = -1
            for name in place:
                holder, key = holder[key], name
            holder[key] = frozen_list(whole)
        self._lists = {}
        message[-1] = freeze_own(message[-1])
        return message  # type: ignore[no-any-return]  # a list, as it was packed


def _items(kind: str, data: memoryview) -> Any:
    if kind == _TEXTS:
        return str(data, "utf-8", "surrogatepass").split(_BETWEEN)
    if kind == _JSON:
        return decode(str(data, "ascii"), frozen=True)
    numbers = array(kind)
    numbers.frombytes(data)
    return numbers.tolist()
