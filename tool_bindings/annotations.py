"""JSON schemas of Python annotations.

Knows: which annotations are understood, and the schema of each.
Does not know: functions (`functions`), or how values are converted (`conversion`).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import types
import typing
import uuid
from collections.abc import (
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
)
from collections.abc import (
    Set as AbstractSet,
)
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from sandbox.values import JsonValue, NotJsonError, snapshot
from tool_bindings.errors import DefinitionError
from tool_bindings.pydantic_models import is_model, model_schema

__all__ = ["DICT_ORIGINS", "LIST_ORIGINS", "Field", "is_json_hint", "record_fields", "schema_of"]

_STRING_FORMS: Final[dict[type, str]] = {
    dt.datetime: "ISO 8601 date and time, for example 2024-05-17T09:30:00+02:00",
    dt.date: "ISO 8601 date, for example 2024-05-17",
    dt.time: "ISO 8601 time, for example 09:30:00",
    decimal.Decimal: "decimal number as a string, for example 12.50",
    uuid.UUID: "UUID, for example 123e4567-e89b-12d3-a456-426614174000",
    bytes: "base64 text",
}
"""Types that travel as strings, with the text that describes the form to a model."""

LIST_ORIGINS: Final = (list, Sequence, MutableSequence, Iterable, Collection)
_SET_ORIGINS: Final = (set, frozenset, AbstractSet, MutableSet)
DICT_ORIGINS: Final = (dict, Mapping, MutableMapping)
_SCALARS: Final[dict[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class _Unsupported(Exception):  # noqa: N818  # internal signal; turned into a DefinitionError with the place
    """An annotation cannot be expressed; carries what to write instead."""


def schema_of(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of an annotation.

    Raises:
        DefinitionError: The annotation has no JSON form.
    """
    try:
        return _schema(hint, ())
    except _Unsupported as error:
        raise DefinitionError(str(error)) from None


def _schema(hint: Any, enclosing: tuple[type, ...]) -> dict[str, Any]:
    if hint is Any or hint == JsonValue:
        return {}
    if hint is None or hint is type(None):
        return {"type": "null"}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    origin = get_origin(hint)
    if origin is Annotated:
        return _annotated(hint, enclosing)
    if origin in (typing.Required, typing.NotRequired):
        return _schema(get_args(hint)[0], enclosing)
    if origin is Literal:
        return _literals([_literal_value(value) for value in get_args(hint)])
    if origin is Union or origin is types.UnionType:
        return _union([_schema(arm, enclosing) for arm in get_args(hint)])
    container = origin or hint
    if container in LIST_ORIGINS or container in _SET_ORIGINS:
        items = [_schema(argument, enclosing) for argument in get_args(hint)]
        return {"type": "array", "items": items[0]} if items and items[0] else {"type": "array"}
    if container is tuple:
        return _tuple(hint, enclosing)
    if container in DICT_ORIGINS:
        return _mapping(hint, enclosing)
    if isinstance(hint, type):
        return _class(hint, enclosing)
    raise _Unsupported(f"{_type_text(hint)} has no JSON form; use JsonValue for any JSON")


def _annotated(hint: Any, enclosing: tuple[type, ...]) -> dict[str, Any]:
    schema = _schema(hint.__origin__, enclosing)
    for extra in hint.__metadata__:
        # A plain string, or PEP 727's Doc object.
        text = extra if isinstance(extra, str) else getattr(extra, "documentation", None)
        if isinstance(text, str):
            schema["description"] = text
    return schema


def _tuple(hint: Any, enclosing: tuple[type, ...]) -> dict[str, Any]:
    arguments = [argument for argument in get_args(hint) if argument is not Ellipsis]
    arms = [_schema(argument, enclosing) for argument in arguments]
    items = _union(arms) if arms else {}
    return {"type": "array", "items": items} if items else {"type": "array"}


def _mapping(hint: Any, enclosing: tuple[type, ...]) -> dict[str, Any]:
    arguments = get_args(hint)
    if not arguments:
        return {"type": "object"}
    key, value = arguments
    if key is not str:
        raise _Unsupported(f"{_type_text(hint)}: JSON objects have string keys; write dict[str, ...]")
    values = _schema(value, enclosing)
    return {"type": "object", "additionalProperties": values} if values else {"type": "object"}


def _class(hint: type, enclosing: tuple[type, ...]) -> dict[str, Any]:
    if hint in enclosing:
        raise _Unsupported(f"{_type_text(hint)} contains itself; use JsonValue for the recursive part")
    for known, form in _STRING_FORMS.items():
        if hint is known:
            return {"type": "string", "description": form}
    if issubclass(hint, pathlib.PurePath):
        return {"type": "string", "description": "file path"}
    if issubclass(hint, enum.Enum):
        return _literals([_literal_value(member.value) for member in hint])
    if is_model(hint):
        try:
            return model_schema(hint, _union)
        except RecursionError as error:
            raise _Unsupported(f"{error}; use JsonValue for the recursive part") from None
    fields = record_fields(hint)
    if fields is None:
        raise _Unsupported(
            f"{_type_text(hint)} has no JSON form; use JSON types, a dataclass, a TypedDict, an Enum, "
            "a date or time, or JsonValue"
        )
    inner = (*enclosing, hint)
    properties = {}
    for field in fields:
        try:
            properties[field.name] = _schema(field.hint, inner)
        except _Unsupported as error:
            raise _Unsupported(f"field {field.name!r} of {hint.__name__}: {error}") from None
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


class Field(NamedTuple):
    """One field of a record type."""

    name: str
    hint: Any
    required: bool


def record_fields(hint: type) -> list[Field] | None:
    """Return the fields of a record type, or None when the type is not one."""
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        required_keys: Collection[str] = getattr(hint, "__required_keys__", ())
        return [
            Field(name, _without_marker(field), _is_required(name, field, required_keys))
            for name, field in hints.items()
        ]
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return [
            Field(
                field.name,
                hints[field.name],
                field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            )
            for field in dataclasses.fields(hint)
            if field.init
        ]
    if issubclass(hint, tuple) and hasattr(hint, "_fields"):
        hints = typing.get_type_hints(hint, include_extras=True)
        defaults = getattr(hint, "_field_defaults", {})
        return [Field(name, hints.get(name, Any), name not in defaults) for name in hint._fields]
    attributes = getattr(hint, "__attrs_attrs__", None)
    if attributes is not None:
        import attrs  # noqa: PLC0415  # comes with cattrs; loaded only when a tool uses it

        hints = typing.get_type_hints(hint, include_extras=True)
        return [
            Field(attribute.name, hints.get(attribute.name, Any), attribute.default is attrs.NOTHING)
            for attribute in attributes
            if attribute.init
        ]
    return None


def _without_marker(hint: Any) -> Any:
    while get_origin(hint) in (typing.Required, typing.NotRequired):
        hint = get_args(hint)[0]
    return hint


def _is_required(name: str, hint: Any, required_keys: Collection[str]) -> bool:
    # Where annotations are strings, __required_keys__ misses the markers on single keys.
    origin = get_origin(hint)
    if origin is typing.NotRequired:
        return False
    return origin is typing.Required or name in required_keys


def _literal_value(value: object) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value
    try:
        return snapshot(value)
    except NotJsonError:
        raise _Unsupported(f"the literal {value!r} has no JSON form") from None


def _literals(values: list[Any]) -> dict[str, Any]:
    """Group literals by JSON type: an enum node holds one type only."""
    by_type: dict[str, list[Any]] = {}
    for value in values:
        name = "null" if value is None else _SCALARS.get(type(value))
        if name is None:
            raise _Unsupported(f"the literal {value!r} is not a JSON string, number, boolean or null")
        by_type.setdefault(name, []).append(value)
    return _union([{"type": name, "enum": literals} for name, literals in by_type.items()])


def _union(arms: list[dict[str, Any]]) -> dict[str, Any]:
    """Join schemas so that a value matches exactly one arm, as oneOf demands."""
    flat: list[dict[str, Any]] = []
    for arm in arms:
        flat.extend(arm.get("oneOf", [arm]))
    if any("type" not in arm for arm in flat):
        return {}
    open_types = {arm["type"] for arm in flat if "enum" not in arm}
    if "number" in open_types:
        open_types.add("integer")
    merged: list[dict[str, Any]] = []
    for arm in flat:
        if "enum" in arm:
            if arm["type"] in open_types:
                continue
            same = next((other for other in merged if other["type"] == arm["type"] and "enum" in other), None)
            if same is not None:
                same["enum"] = [*same["enum"], *(item for item in arm["enum"] if item not in same["enum"])]
                continue
        elif arm["type"] == "integer" and "number" in {
            other["type"] for other in flat if "enum" not in other
        }:
            continue
        elif arm["type"] == "array":
            # Two kinds of list both accept the empty one, so their items are joined instead.
            same = next((other for other in merged if other["type"] == "array"), None)
            if same is not None:
                items = _union([same.get("items", {}), arm.get("items", {})])
                same.pop("items", None)
                if items:
                    same["items"] = items
                continue
        elif _without_notes(arm) in [_without_notes(other) for other in merged]:
            continue
        merged.append(dict(arm))
    return merged[0] if len(merged) == 1 else {"oneOf": merged}


def _without_notes(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "description"}


def _type_text(hint: Any) -> str:
    return (
        hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
    )


def is_json_hint(hint: Any) -> bool:
    """Whether values of the annotation are JSON as they are, without any conversion."""
    if hint == JsonValue or hint in (Any, None, type(None), *_SCALARS, list, dict):
        return True
    origin = get_origin(hint)
    if origin is Annotated:
        return is_json_hint(hint.__origin__)
    if origin is Literal:
        return not any(isinstance(value, enum.Enum) for value in get_args(hint))
    if origin in (list, dict, Union, types.UnionType, typing.Required, typing.NotRequired):
        return all(is_json_hint(argument) for argument in get_args(hint))
    if typing.is_typeddict(hint):
        return all(map(is_json_hint, typing.get_type_hints(hint, include_extras=True).values()))
    return False
