"""The cattrs converter: Python objects to JSON values and back.

Knows: the JSON form of every type that annotations may use beyond JSON's own.
Does not know: schemas and validity; what arrives here already fits the annotation's schema.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import pathlib
import types
import typing
import uuid
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin

from cattrs import Converter, transform_error
from cattrs.cols import (
    is_namedtuple,
    namedtuple_dict_structure_factory,
    namedtuple_dict_unstructure_factory,
)

from sandbox.values import GIVE_UP, JsonValue, encode
from tool_bindings.annotations import record_fields, schema_of
from tool_bindings.pydantic_models import is_model, structure_model, unstructure_model
from tool_bindings.validation import compile_schema

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["structure_hook", "structure_problems", "unstructure_hook"]


def structure_hook(hint: Any) -> Callable[[Any], Any]:
    """Return a function from a JSON value that fits the annotation's schema to its Python object."""
    hook = _converter.get_structure_hook(hint)
    return lambda value: hook(value, hint)


def unstructure_hook(hint: Any) -> Callable[[Any], Any]:
    """Return a function from an object of the annotated type to a JSON value."""
    return lambda value: _converter.unstructure(value, unstructure_as=hint)


def structure_problems(error: BaseException, root: str) -> list[str]:
    """Say what kept a value from becoming the annotated object, one line per place."""
    lines = transform_error(error, path=root, format_exception=lambda exception, _type: str(exception))
    problems = []
    for line in lines:
        text, _, place = line.rpartition(" @ ")
        problems.append(f'"{place}" {text}')
    return problems


def _parsed(kind: str, example: str, parse: Callable[[str], Any]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _hint: Any) -> Any:
        try:
            return parse(value)
        except (ValueError, ArithmeticError, binascii.Error):
            shown = value if len(value) <= 40 else value[:40] + "…"
            raise ValueError(f"must be {kind}, for example {example} (got {shown!r})") from None

    return structure


def _structure_union(hint: Any) -> Callable[[Any, Any], Any]:
    """Structure by the arm whose schema fits; the whole union's schema has already accepted."""
    arms = [
        (compile_schema(schema_of(arm)).accept, _converter.get_structure_hook(arm), arm)
        for arm in get_args(hint)
    ]

    def structure(value: Any, _hint: Any) -> Any:
        for accept, hook, arm in arms:
            if accept(value) is not GIVE_UP:
                return hook(value, arm)
        raise ValueError("fits no single alternative of its type")

    return structure


def _structure_fixed_tuple(hint: Any) -> Callable[[Any, Any], Any]:
    parts = get_args(hint)
    hooks = [(_converter.get_structure_hook(part), part) for part in parts]
    checks = [compile_schema(schema_of(part)).accept for part in parts]

    def structure(value: Any, _hint: Any) -> Any:
        if len(value) != len(parts):
            raise ValueError(f"must have exactly {len(parts)} items (got {len(value)})")
        for index, (accept, item) in enumerate(zip(checks, value, strict=True)):
            if accept(item) is GIVE_UP:
                raise ValueError(f"has an item of the wrong type at position {index}")
        return tuple(hook(item, part) for (hook, part), item in zip(hooks, value, strict=True))

    return structure


def _structure_typed_dict(hint: Any) -> Callable[[Any, Any], Any]:
    # cattrs relies on __required_keys__, which misses NotRequired where annotations are strings.
    hooks = {
        field.name: (_converter.get_structure_hook(field.hint), field.hint)
        for field in record_fields(hint) or ()
    }

    def structure(value: Any, _hint: Any) -> Any:
        return {key: hooks[key][0](item, hooks[key][1]) for key, item in value.items()}

    return structure


def _unstructure_typed_dict(hint: Any) -> Callable[[Any], Any]:
    hints = {field.name: field.hint for field in record_fields(hint) or ()}

    def unstructure(value: Any) -> Any:
        return {
            key: _converter.unstructure(item, unstructure_as=hints.get(key)) for key, item in value.items()
        }

    return unstructure


def _unstructure_set(value: Any) -> list[Any]:
    # Sets have no order; a canonical value must not depend on hash seeds.
    return sorted((_converter.unstructure(item) for item in value), key=encode)


def _unstructure_tuple(hint: Any) -> Callable[[Any], Any]:
    parts = [part for part in get_args(hint) if part is not Ellipsis]

    def unstructure(value: Any) -> Any:
        hints = parts if len(parts) == len(value) else parts[:1] * len(value) or [None] * len(value)
        return [
            _converter.unstructure(item, unstructure_as=part) for item, part in zip(value, hints, strict=True)
        ]

    return unstructure


def _is_union(hint: Any) -> bool:
    return get_origin(hint) is Union or get_origin(hint) is types.UnionType


def _is_tuple(hint: Any) -> bool:
    return (get_origin(hint) or hint) is tuple


def _is_fixed_tuple(hint: Any) -> bool:
    return get_origin(hint) is tuple and Ellipsis not in get_args(hint)


def _is_json(hint: Any) -> bool:
    return hint is Any or hint == JsonValue


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    text_forms: tuple[tuple[type, str, str, Callable[[str], Any], Callable[[Any], str]], ...] = (
        (
            dt.datetime,
            "an ISO 8601 date and time",
            "2024-05-17T09:30:00+02:00",
            dt.datetime.fromisoformat,
            dt.datetime.isoformat,
        ),
        (
            dt.date,
            "an ISO 8601 date",
            "2024-05-17",
            dt.date.fromisoformat,
            dt.date.isoformat,
        ),
        (dt.time, "an ISO 8601 time", "09:30:00", dt.time.fromisoformat, dt.time.isoformat),
        (decimal.Decimal, "a decimal number as a string", "12.50", decimal.Decimal, str),
        (uuid.UUID, "a UUID", "123e4567-e89b-12d3-a456-426614174000", uuid.UUID, str),
        (
            bytes,
            "base64 text",
            "aGVsbG8=",
            lambda text: base64.b64decode(text, validate=True),
            lambda data: base64.b64encode(data).decode("ascii"),
        ),
    )
    for kind, noun, example, parse, write in text_forms:
        converter.register_structure_hook(kind, _parsed(noun, example, parse))
        converter.register_unstructure_hook(kind, write)
    converter.register_structure_hook_func(_is_path, lambda value, hint: hint(value))
    converter.register_unstructure_hook_func(_is_path, str)
    converter.register_structure_hook_factory(typing.is_typeddict, _structure_typed_dict)
    converter.register_unstructure_hook_factory(typing.is_typeddict, _unstructure_typed_dict)
    converter.register_structure_hook_func(_exactly(type(None)), lambda _value, _hint: None)
    converter.register_structure_hook_func(is_model, structure_model)
    converter.register_unstructure_hook_func(is_model, unstructure_model)
    converter.register_structure_hook_func(_is_json, lambda value, _hint: value)
    converter.register_unstructure_hook_func(lambda hint: hint == JsonValue, lambda value: value)
    converter.register_structure_hook_factory(_is_union, _structure_union)
    converter.register_structure_hook_factory(_is_fixed_tuple, _structure_fixed_tuple)
    converter.register_structure_hook_factory(is_namedtuple, namedtuple_dict_structure_factory)
    converter.register_unstructure_hook_factory(is_namedtuple, namedtuple_dict_unstructure_factory)
    converter.register_unstructure_hook_func(_is_set, _unstructure_set)
    converter.register_unstructure_hook_factory(_is_tuple, _unstructure_tuple)
    return converter


def _exactly(kind: type) -> Callable[[Any], bool]:
    return lambda hint: hint is kind


def _is_path(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, pathlib.PurePath)


def _is_set(hint: Any) -> bool:
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, (set, frozenset))


_converter: Final = _make_converter()
