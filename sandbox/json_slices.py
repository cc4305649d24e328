"""Reading long JSON text without holding the interpreter: in pieces, between which other threads run.

The C reader lets nobody else run until it is done: 9 MB of `[],` are three million lists, and take it a
second or two. Here it gets one piece of a list at a time; what cannot be cut is read item by item.

Knows: the form of JSON text. Does not know: frames, threads.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sandbox.json_text import _decode_fast, _scan_atom, _scan_key, _skip

if TYPE_CHECKING:
    from sandbox.frozen import JsonValue

SLICE_CHARS: Final = 32 * 1024
"""Characters given to the C reader at a time. Arbitrary: some 5 ms for the costliest kind, empty lists."""
_MOST_PATIENCE: Final = 1024
"""Items read one by one before a cut is tried again, where cuts keep failing. Arbitrary: a failure costs
about as much as reading so many items."""
_CUTS: Final = (",", "],", "},")
"""Where a piece may end, the likeliest first. The comma itself is not part of it."""


def decode_in_slices(text: str) -> JsonValue:
    """Read one JSON value, exactly as `json_text.decode` reads it.

    Raises:
        ValueError: Not JSON.
    """
    containers: list[Any] = []
    keys: list[str] = []
    position = _skip(text, 0)
    patience = wait = 0
    while True:
        if containers and type(containers[-1]) is list:
            if wait:
                wait -= 1
            elif (items := _slice(text, position)) is not None:
                containers[-1] += items[0]
                position = _skip(text, items[1] + 1)
                patience = 0
                continue
            else:
                patience = wait = min(2 * patience + 1, _MOST_PATIENCE)
        opener = text[position : position + 1]
        if opener in ("{", "["):
            value: Any = {} if opener == "{" else []
            after = _skip(text, position + 1)
            if text[after : after + 1] != ("}" if opener == "{" else "]"):
                containers.append(value)
                key = ""
                position = after
                if opener == "{":
                    key, position = _scan_key(text, position)
                keys.append(key)
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
            if type(top) is dict:
                top[keys[-1]] = value
            else:
                top.append(value)
            mark = text[position : position + 1]
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


def _slice(text: str, position: int) -> tuple[list[Any], int] | None:
    """Read many items of a list at a time; return them and where the comma behind them is."""
    piece = text[position : position + SLICE_CHARS]
    for cut in _CUTS:
        end = piece.rfind(cut)
        if end <= 0:
            continue
        end += len(cut) - 1
        try:
            items = _decode_fast(f"[{piece[:end]}]")
        except (ValueError, RecursionError):
            continue
        # Text that reads as a list here reads as these items there: JSON needs no look ahead.
        if type(items) is list and items:
            return items, position + end
    return None
