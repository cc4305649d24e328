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
from tool_bindings.full_explanation import faults_of
from tool_bindings.schema import json_text
from tool_bindings.schema_process import CheckTimeoutError, schema_process

if TYPE_CHECKING:
    from tool_bindings.full_explanation import Fault

__all__ = ["FullSchema"]

MAX_DEPTH: Final = 500
"""Levels of a schema or of a value that jsonschema, which recurses, is given (half of what Python allows)."""


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
                faults = faults_of([error], self._plain)
                raise UnsupportedSchemaError([_sentence(fault, "schema") for fault in faults]) from None
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
            return [_violation(fault, root) for fault in faults_of(validator.iter_errors(value), value)]
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


def _violation(fault: Fault, root: str) -> Violation:
    keys = tuple(fault["keys"])
    # A property that is not declared is a fault of the object that has it.
    is_undeclared = fault["form"] == "undeclared"
    return Violation(
        _sentence(fault, root),
        keys[:-1] if is_undeclared else keys,
        str(keys[-1]) if is_undeclared else None,
    )


def _sentence(fault: Fault, root: str) -> str:
    keys, text = fault["keys"], fault["text"]
    match fault["form"]:
        case "missing":
            sentence = f'missing required property "{child_path(root, keys)}"{text}'
        case "name":
            owner = child_path(root, keys[:-1]) or "arguments"
            sentence = f'"{owner}" has a property {json_text(keys[-1])}, whose name {text}'
        case _:
            sentence = f'"{child_path(root, keys) or "arguments"}" {text}'
    if fault["nearest"] is not None:
        sentence += f"; the nearest: {_sentence(fault['nearest'], root)}"
    return sentence
