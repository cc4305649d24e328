"""Keep the first part of a text by its size in bytes, without breaking a character.

Knows: UTF-8 sizes.
Does not know: what the text is, or how the cut is announced.
"""

from __future__ import annotations

__all__ = ["head_bytes"]


def head_bytes(text: str, most_bytes: int) -> str:
    """Return the longest beginning of `text` that takes at most `most_bytes` bytes of UTF-8."""
    if len(text) * 4 <= most_bytes:  # No character takes more than four bytes.
        return text
    encoded = text[:most_bytes].encode("utf-8", "surrogatepass")
    if len(encoded) <= most_bytes:
        return text[:most_bytes]
    cut = most_bytes
    while encoded[cut] & 0xC0 == 0x80:  # A continuation byte: the character began before it.
        cut -= 1
    return encoded[:cut].decode("utf-8", "surrogatepass")
