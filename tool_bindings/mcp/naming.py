"""Public names of MCP tools, and text of servers made harmless.

Knows: pure functions of names and texts. Does not know: connections, registries.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["clean_text", "public_name"]

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
