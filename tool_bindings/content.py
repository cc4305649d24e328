"""Content blocks: what a model or client is shown of a value.

Knows: the text block, the text of blocks, and the bounded default rendering of a value.
Does not know: tools, or who reads the blocks. A block is a plain dict with a string `type`.
"""

from __future__ import annotations

import re
from itertools import islice
from json.encoder import encode_basestring
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sandbox.values import number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sandbox.values import JsonValue

__all__ = ["DEFAULT_RENDER_BYTES", "ContentBlock", "blocks_text", "render_json", "render_value", "text_block"]

ContentBlock: TypeAlias = "dict[str, JsonValue]"
"""One unit of content: `{"type": "text", "text": ...}`, an image, a resource …"""

DEFAULT_RENDER_BYTES: Final = 16_384
"""Bytes of UTF-8 the default rendering shows of a value: its head and its tail (arbitrary)."""

_PRETTY_LEVELS: Final = 5
"""Containers at depth 0 to 4 are spread over lines, deeper ones are written compactly."""

_FEW: Final = 32
"""Items up to which a container of atoms is written at once. Arbitrary: what exceeds a bound is small."""

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
    half = max_bytes // 2
    # Every item of the outermost container takes five characters at least, so often nothing need be counted.
    is_cut = isinstance(value, (dict, list)) and len(value) * 5 > max_bytes
    head, is_whole = _first_pieces(value, max_bytes - half if is_cut else max_bytes, forward=True)
    if is_whole:
        return _cut("".join(head), max_bytes)
    tail, _ = _first_pieces(value, half, forward=False)
    shown_head = _first_bytes("".join(head).encode("utf-8", "surrogatepass"), max_bytes - half)
    shown_tail = _last_bytes("".join(reversed(tail)).encode("utf-8", "surrogatepass"), half)
    return f"{shown_head}\n… (cut: only the first and last {half} bytes are shown) …\n{shown_tail}"


def _first_pieces(value: JsonValue, max_bytes: int, *, forward: bool) -> tuple[list[str], bool]:
    """Return pieces of more than so many bytes of text, or all there are and True."""
    pieces: list[str] = []
    size = 0
    for piece in _pieces(value, forward=forward):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            return pieces, False
    return pieces, True


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
    """Yield one value's own text, and a (child, depth) pair wherever the text of a container belongs."""
    text = _short_text(value, depth)
    if text is not None:
        yield text
        return
    is_object = isinstance(value, dict)
    brackets = "{}" if is_object else "[]"
    inner, outer, colon = _spacing(depth)
    count = len(value)
    children: Iterable[tuple[int, Any]]
    if forward and not is_object:
        yield brackets[0]
        yield from _items(value, depth)
        yield outer + brackets[1]
        return
    if forward:
        children = enumerate(value.items())
        yield brackets[0]
    else:
        children = zip(range(count - 1, -1, -1), reversed(value.items() if is_object else value), strict=True)
        yield outer + brackets[1]
    for position, child in children:
        label = ("," if position else "") + inner
        if is_object:
            key, child = child
            label += _string_text(key) + colon
        text = _short_text(child, depth + 1)
        if text is not None:
            yield label + text
        elif forward:
            yield label
            yield child, depth + 1
        else:
            yield child, depth + 1
            yield label
    yield outer + brackets[1] if forward else brackets[0]


def _items(value: list[Any], depth: int) -> Iterator[str | tuple[Any, int]]:
    """Yield the items of an array, as `_steps` does; atoms many at a time, as in long arrays."""
    inner, _, _ = _spacing(depth)
    separator = inner
    items = iter(value)
    while chunk := list(islice(items, _FEW)):
        kinds = set(map(type, chunk))
        if kinds <= _ATOMS:
            yield separator + ("," + inner).join(_texts(chunk, kinds))
            separator = "," + inner
            continue
        for item in chunk:
            text = _short_text(item, depth + 1)
            if text is not None:
                yield separator + text
            else:
                yield separator
                yield item, depth + 1
            separator = "," + inner


def _texts(atoms: list[Any], kinds: set[type]) -> list[str]:
    if kinds == {int}:
        try:
            return list(map(int.__repr__, atoms))
        except ValueError:
            pass  # One of them has more digits than the interpreter writes.
    return [_WRITERS[type(atom)](atom) for atom in atoms]


def _spacing(depth: int) -> tuple[str, str, str]:
    """Return what is written before each child, before the closing bracket, and between key and value."""
    if depth >= _PRETTY_LEVELS:
        return "", "", ":"
    return "\n" + "  " * (depth + 1), "\n" + "  " * depth, ": "


def _short_text(value: Any, depth: int) -> str | None:
    """Return the text of an atom, or of a container of few atoms; None for all else."""
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value)
    if not isinstance(value, (dict, list)):
        return _atom_of_a_subclass(value)
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    if len(value) > _FEW:
        return None
    inner, outer, colon = _spacing(depth)
    parts = []
    if isinstance(value, dict):
        for key, child in value.items():
            write = _WRITERS.get(type(child))
            if write is None:
                return None
            parts.append(f"{inner}{_string_text(key)}{colon}{write(child)}")
        return f"{{{','.join(parts)}{outer}}}"
    for child in value:
        write = _WRITERS.get(type(child))
        if write is None:
            return None
        parts.append(inner + write(child))
    return f"[{','.join(parts)}{outer}]"


def _string_text(text: str) -> str:
    quoted: str = encode_basestring(text)
    if quoted.isascii():
        return quoted
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)


def _atom_of_a_subclass(value: Any) -> str:
    """Write what is not quite a JSON value, as tools that render for themselves may have it."""
    return next(write(value) for kind, write in _WRITERS.items() if isinstance(value, kind))


_WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    str: _string_text,
    int: number_text,
    float: number_text,
    bool: lambda value: "true" if value else "false",
    NoneType: lambda _value: "null",
}
_ATOMS: Final = frozenset(_WRITERS)


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
