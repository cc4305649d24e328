"""Content blocks: what a model or client is shown of a value.

Knows: the text block, the text of blocks, and the bounded default rendering of a value.
Does not know: tools, or who reads the blocks. A block is a plain dict with a string `type`.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sandbox.values import number_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sandbox.values import JsonValue

__all__ = ["DEFAULT_RENDER_BYTES", "ContentBlock", "blocks_text", "render_json", "render_value", "text_block"]

ContentBlock: TypeAlias = "dict[str, JsonValue]"
"""One unit of content: `{"type": "text", "text": ...}`, an image, a resource …"""

DEFAULT_RENDER_BYTES: Final = 16_384
"""Bytes of UTF-8 the default rendering shows of a value: its head and its tail (arbitrary)."""

_PRETTY_LEVELS: Final = 5
"""Containers at depth 0 to 4 are spread over lines, deeper ones are written compactly."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def text_block(text: str) -> ContentBlock:
    """Make a text block."""
    return {"type": "text", "text": text}


def blocks_text(blocks: Iterable[ContentBlock]) -> str:
    """Join the text of blocks with newlines; other blocks appear as `[<type> content]`."""
    parts = []
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            parts.append(text)
        else:
            parts.append(f"[{block.get('type')} content]")
    return "\n".join(parts)


def render_value(value: JsonValue, max_bytes: int | None = None) -> str:
    """Write a value for reading: a string as it is, anything else as `render_json` does."""
    if isinstance(value, str):
        return _cut(value, max_bytes)
    return render_json(value, max_bytes)


def render_json(value: JsonValue, max_bytes: int | None = None) -> str:
    """Write a value as JSON with two-space indent, compact below five levels.

    Args:
        value: A lossless value of any depth.
        max_bytes: Show at most about this many bytes of UTF-8: the head, a notice, the tail. Only
            the part that is shown is written, so a huge value costs no more than a small one. None
            shows everything.
    """
    if type(value) is int:
        return _cut(number_text(value), max_bytes)
    if max_bytes is None:
        return "".join(_pieces(value, forward=True))
    head: list[str] = []
    size = 0
    for piece in _pieces(value, forward=True):
        head.append(piece)
        size += len(piece)
        if size > max_bytes:
            break
    else:
        return _cut("".join(head), max_bytes)
    tail: list[str] = []
    tail_size = 0
    for piece in _pieces(value, forward=False):
        tail.append(piece)
        tail_size += len(piece)
        if tail_size > max_bytes // 2:
            break
    half = max_bytes // 2
    shown_head = _first_bytes("".join(head).encode("utf-8", "surrogatepass"), max_bytes - half)
    shown_tail = _last_bytes("".join(reversed(tail)).encode("utf-8", "surrogatepass"), half)
    return f"{shown_head}\n… (cut: only the first and last {half} bytes are shown) …\n{shown_tail}"


def _pieces(value: JsonValue, *, forward: bool) -> Iterator[str]:
    """Yield the rendered text in pieces, from the front or from the back, one container at a time."""
    open_containers = [_steps(value, 0, forward=forward)]
    while open_containers:
        step = next(open_containers[-1], None)
        if step is None:
            open_containers.pop()
        elif isinstance(step, str):
            yield step
        else:
            child, depth = step
            open_containers.append(_steps(child, depth, forward=forward))


def _steps(value: Any, depth: int, *, forward: bool) -> Iterator[str | tuple[Any, int]]:
    """Yield one value's own text, and a (child, depth) pair wherever a child's text belongs."""
    if not isinstance(value, (dict, list)) or not value:
        yield _atom_text(value)
        return
    brackets = "{}" if isinstance(value, dict) else "[]"
    pretty = depth < _PRETTY_LEVELS
    inner = "\n" + "  " * (depth + 1) if pretty else ""
    outer = "\n" + "  " * depth if pretty else ""
    colon = ": " if pretty else ":"
    if forward:
        children = value.items() if isinstance(value, dict) else ((None, child) for child in value)
        yield brackets[0]
        for position, (key, child) in enumerate(children):
            label = "" if key is None else _string_text(key) + colon
            yield ("," if position else "") + inner + label
            yield child, depth + 1
        yield outer + brackets[1]
        return
    yield outer + brackets[1]
    last_first: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        last_first = reversed(value.items())
    else:
        last_first = ((None, child) for child in reversed(value))
    for position, (key, child) in enumerate(last_first, 1 - len(value)):
        yield child, depth + 1
        label = "" if key is None else _string_text(key) + colon
        yield ("," if position else "") + inner + label
    yield brackets[0]


def _atom_text(value: Any) -> str:
    if isinstance(value, str):
        return _string_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    return "{}" if isinstance(value, dict) else "[]"


def _string_text(text: str) -> str:
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", encode_basestring(text))


def _cut(text: str, max_bytes: int | None) -> str:
    if max_bytes is None or len(text) * 4 <= max_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text
    half = max_bytes // 2
    head, tail = _first_bytes(data, max_bytes - half), _last_bytes(data, half)
    return f"{head}\n… (cut: {len(data) - max_bytes} of {len(data)} bytes are not shown) …\n{tail}"


def _first_bytes(data: bytes, count: int) -> str:
    # Step back to the start of a character: continuation bytes are 10xxxxxx.
    while count and count < len(data) and data[count] & 0xC0 == 0x80:
        count -= 1
    return data[:count].decode("utf-8", "surrogatepass")


def _last_bytes(data: bytes, count: int) -> str:
    start = max(len(data) - count, 0)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")
