"""Freezing values that are known to be lossless and that nobody else has.

Nothing is checked, so most of the work is C's: the items of a list are looked at all at once, and objects
that hold no containers, as rows do, are frozen all at once.

Knows: plain and frozen containers. Does not know: who vouches for a value.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from sandbox.copying import FAST_DEPTH, snapshot_frozen
from sandbox.frozen import frozen_dict, frozen_dicts, frozen_list

if TYPE_CHECKING:
    from sandbox.frozen import JsonValue

__all__ = ["freeze_own"]

_CONTAINERS: Final = frozenset({dict, list})


def freeze_own(value: Any) -> JsonValue:
    """Return a value deep-frozen; its own containers may change on the way."""
    return _freeze(value, FAST_DEPTH) if type(value) in _CONTAINERS else value


def _freeze(value: Any, depth: int) -> JsonValue:
    if not depth:
        return snapshot_frozen(value)
    if type(value) is dict:
        if not _CONTAINERS.isdisjoint(map(type, value.values())):
            for key, item in value.items():
                if type(item) in _CONTAINERS:
                    value[key] = _freeze(item, depth - 1)
        return frozen_dict(value)
    if _CONTAINERS.isdisjoint(map(type, value)):
        return frozen_list(value)
    if {dict}.issuperset(map(type, value)) and _CONTAINERS.isdisjoint(
        map(type, chain.from_iterable(map(dict.values, value)))
    ):
        return frozen_list(frozen_dicts(value))
    return frozen_list([_freeze(item, depth - 1) if type(item) in _CONTAINERS else item for item in value])
