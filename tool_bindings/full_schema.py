"""Full JSON Schemas (2020-12), for tools whose schemas lie outside the vocabulary.

Knows: how to have `jsonschema` judge a schema and a value, without network access and within a depth.
Does not know: the vocabulary; what comes here already failed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from sandbox.values import NotJsonError, child_path, snapshot, snapshot_frozen
from tool_bindings.errors import UnsupportedSchemaError
from tool_bindings.explanation import Violation
from tool_bindings.schema_process import CheckTimeoutError, find_faults, schema_process

if TYPE_CHECKING:
    from tool_bindings.schema_process import Fault

__all__ = ["FullSchema"]

MAX_DEPTH: Final = 500
"""Levels of a schema or of a value that jsonschema, which recurses, is given (half of what Python allows)."""

_SHOWN_CHARS: Final = 200
"""Characters shown of a message that jsonschema wrote; it repeats whole values in it (arbitrary)."""


class FullSchema:
    """A full JSON Schema that is ready to check values, once it is prepared.

    Attributes:
        document: The deep-frozen schema.
        has_patterns: Whether it holds regular expressions, which may take any time to match. Values
            are then checked in a process of their own, within a time.
    """

    def __init__(self, schema: object) -> None:
        """Copy the schema and look at its outside.

        Raises:
            UnsupportedSchemaError: It is not a JSON object, or nested too deep.
        """
        try:
            plain = snapshot(schema, "schema")
        except NotJsonError as error:
            raise UnsupportedSchemaError([str(error)]) from None
        document = snapshot_frozen(plain)
        if not isinstance(plain, dict) or not isinstance(document, dict):
            raise UnsupportedSchemaError(["schema must be a schema object"])
        if too_deep(plain):
            raise UnsupportedSchemaError([f"schema is nested more than {MAX_DEPTH} levels deep"])
        self.document = document
        self.has_patterns = _has_patterns(plain)
        self._plain = plain
        self._validator: Draft202012Validator | None = None

    def prepare(self) -> Draft202012Validator:
        """Have the schema judged, once.

        Raises:
            UnsupportedSchemaError: It is no valid JSON Schema, or refers outside itself.
        """
        if self._validator is None:
            try:
                Draft202012Validator.check_schema(self._plain)
            except SchemaError as error:
                place = child_path("schema", error.absolute_path)
                raise UnsupportedSchemaError([f"{place}: {_short(error.message)}"]) from None
            # The empty registry resolves references inside the document only; it never fetches anything.
            registry: Registry[Any] = Registry()
            _check_references(self._plain, registry)
            self._validator = Draft202012Validator(self._plain, registry=registry)
        return self._validator

    def check(self, value: Any, root: str) -> list[Violation]:
        """List how a lossless value breaks the schema; `root` is its label.

        Raises:
            UnsupportedSchemaError: The schema itself, judged only now, is no good.
        """
        validator = self.prepare()
        label = root or "arguments"
        if too_deep(value):
            return [Violation(f'"{label}" is nested more than {MAX_DEPTH} levels deep', ())]
        if not self.has_patterns:
            return [_violation(fault, root) for fault in find_faults(validator, value)]
        try:
            faults = schema_process.faults(self._plain, value)
        except CheckTimeoutError as error:
            return [Violation(f'"{label}" could not be checked: {error}', ())]
        return [_violation(fault, root) for fault in faults]


def _has_patterns(schema: Any) -> bool:
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if "pattern" in node or "patternProperties" in node:
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False


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
    for _ in range(MAX_DEPTH):
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


def _violation(fault: Fault, root: str) -> Violation:
    keys = tuple(fault["keys"])
    label = child_path(root, keys) or "arguments"
    expected: Any = fault["expected"]
    if fault["keyword"] == "type":
        kinds = [expected] if isinstance(expected, str) else expected
        return Violation(f'"{label}" must be {" or ".join(_NOUNS[kind] for kind in kinds)}', keys)
    if fault["keyword"] == "required":
        missing = (*keys, fault["missing"])
        return Violation(f'missing required property "{child_path(root, missing)}"', missing)
    return Violation(f'"{label}" {_short(fault["message"])}', keys)


def _short(message: str) -> str:
    return message if len(message) <= _SHOWN_CHARS else message[: _SHOWN_CHARS - 1] + "…"
