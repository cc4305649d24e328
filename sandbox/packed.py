"""Large results packed for a worker: long lists as columns of numbers and texts, all else as JSON text.

Most of what large values are is rows with the same names. Their names are said once, their numbers as they
lie in memory, and their texts one after the other, so that taking them apart and putting them together is C's
work, and no digits are written and read again.

A payload is a mark, the length of the head, the head, and the columns. The head is in JSON: the message, with
null where a list was taken out, and for each of these lists its path, its names (null for a list of atoms)
and the kind and length of each of its columns.

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
    from sandbox.frozen import JsonValue

__all__ = ["MARK", "Packed", "pack", "unpack"]

MARK: Final = ord("!")
"""First byte of a packed payload. JSON text begins otherwise."""
_LENGTH_BYTES: Final = 4
_CONTAINERS: Final = frozenset({FrozenDict, FrozenList})
_MANY: Final = 256
"""Items from which on a list is taken out. Arbitrary: the text of a shorter one costs little."""
_LEVELS: Final = 4
"""Levels of objects in which long lists are looked for. Arbitrary."""

_COLUMN_TYPES: Final = frozenset({float, int, str})
_FLOATS: Final = "d"
_INTEGERS: Final = "q"
_TEXTS: Final = "texts"
_JSON: Final = "json"
"""Kinds of columns. The first two are type codes of arrays."""
_BETWEEN: Final = "\0"
"""What is between two texts of a column. A column with a text that holds it goes as JSON."""


class Packed(NamedTuple):
    """A packed message.

    Attributes:
        frame: Its frame, which it has for itself.
        most_json_bytes: The JSON text of its value has no more bytes than these.
    """

    frame: bytes
    most_json_bytes: int


class _Column(NamedTuple):
    kind: str
    data: bytes
    most_json_bytes: int


def pack(name: str, number: int, value: JsonValue) -> Packed | None:
    """Pack a message with a deep-frozen value; None when its JSON text serves as well."""
    if not _has_long_list(value, _LEVELS):
        return None
    lists = _Lists()
    rest = lists.take_out(value, [], _LEVELS)
    if not lists.described:
        return None
    head = encode([[name, number, rest], lists.described])
    most_json_bytes = len(head) + lists.names_bytes + sum(column.most_json_bytes for column in lists.columns)
    pieces = [
        MARK.to_bytes(1, "little"),
        len(head).to_bytes(_LENGTH_BYTES, "little"),
        head,
        *(column.data for column in lists.columns),
    ]
    length = sum(map(len, pieces)).to_bytes(wire.HEADER_BYTES, "little")
    return Packed(b"".join((length, *pieces)), most_json_bytes)


def _has_long_list(value: Any, levels: int) -> bool:
    if type(value) is FrozenList:
        return len(value) >= _MANY
    if type(value) is not FrozenDict or not levels:
        return False
    return any(_has_long_list(item, levels - 1) for item in value.values() if type(item) in _CONTAINERS)


class _Lists:
    """The lists that are taken out of a value."""

    __slots__ = ("columns", "described", "names_bytes")

    def __init__(self) -> None:
        self.described: list[Any] = []
        self.columns: list[_Column] = []
        self.names_bytes = 0
        """What the JSON text has beside atoms."""

    def take_out(self, value: Any, path: list[str], levels: int) -> Any:
        """Return a value with null in place of its long lists."""
        if not _has_long_list(value, levels):
            return value
        if type(value) is FrozenDict:
            return {key: self.take_out(item, [*path, key], levels - 1) for key, item in value.items()}
        names = _common_names(value)
        if names is not None:
            fields = list(chain.from_iterable(map(dict.values, value)))
            columns = [_column(fields[at :: len(names)]) for at in range(len(names))]
            # Two brackets and a comma for each row, and a colon for each name.
            self.names_bytes += len(value) * (3 + sum(len(encode(name)) + 1 for name in names))
        elif {type(value[0])} == set(map(type, value)) <= _COLUMN_TYPES:
            columns = [_column(list(value))]
        else:
            return value
        self.described.append([path, names, [[column.kind, len(column.data)] for column in columns]])
        self.columns += columns
        return None


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


def unpack(payload: memoryview) -> list[Any]:
    """Return the message that was packed, its value deep-frozen."""
    begin = 1 + _LENGTH_BYTES
    end = begin + int.from_bytes(payload[1:begin], "little")
    head: Any = decode(str(payload[begin:end], "ascii"))
    message, described = head
    for path, names, kinds in described:
        columns = []
        for kind, length in kinds:
            begin, end = end, end + length
            columns.append(_items(kind, payload[begin:end]))
        holder = message
        place: Any = -1
        for key in path:
            holder, place = holder[place], key
        holder[place] = frozen_list(columns[0] if names is None else frozen_rows(names, columns))
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
