"""Whether two JSON values are the same, types included.

Knows: `1`, `1.0` and `true` are three values; `0.0` and `-0.0` are two; the order of an object's
members is no part of what it equals.
Does not know: envelopes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.values import JsonValue

__all__ = ["same_json"]


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Compare two lossless values, frozen or not, at any depth."""
    pairs: list[tuple[Any, Any]] = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if isinstance(one, dict):
            if not isinstance(other, dict) or len(one) != len(other):
                return False
            for name, item in one.items():
                if name not in other:
                    return False
                pairs.append((item, other[name]))
        elif isinstance(one, list):
            if not isinstance(other, list) or len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif not _same_atom(one, other):
            return False
    return True


def _same_atom(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one != other:
        return False
    # 0.0 == -0.0, and the sign is part of what a lossless value keeps.
    return type(one) is not float or math.copysign(1.0, one) == math.copysign(1.0, other)
