"""Names of MCP tools: the public one, readable aliases, and text of servers made harmless.

Knows: pure functions of names and texts. Does not know: connections, registries.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["clean_text", "public_name", "readable_aliases"]

MAX_NAME_CHARS: Final = 64
"""Characters of a public name, as model providers allow."""
_DIGEST_CHARS: Final = 12
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls (tab and newline stay), direction and tag marks, zero-width characters, lone surrogates: what
a person does not see and a model may obey."""


def public_name(server: str, raw: str) -> str:
    """Return the name a tool is registered under: `mcp__server__raw`, or a cleaned one with a digest."""
    plain = f"mcp__{server}__{raw}"
    cleaned = _UNSAFE.sub("_", plain)
    if cleaned == plain and len(plain) <= MAX_NAME_CHARS:
        return plain
    # Surrogates cannot be encoded as UTF-8, and a server may send anything.
    digest = hashlib.sha256(f"{server}\0{raw}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{cleaned[: MAX_NAME_CHARS - _DIGEST_CHARS - 1]}_{digest}"


def clean_text(text: str, max_chars: int) -> str:
    """Take invisible characters out of a server's text and cut it; a cut ends in `…`."""
    visible = _HIDDEN.sub("", text)
    return visible if len(visible) <= max_chars else visible[: max_chars - 1] + "…"


def readable_aliases(
    tools: Iterable[tuple[str, str, str]], taken: Iterable[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Map readable names to the public names they may stand for.

    `server/raw` is for `tools["server/raw"]`, `server.attribute` for `tools.server.attribute`, where
    everything but letters, digits and `_` has become `_`. An alias with one public name is good; one
    with several is ambiguous, and whoever resolves it says so instead of choosing.

    Args:
        tools: Server, raw name and public name of each tool.
        taken: Names of all registered tools. An alias that is one of them is ambiguous, and so is
            every `server.attribute` of a server whose name is the attribute of a tool.
    """
    names = set(taken)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for server, raw, public in tools:
        # A name that would look like another one once shown is reached by its public name only.
        if clean_text(raw, MAX_NAME_CHARS) != raw:
            continue
        first, second = _attribute(server), _attribute(raw)
        found[f"{server}/{raw}"].append(public)
        if first.isidentifier() and second.isidentifier():
            found[f"{first}.{second}"].append(public)
            if first in names:
                found[f"{first}.{second}"].append(first)
    return {
        alias: (*publics, alias) if alias in names else tuple(publics) for alias, publics in found.items()
    }


def _attribute(name: str) -> str:
    return _NOT_A_WORD.sub("_", name)


_NOT_A_WORD: Final = re.compile(r"\W", re.ASCII)
