"""Keys that stand twice in one object of JSON text, as only people write it.

JSON readers keep the last one and say nothing, so half of what was written would not be meant. What a
program wrote has no such keys and is not searched: the text is parsed for it a second time.

Knows: JSON text. Does not know: whose it is.
"""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["repeated_key", "repeated_key_problem"]


def repeated_key(text: str) -> str | None:
    """Return a key that an object of the text has twice, if there is one.

    Args:
        text: Valid JSON. What is nested too deep to be searched, some 1000 levels, has none.
    """
    try:
        _search(text)
    except _RepeatedKeyError as error:
        return error.key
    except RecursionError:
        return None
    return None


def repeated_key_problem(text: str) -> str | None:
    """Say which key of a valid JSON text stands twice in one object, if one does."""
    key = repeated_key(text)
    if key is None:
        return None
    return f"the key {key!r} stands twice in one object, so it is not clear which one is meant"


class _RepeatedKeyError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _RepeatedKeyError(key)
        seen.add(key)


# Numbers stay text: an integer may have more digits than Python converts.
_search: Final = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_int=str, parse_float=str).decode
