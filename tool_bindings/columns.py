"""The same acceptance for many values at once: rows are looked at column by column, mostly in C.

A tool that returns thousands of rows has thousands of values for each node of its schema. One by one they
cost a call each; together they cost a set of their types.

A compiled function answers GIVE_UP at the first doubt, and then the values are taken one by one.

Knows: the vocabulary's meaning, for whole lists. Does not know: single values (`acceptance`).
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import chain, islice, repeat
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sandbox.values import GIVE_UP, FrozenDict, FrozenList, are_finite, freeze_many, frozen_dicts, frozen_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    AcceptMany: TypeAlias = Callable[[list[Any]], Any]
    """Returns the frozen values in a list, the given one when nothing had to be frozen, or GIVE_UP."""

__all__ = ["compile_many"]

_TYPES: Final[dict[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "null": frozenset({NoneType}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
}
_OBJECTS: Final = frozenset({dict, FrozenDict})
_set_item: Final = dict.__setitem__


def compile_many(node: Mapping[str, Any], levels: int) -> AcceptMany:
    """Compile a node of the vocabulary for lists of values; below `levels` it always gives up."""
    if not levels:
        return _give_up
    if "oneOf" in node:
        return _one_of(node["oneOf"])
    type_name = node.get("type")
    if type_name is None:
        return freeze_many
    if type_name == "object":
        return _objects(node, levels - 1)
    if type_name == "array":
        return _arrays(node, levels - 1)
    scalars = _scalars(_TYPES[type_name])
    if "enum" in node or "const" in node:
        literals = frozenset(node["enum"]) if "enum" in node else frozenset({node["const"]})
        if "const" in node:
            literals &= {node["const"]}
        return _literals(scalars, literals)
    return scalars


def _give_up(_values: list[Any]) -> Any:
    return GIVE_UP


def _scalars(types: frozenset[type]) -> AcceptMany:
    def accept(values: list[Any]) -> Any:
        found = set(map(type, values))
        return values if found <= types and (float not in found or are_finite(values)) else GIVE_UP

    return accept


def _literals(scalars: AcceptMany, literals: frozenset[Any]) -> AcceptMany:
    def accept(values: list[Any]) -> Any:
        # The types come first, so that True is never looked up among numbers.
        return values if scalars(values) is not GIVE_UP and literals.issuperset(values) else GIVE_UP

    return accept


def _one_of(arms: list[Mapping[str, Any]]) -> AcceptMany:
    """Accept scalars of types that exactly one arm takes, whatever their value."""
    takers: Counter[type] = Counter()
    for arm in arms:
        if arm.get("type") not in _TYPES or "enum" in arm or "const" in arm:
            return _give_up
        takers.update(_TYPES[arm["type"]])
        if arm["type"] == "integer":
            takers[float] += 2  # It takes some floats, so none of them is certain to be one arm's alone.
    return _scalars(frozenset(kind for kind, count in takers.items() if count == 1))


def _arrays(node: Mapping[str, Any], levels: int) -> AcceptMany:
    accept_items = compile_many(node.get("items", {}), levels)

    def accept(values: list[Any]) -> Any:
        kinds = set(map(type, values))
        if kinds == {list}:
            # Copied before they are looked at, so that another thread cannot change them in between.
            copies = list(map(list.copy, values))
        elif kinds == {FrozenList}:
            copies = values
        else:
            return GIVE_UP
        items = list(chain.from_iterable(copies))
        taken = accept_items(items) if items else items
        if taken is GIVE_UP:
            return GIVE_UP
        if copies is values:
            return values
        if taken is items:
            return list(map(frozen_list, copies))
        rest = iter(taken)
        return [frozen_list(list(islice(rest, len(copy)))) for copy in copies]

    return accept


def _any_objects(values: list[Any]) -> Any:
    return freeze_many(values) if _OBJECTS.issuperset(map(type, values)) else GIVE_UP


def _objects(node: Mapping[str, Any], levels: int) -> AcceptMany:
    required = frozenset(node.get("required", ()))
    columns = [
        (name, itemgetter(name), name in required, compile_many(child, levels))
        for name, child in node.get("properties", {}).items()
    ]
    if not columns:
        return _any_objects if node.get("additionalProperties", True) is True and not required else _give_up
    if required.difference(node["properties"]):
        return _give_up

    def accept(values: list[Any]) -> Any:
        kinds = set(map(type, values))
        if kinds == {dict}:
            rows = frozen_dicts(values)  # Copied as above.
        elif kinds == {FrozenDict}:
            rows = values
        else:
            return GIVE_UP
        if not {str}.issuperset(map(type, chain.from_iterable(rows))):
            return GIVE_UP
        fields = 0
        for name, getter, is_required, accept_column in columns:
            holders = rows
            try:
                column = list(map(getter, rows))
            except KeyError:
                if is_required:
                    return GIVE_UP
                holders = [row for row in rows if name in row]
                column = list(map(getter, holders))
            taken = accept_column(column) if column else column
            if taken is GIVE_UP:
                return GIVE_UP
            if taken is not column and rows is not values:
                deque(map(_set_item, holders, repeat(name), taken), maxlen=0)
            fields += len(column)
        # Undeclared ones, if they are allowed at all, are looked at one by one.
        return rows if fields == sum(map(len, rows)) else GIVE_UP

    return accept
