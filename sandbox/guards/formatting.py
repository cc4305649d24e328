"""`str.format` for programs: CPython's own, once no field of the template reads an attribute by itself.

Knows: templates. Does not know: which attributes are allowed (a reader is passed in).
"""

from __future__ import annotations

import string
from _string import formatter_field_name_split  # type: ignore[import-not-found]  # typeshed leaves it out
from collections.abc import Callable, Mapping
from typing import Any

from sandbox.policy.nodes import reads_no_attributes

Reader = Callable[[Any, str], Any]


class _GuardedFormatter(string.Formatter):
    """Formats templates whose fields read attributes, reading each through the guard."""

    def __init__(self, read: Reader) -> None:
        self._read = read

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = self._read(value, key) if is_attribute else value[key]
        return value, first


def _format(template: str, name: str, read: Reader, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    # The exact text: a subclass may override its own conversion, not the C string underneath.
    text = str.__str__(template)
    if name == "format_map":
        if kwargs or len(args) != 1:
            return str.format_map(text, *args, **kwargs)
        if reads_no_attributes(text):
            return str.format_map(text, args[0])
        return _GuardedFormatter(read).vformat(text, (), args[0])
    if reads_no_attributes(text):
        return str.format(text, *args, **kwargs)
    return _GuardedFormatter(read).vformat(text, args, kwargs)


def bound(template: str, name: str, read: Reader) -> Callable[..., str]:
    """Return `template.format` or `template.format_map`."""

    def format_text(*args: Any, **kwargs: Any) -> str:
        return _format(template, name, read, args, kwargs)

    format_text.__name__ = format_text.__qualname__ = name
    return format_text


def unbound(name: str, read: Reader) -> Callable[..., str]:
    """Return `str.format` or `str.format_map`."""

    def format_text(template: str, /, *args: Any, **kwargs: Any) -> str:
        if not isinstance(template, str):
            raise TypeError(
                f"descriptor '{name}' for 'str' objects doesn't apply to a '{type(template).__name__}' object"
            )
        return _format(template, name, read, args, kwargs)

    format_text.__name__ = format_text.__qualname__ = name
    return format_text
