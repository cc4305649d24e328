"""Which classes and functions belong to the program.

Knows: the mark a program's classes carry. Does not know: attribute rules.
"""

from __future__ import annotations

from types import FunctionType

from sandbox.policy import names

MARK = names.HOOK_PREFIX + "program class"
"""Key in the dict of every class a program defines. No program can spell it, and no guard lets one write
it."""

OWNED: set[type] = set()
"""Program classes whose instances may be written, and read under any name, by native operations."""

RECEIVERS: set[type] = set()
"""Types whose instances may be asked for a mutating method by a native operation."""

_TOKEN = object()
_FUNCTION_MARK = names.HOOK_PREFIX + "owned"

_HARMLESS_PRIVATE = names.NAMED_TUPLE_NAMES | {"_abc_impl", "_is_protocol", "_is_runtime_protocol"}
"""Private names of foreign bases that may be read natively: opaque, boolean, or documented."""

_clean_cache: dict[type, bool] = {}


def class_dict(cls: type) -> dict[str, object]:
    """Return the dict of a class (a read-only view), whatever its metaclass defines."""
    return type.__getattribute__(cls, "__dict__")  # type: ignore[no-any-return]  # a mapping proxy


def is_program_class(cls: type) -> bool:
    """Whether the program defined `cls`."""
    return class_dict(cls).get(MARK) is _TOKEN


def is_program_instance(value: object) -> bool:
    """Whether the program defined the class of `value`."""
    return is_program_class(type(value))


def is_program_function(value: object) -> bool:
    """Whether `value` is a function whose body is program text."""
    return type(value) is FunctionType and _FUNCTION_MARK in value.__globals__


def mark_namespace(namespace: dict[str, object]) -> None:
    """Mark the namespace of a class that is about to be created."""
    # An enum's namespace would make a member of it.
    dict.__setitem__(namespace, MARK, _TOKEN)


def adopt(cls: type) -> None:
    """Register a marked class, once it exists."""
    RECEIVERS.add(cls)
    if all(is_program_class(base) or _is_clean(base) for base in cls.__mro__):
        OWNED.add(cls)


def mark_class(cls: type) -> None:
    """Mark and register a class that was created without a class statement."""
    type.__setattr__(cls, MARK, _TOKEN)
    adopt(cls)


def _is_clean(base: type) -> bool:
    """Whether a foreign base has no private attribute that a native read on an instance could find."""
    known = _clean_cache.get(base)
    if known is None:
        known = _clean_cache[base] = all(
            not names.is_private(name) or name in _HARMLESS_PRIVATE for name in class_dict(base)
        )
    return known
