"""The pass that accepts: a schema of the vocabulary as one function that checks and freezes.

A compiled function gives up at the first doubt, without saying why; `explanation` then finds out. The
two must agree on what is valid.

Knows: the vocabulary's meaning, at speed.
Does not know: messages and paths.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sandbox.values import (
    GIVE_UP,
    MANY_CONTAINERS,
    FrozenDict,
    FrozenList,
    freeze_fast,
    frozen_dict,
    frozen_list,
    set_field,
    uncollected,
)
from tool_bindings.columns import compile_many

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tool_bindings.columns import AcceptMany

    Accept: TypeAlias = Callable[[Any], Any]
    """Returns the frozen value, or GIVE_UP when the walk must decide."""

__all__ = ["always_give_up", "compile_accept"]

_COMPILED_LEVELS: Final = 40
"""Schema levels compiled to nested closures (arbitrary); a deeper schema is left to the walk."""
_MANY: Final = 16
"""Items from which on it pays to look at all of them at once. Arbitrary."""


def compile_accept(schema: Mapping[str, Any]) -> Accept:
    """Compile a schema of the vocabulary; a very deep one becomes `always_give_up`."""
    return _compile_accept(schema, _COMPILED_LEVELS)


def always_give_up(_value: Any, /) -> Any:
    """Accept nothing: let the walk decide."""
    return GIVE_UP


def _accept_any(value: Any) -> Any:
    return freeze_fast(value)


def _accept_string(value: Any) -> Any:
    return value if type(value) is str else GIVE_UP


def _accept_boolean(value: Any) -> Any:
    return value if type(value) is bool else GIVE_UP


def _accept_null(value: Any) -> Any:
    return None if value is None else GIVE_UP


def _accept_integer(value: Any) -> Any:
    kind = type(value)
    return value if kind is int or (kind is float and value.is_integer()) else GIVE_UP


def _accept_number(value: Any) -> Any:
    kind = type(value)
    return value if kind is int or (kind is float and value - value == 0) else GIVE_UP


_SCALARS: Final[dict[str, Accept]] = {
    "string": _accept_string,
    "boolean": _accept_boolean,
    "null": _accept_null,
    "integer": _accept_integer,
    "number": _accept_number,
}

_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (NoneType,),
    "integer": (int, float),
    "number": (int, float),
    "array": (list, FrozenList),
    "object": (dict, FrozenDict),
}

_EXACT_TYPE: Final[dict[Accept, type]] = {
    _accept_string: str,
    _accept_boolean: bool,
    _accept_null: NoneType,
    _accept_integer: int,
    _accept_number: int,
}
"""For plain scalars: the type that needs no call to be accepted."""


def _compile_accept(node: Mapping[str, Any], levels: int) -> Accept:
    """Build the accepting closure of a node, or one that always gives up below `levels`."""
    if not levels:
        return always_give_up
    if "oneOf" in node:
        return _one_of(node["oneOf"], levels - 1)
    type_name = node.get("type")
    if type_name is None:
        return _accept_any
    if type_name == "object":
        return _object(node, levels - 1)
    if type_name == "array":
        return _array(node, levels - 1)
    if "enum" in node or "const" in node:
        literals = set(node["enum"]) if "enum" in node else {node["const"]}
        if "const" in node:
            literals &= {node["const"]}
        return _literals(_SCALARS[type_name], frozenset(literals))
    return _SCALARS[type_name]


def _literals(scalar: Accept, literals: frozenset[Any]) -> Accept:
    # The scalar test comes first, so that True is never looked up among numbers.
    def accept(value: Any) -> Any:
        return value if scalar(value) is not GIVE_UP and value in literals else GIVE_UP

    return accept


def _one_of(arms: list[Mapping[str, Any]], levels: int) -> Accept:
    # Arms are sorted by the Python types they could accept, so that most values meet one arm only.
    by_type: dict[type, list[Accept]] = {kind: [] for kinds in _PYTHON_TYPES.values() for kind in kinds}
    for arm in arms:
        accept_arm = _compile_accept(arm, levels)
        if accept_arm is always_give_up:
            return always_give_up
        for kind in _PYTHON_TYPES.get(arm.get("type", ""), tuple(by_type)):
            by_type[kind].append(accept_arm)
    candidates = {kind: tuple(accepts) for kind, accepts in by_type.items()}

    def accept(value: Any) -> Any:
        found: Any = GIVE_UP
        for arm in candidates.get(type(value), ()):
            taken = arm(value)
            if taken is not GIVE_UP:
                if found is not GIVE_UP:
                    return GIVE_UP
                found = taken
        return found

    return accept


def _array(node: Mapping[str, Any], levels: int) -> Accept:
    accept_item = _compile_accept(node.get("items", {}), levels)
    if accept_item is always_give_up:
        return always_give_up
    exact = _EXACT_TYPE.get(accept_item)
    accept_together = _Together(node.get("items", {}), levels)

    def accept(value: Any) -> Any:
        kind = type(value)
        if kind is not list and kind is not FrozenList:
            return GIVE_UP
        # Copied before it is looked at, so that another thread cannot change it in between.
        items = list(value)
        if len(items) >= _MANY:
            taken = accept_together(items)
            if taken is not GIVE_UP:
                return value if kind is FrozenList else frozen_list(taken)
        for index, item in enumerate(items):
            if type(item) is exact:
                continue
            taken = accept_item(item)
            if taken is GIVE_UP:
                return GIVE_UP
            if taken is not item:
                items[index] = taken
        return value if kind is FrozenList else frozen_list(items)

    return accept


class _Together:
    """Accepts many items of an array at once; compiled for the first that are many."""

    __slots__ = ("_accept", "_levels", "_node")

    def __init__(self, node: Mapping[str, Any], levels: int) -> None:
        self._node = node
        self._levels = levels
        self._accept: AcceptMany | None = None

    def __call__(self, items: list[Any]) -> Any:
        if self._accept is None:
            self._accept = compile_many(self._node, self._levels)
        return self._accept(items) if len(items) < MANY_CONTAINERS else uncollected(self._accept, items)


def _object(node: Mapping[str, Any], levels: int) -> Accept:
    properties: Mapping[str, Any] = node.get("properties", {})
    accepts: dict[str, Accept] = {}
    for name, child in properties.items():
        accepts[name] = _compile_accept(child, levels)
        if accepts[name] is always_give_up:
            return always_give_up
    additional = node.get("additionalProperties", True)
    accept_other: Accept | None = None
    if additional is True:
        accept_other = _accept_any
    elif additional is not False:
        accept_other = _compile_accept(additional, levels)
        if accept_other is always_give_up:
            return always_give_up
    required = tuple(node.get("required", ()))
    declared = len(properties)
    exact = {name: _EXACT_TYPE[accept] for name, accept in accepts.items() if accept in _EXACT_TYPE}
    exact_type, accept_of = exact.get, accepts.get

    def accept(value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            # Copied before it is looked at, so that another thread cannot change it in between.
            fields = frozen_dict(value)
        elif kind is FrozenDict:
            fields = value
        else:
            return GIVE_UP
        for key, item in fields.items():
            if type(key) is not str:
                return GIVE_UP
            if exact_type(key) is type(item):
                continue
            accept_field = accept_of(key, accept_other)
            if accept_field is None:
                return GIVE_UP
            taken = accept_field(item)
            if taken is GIVE_UP:
                return GIVE_UP
            if taken is not item:
                if fields is value:
                    return GIVE_UP
                set_field(fields, key, taken)
        # In a closed object every key is a declared one by now, so counting them may settle it.
        if len(fields) != declared or accept_other is not None:
            for name in required:
                if name not in fields:
                    return GIVE_UP
        return fields

    return accept
