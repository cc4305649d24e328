"""Values against schemas: one compiled pass that accepts, one careful walk that explains.

`CompiledSchema.accept` checks and freezes a value in a single pass over it. When it does not like
something it gives up without saying why; the walk, which is iterative and keeps paths, then finds
every violation. Both must agree on what is valid, and tests compare them with `jsonschema`.

Knows: joining the two, and when a schema must go to `jsonschema` instead.
Does not know: which tool a schema belongs to, or what its error is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.values import GIVE_UP, JsonValue, snapshot_frozen
from tool_bindings.acceptance import always_give_up, compile_accept
from tool_bindings.errors import UnsupportedSchemaError
from tool_bindings.explanation import Violation, explain
from tool_bindings.schema import is_full_schema, schema_violations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tool_bindings.acceptance import Accept
    from tool_bindings.schema import JsonSchema

__all__ = ["CompiledSchema", "InvalidValueError", "Violation", "compile_schema", "validate_value"]


class InvalidValueError(ValueError):
    """A value does not fit its schema; `violations` says where and why."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("; ".join(violation.text for violation in violations))
        self.violations = violations


class CompiledSchema:
    """A schema that is ready to check values. Made by `compile_schema`.

    Attributes:
        schema: The deep-frozen schema document.
        accept: Checks and freezes in one pass; returns the frozen value, or GIVE_UP when
            `freeze` must look closer.
        is_slow: Whether checking may take long enough to leave the event loop for a thread.
    """

    __slots__ = ("_check", "accept", "is_slow", "schema")

    def __init__(
        self,
        schema: Mapping[str, Any],
        check: Callable[[Any, str], list[Violation]],
        *,
        in_vocabulary: bool,
        is_slow: bool = False,
    ) -> None:
        self.schema = schema
        self.is_slow = is_slow
        self._check = check
        # Compiled by the first value: of thousands of registered tools few are ever called.
        self.accept: Accept = self._compile_and_accept if in_vocabulary else always_give_up

    def _compile_and_accept(self, value: Any) -> Any:
        self.accept = compile_accept(self.schema)
        return self.accept(value)

    def freeze(self, value: object, root: str = "value") -> JsonValue:
        """Return the deep-frozen value.

        Raises:
            NotJsonError: It is not lossless JSON.
            InvalidValueError: It does not fit the schema.
        """
        accepted = self.accept(value)
        if accepted is not GIVE_UP:
            frozen: JsonValue = accepted
            return frozen
        frozen = snapshot_frozen(value, root or "arguments")
        violations = self._check(frozen, root)
        if violations:
            raise InvalidValueError(violations)
        return frozen

    def violations(self, value: JsonValue, root: str = "value") -> list[Violation]:
        """List everything in a lossless value that does not fit."""
        if self.accept(value) is not GIVE_UP:
            return []
        return self._check(value, root)


def compile_schema(schema: JsonSchema, *, defer: bool = False) -> CompiledSchema:
    """Compile a raw schema once.

    A schema of the vocabulary is compiled by us. One that uses more of JSON Schema 2020-12 is
    checked and applied by `jsonschema`, without ever fetching a remote `$ref`.

    Args:
        schema: The raw schema.
        defer: Let `jsonschema` look at a full schema only when the first value comes; judging one
            takes it tens of milliseconds. Checking a value raises UnsupportedSchemaError then.

    Raises:
        UnsupportedSchemaError: It is neither.
    """
    violations = schema_violations(schema, maps=True)
    if not violations:
        frozen = snapshot_frozen(schema, "schema")
        assert isinstance(frozen, dict)

        def check(value: Any, root: str) -> list[Violation]:
            return explain(frozen, value, root)

        return CompiledSchema(frozen, check, in_vocabulary=True)
    if not is_full_schema(schema):
        raise UnsupportedSchemaError(violations)
    # Imported here: jsonschema takes long to load, and most registries never need it.
    from tool_bindings.full_schema import FullSchema  # noqa: PLC0415

    full = FullSchema(schema)
    if not defer:
        full.prepare()
    return CompiledSchema(full.document, full.check, in_vocabulary=False, is_slow=full.has_patterns)


def validate_value(schema: JsonSchema, value: object, root: str = "value") -> list[str]:
    """List how any object at all breaks a schema of the vocabulary; never raises because of the object.

    Args:
        schema: A raw schema of the vocabulary (not checked again here).
        value: What to check; it need not be JSON.
        root: Label of the value in messages; empty for parameters, which prints as `arguments`.
    """
    return [violation.text for violation in explain(schema, value, root)]
