"""Full JSON Schemas (2020-12), for tools whose schemas lie outside the vocabulary.

Knows: how to have `jsonschema` judge a schema and a value, without network access and within a depth.
Does not know: the vocabulary; what comes here already failed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from sandbox.values import NotJsonError, child_path, snapshot, snapshot_frozen
from tool_bindings.errors import UnsupportedSchemaError
from tool_bindings.validation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jsonschema.exceptions import ValidationError

__all__ = ["full_schema_check"]

MAX_DEPTH: Final = 500
"""Levels of a schema or of a value that jsonschema, which recurses, is given (DESIGN section 6)."""

_SHOWN_CHARS: Final = 200
"""Characters shown of a message that jsonschema wrote; it repeats whole values in it (arbitrary)."""


def full_schema_check(schema: object) -> tuple[Mapping[str, Any], Callable[[Any, str], list[Violation]]]:
    """Prepare a full JSON Schema.

    Returns:
        The frozen schema, and a function that lists how a lossless value breaks it.

    Raises:
        UnsupportedSchemaError: It is no valid JSON Schema, or refers outside itself.
    """
    try:
        plain = snapshot(schema, "schema")
    except NotJsonError as error:
        raise UnsupportedSchemaError([str(error)]) from None
    frozen = snapshot_frozen(plain)
    if not isinstance(plain, dict) or not isinstance(frozen, dict):
        raise UnsupportedSchemaError(["schema must be a schema object"])
    if too_deep(plain):
        raise UnsupportedSchemaError([f"schema is nested more than {MAX_DEPTH} levels deep"])
    try:
        Draft202012Validator.check_schema(plain)
    except SchemaError as error:
        worst: Any = best_match([error]) or error  # type: ignore[list-item]  # both are its _Error
        raise UnsupportedSchemaError(
            [f"{child_path('schema', worst.absolute_path)}: {_short(worst)}"]
        ) from None
    # The empty registry resolves references inside the document only; it never fetches anything.
    registry: Registry[Any] = Registry()
    _check_references(plain, registry)
    validator = Draft202012Validator(plain, registry=registry)

    def check(value: Any, root: str) -> list[Violation]:
        if too_deep(value):
            text = f'"{root or "arguments"}" is nested more than {MAX_DEPTH} levels deep'
            return [Violation(text, ())]
        errors = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        return [_violation(error, root) for error in errors]

    return frozen, check


def _check_references(schema: Any, registry: Registry[Any]) -> None:
    """Refuse references that cannot be followed now; at a call it would be too late."""
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = registry.resolver_with_root(resource)
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            for key in ("$ref", "$dynamicRef"):
                reference = node.get(key)
                if isinstance(reference, str):
                    try:
                        resolver.lookup(reference)
                    except Unresolvable:
                        raise UnsupportedSchemaError(
                            [f'schema refers to "{reference}", which is not inside it; nothing is fetched']
                        ) from None
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)


def too_deep(value: Any) -> bool:
    """Whether a value has more levels than jsonschema is given."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


_NOUNS: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "null": "null",
    "array": "an array",
    "object": "an object",
}


def _violation(error: ValidationError, root: str) -> Violation:
    keys = tuple(error.absolute_path)
    expected: Any = error.validator_value
    label = child_path(root, keys) or "arguments"
    if error.validator == "type":
        kinds = [expected] if isinstance(expected, str) else expected
        return Violation(f'"{label}" must be {" or ".join(_NOUNS[kind] for kind in kinds)}', keys)
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [name for name in expected if name not in error.instance]
        named = next((name for name in missing if repr(name) in error.message), missing[0])
        return Violation(f'missing required property "{child_path(root, (*keys, named))}"', (*keys, named))
    return Violation(f'"{label}" {_short(error)}', keys)


def _short(error: Any) -> str:
    message: str = error.message
    return message if len(message) <= _SHOWN_CHARS else message[: _SHOWN_CHARS - 1] + "…"
