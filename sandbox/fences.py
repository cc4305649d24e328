"""Programs that arrive inside a Markdown code block.

Knows: fences. Does not know: Python; the caller tries the text as it came first.
"""

from __future__ import annotations

import re
from typing import Final

NOTE: Final = "the ``` fences around the program were left out: send the program alone"

_FENCE: Final = re.compile(r"\s*(```+|~~~+)\s*([\w+-]*)\s*\Z")


def unfenced(source: str) -> str | None:
    """Return the one fenced block of a text on its own lines, or None when there is not exactly one.

    What stands around the block becomes empty lines, so that line numbers stay those of the text. A
    block that is not closed ends with the text.
    """
    lines = source.split("\n")
    fences = [(number, match) for number, line in enumerate(lines) if (match := _FENCE.match(line))]
    if not fences or len(fences) > 2:
        return None
    start = fences[0][0]
    end = fences[1][0] if len(fences) == 2 else len(lines)
    if len(fences) == 1 and any(line.strip() for line in lines[:start]):
        # A lone closing fence ends the program.
        start, end = -1, fences[0][0]
    inside = [line if start < number < end else "" for number, line in enumerate(lines)]
    return "\n".join(inside) if any(map(str.strip, inside)) else None
