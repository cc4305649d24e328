"""JSON text of lossless values: writing, reading and measuring it.

Knows: compact ASCII JSON of any depth and any integer size, and how many bytes a value costs.
Does not know: what makes a value lossless (`copying`), or frames.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from json.encoder import (  # type: ignore[attr-defined]  # typeshed leaves the C function out
    c_make_encoder,
    encode_basestring,
    encode_basestring_ascii,
)
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sandbox.freezing import freeze_own
from sandbox.numerals import int_from_text, int_text, number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox.frozen import JsonValue

__all__ = ["decode", "encode", "encode_string", "json_size", "string_size"]

_compact: Final = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def _chunk_encoder() -> Callable[[JsonValue, int], Sequence[str]]:
    """Return what `_compact` makes anew for every value, made once: half of a small value's cost."""
    if c_make_encoder is None:  # An interpreter without the C module.
        return lambda value, _level: (_compact(value),)
    markers, default, indent = None, None, None
    sort_keys, skip_keys, allow_nan = False, False, False
    made: Callable[[JsonValue, int], Sequence[str]] = c_make_encoder(
        markers, default, encode_basestring_ascii, indent, ":", ",", sort_keys, skip_keys, allow_nan
    )
    return made


_chunks: Final = _chunk_encoder()


def encode(value: JsonValue) -> bytes:
    """Write a lossless value as compact ASCII JSON; lone surrogates are escaped.

    The value must be lossless already (`snapshot` and its like make it so).
    """
    try:
        return "".join(_chunks(value, 0)).encode()
    except (RecursionError, ValueError):
        # Too deep for the C encoder, or an integer above the interpreter's digit limit.
        return _encode_slow(value).encode()


def encode_string(text: str) -> bytes:
    """Write a string as `encode` does."""
    return encode_basestring_ascii(text).encode()


def _encode_slow(value: JsonValue) -> str:
    parts: list[str] = []
    # Work still to do, last first: text to write as it is, or a value in a 1-tuple.
    todo: list[Any] = [(value,)]
    while todo:
        step = todo.pop()
        if type(step) is str:
            parts.append(step)
            continue
        item = step[0]
        if isinstance(item, dict):
            todo.append("}")
            for position, (key, child) in reversed(list(enumerate(item.items()))):
                todo.append((child,))
                todo.append(("," if position else "") + encode_basestring_ascii(key) + ":")
            todo.append("{")
        elif isinstance(item, list):
            todo.append("]")
            for position, child in reversed(list(enumerate(item))):
                todo.append((child,))
                if position:
                    todo.append(",")
            todo.append("[")
        elif type(item) is int:
            parts.append(int_text(item))
        else:
            parts.append(_compact(item))
    return "".join(parts)


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not JSON; only finite numbers are"
    raise ValueError(msg)


def _finite_float(text: str) -> float:
    number = float(text)
    if number - number != 0:
        msg = f"the number {text[:40]} is too large for a JSON number that a program can hold"
        raise ValueError(msg)
    return number


_decoder: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float)
_scan: Final[Callable[[str, int], tuple[Any, int]]] = _decoder.scan_once  # type: ignore[attr-defined]  # typeshed again
"""The decoder without its search for space around the value, which our own texts do not have."""


def _decode_fast(text: str) -> JsonValue:
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    if end != len(text):
        # Not a value from the first character to the last: the decoder itself finds out why, if it is none.
        value = _decoder.decode(text)
    return value  # type: ignore[no-any-return]  # what a JSON decoder makes


def decode(data: bytes | str, *, frozen: bool = False) -> JsonValue:
    """Read one JSON value of any depth with integers of any size.

    Args:
        data: JSON text; bytes are UTF-8.
        frozen: Return a deep-frozen value instead of plain dicts and lists.

    Raises:
        ValueError: Not JSON: syntax, NaN or Infinity, bad UTF-8, or something after the value.
    """
    text = data if isinstance(data, str) else data.decode("utf-8")
    try:
        value = _decode_fast(text)
    except RecursionError:
        value = _decode_slow(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # The digit limit looks like this; so do our own refusals, which the slow path repeats.
        value = _decode_slow(text)
    return freeze_own(value) if frozen else value


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: Final = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


def _decode_slow(text: str) -> JsonValue:
    """Parse iteratively: one open container per stack entry, with the key that waits for its value."""
    containers: list[Any] = []
    keys: list[str | None] = []
    position = _skip(text, 0)
    while True:
        opener = text[position : position + 1]
        if opener in ("{", "["):
            closer = "}" if opener == "{" else "]"
            after = _skip(text, position + 1)
            value: Any = {} if opener == "{" else []
            if text[after : after + 1] != closer:
                containers.append(value)
                keys.append(None)
                position = after
                if opener == "{":
                    keys[-1], position = _scan_key(text, position)
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
            mark = text[position : position + 1]
            if type(top) is dict:
                top[keys[-1]] = value
            else:
                top.append(value)
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


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _scan_key(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
    key, position = scanstring(text, position + 1, True)  # the C function takes no keywords
    position = _skip(text, position)
    if text[position : position + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, position)
    return key, _skip(text, position + 1)


def _scan_atom(text: str, position: int) -> tuple[Any, int]:
    head = text[position : position + 1]
    if head == '"':
        string, after = scanstring(text, position + 1, True)  # the C function takes no keywords
        return string, after
    if head in _WORDS:
        word, constant = _WORDS[head]
        if text.startswith(word, position):
            return constant, position + len(word)
    match = _NUMBER.match(text, position)
    if match is None:
        for constant_name in ("NaN", "Infinity", "-Infinity"):
            if text.startswith(constant_name, position):
                _refuse_constant(constant_name)
        raise json.JSONDecodeError("Expecting value", text, position)
    integer, fraction, exponent = match.groups()
    if fraction or exponent:
        return _finite_float(match.group()), match.end()
    return int_from_text(integer), match.end()


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def string_size(text: str) -> int:
    """Bytes of a string as JSON text in UTF-8, quotes and escapes included; a lone surrogate costs 6."""
    quoted = encode_basestring(text)
    if quoted.isascii():
        return len(quoted)
    try:
        return len(quoted.encode("utf-8"))
    except UnicodeEncodeError:
        # Written raw a surrogate would take 3 bytes, as an escape it takes 6.
        return len(quoted.encode("utf-8", "surrogatepass")) + 3 * len(_SURROGATE.findall(quoted))


def json_size(value: JsonValue) -> int:
    """Bytes of a lossless value as compact JSON text in UTF-8, numbers written as `number_text` does."""
    key_sizes: dict[str, int] = {}  # Keys repeat from row to row.
    size = -2  # The brackets of the list that holds the value.
    todo: list[Any] = [[value]]
    while todo:
        node = todo.pop()
        # Two brackets and a comma between neighbours; an object adds each key and its colon.
        size += 2 + max(len(node) - 1, 0)
        if isinstance(node, dict):
            for key in node:
                key_size = key_sizes.get(key)
                if key_size is None:
                    key_size = key_sizes[key] = string_size(key) + 1
                size += key_size
            node = node.values()
        for item in node:
            kind = type(item)
            if kind is str:
                size += string_size(item)
            elif kind is int or kind is float:
                size += len(number_text(item))
            elif item is None or kind is bool:
                size += 5 if item is False else 4
            else:
                todo.append(item)
    return size
