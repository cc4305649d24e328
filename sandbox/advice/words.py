"""How a value or an expression is named in a hint.

Knows: bounds and wording. Does not know: exceptions.
"""

from __future__ import annotations

import ast
import json
from typing import Any, Final

from sandbox.values import FrozenDict, FrozenList

_MAX_KEYS_CHARS: Final = 300
_MAX_KEYS: Final = 20
_MAX_CODE_CHARS: Final = 60
"""Longest expression quoted. Arbitrary, as the bounds above: a hint is one line or two."""
NEAR: Final = 0.75
"""Likeness from which one name is taken for a slip of another."""
DICTS: Final = (dict, FrozenDict)
LISTS: Final = (list, FrozenList)
SCALARS: Final = (str, int, float, bool, type(None))


def code(node: ast.expr, instead: str = "value") -> str:
    """Write an expression, or something instead if it is not short."""
    text = ast.unparse(node).replace("'", '"')
    return text if len(text) <= _MAX_CODE_CHARS else instead


def text_keys(value: Any) -> list[str]:
    """Return the keys of an exact dict that are text."""
    return [key for key in dict.__iter__(value) if type(key) is str]


def shown_keys(value: Any) -> str:
    """Say which keys there are, within the bounds."""
    names = [json.dumps(key, ensure_ascii=False) for key in text_keys(value)]
    if not names:
        return "it is empty" if not value else "its keys are not text"
    shown: list[str] = []
    for name in names[:_MAX_KEYS]:
        if sum(map(len, shown)) + len(name) > _MAX_KEYS_CHARS:
            break
        shown.append(name)
    if not shown:
        return f"it has {len(names)} keys"
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"its keys are {', '.join(shown)}{more}"


def described(value: object) -> str:
    """Name a plain value and its type."""
    if value is None:
        return "None"
    text = repr(value)
    article = "an" if type(value) is int else "a"
    return f"{article} {type(value).__name__}" + (f" ({text})" if len(text) <= _MAX_CODE_CHARS else "")


def is_json_text(value: str) -> bool:
    """Say whether a text looks like a JSON object or array."""
    text = value.strip()
    return text[:1] + text[-1:] in ("{}", "[]")
