"""How deep JSON may be nested where another program reads or writes the text: most parsers recurse.

The Python API has no bound. The MCP server has a lower one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sandbox.values import JsonValue

MAX_DEPTH: Final = 500
"""Levels of lists and objects, on the command line."""


def depth_of(value: JsonValue) -> int:
    """Return how many lists and objects lie inside each other; 0 for a scalar."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (list, dict))]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth
