"""Values against schemas: one compiled pass that accepts, one careful walk that explains.

`CompiledSchema.accept` checks and freezes a value in a single pass over it. When it does not like
something it gives up without saying why; the walk, which is iterative and keeps paths, then finds
every violation. Both must agree on what is valid, and tests compare them with `jsonschema`.

Knows: the vocabulary's meaning, and when a schema must go to `jsonschema` instead.
Does not know: which tool a schema belongs to, or what its error is called.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sandbox.values import (
    GIVE_UP,
    FrozenDict,
    FrozenList,
    JsonValue,
    NotJsonError,
    child_path,
    freeze_fast,
    frozen_dict,
    frozen_list,
    snapshot_frozen,
)
from tool_bindings.errors import UnsupportedSchemaError
from tool_bindings.schema import is_full_schema, is_literal, json_text, schema_violations

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from tool_bindings.schema import JsonSchema

    Accept: TypeAlias = Callable[[Any], Any]
    """Returns the frozen value, or GIVE_UP when the walk must decide."""

    Walk: TypeAlias = Generator["tuple[Mapping[str, Any], Any, Path | None, list[Violation]]", None, None]
    """One node's check; it yields the children it wants checked."""

__all__ = ["CompiledSchema", "InvalidValueError", "Violation", "compile_schema", "validate_value"]

_COMPILED_LEVELS: Final = 40
"""Schema levels compiled to nested closures (arbitrary); a deeper schema is left to the walk."""


class Path(NamedTuple):
    """A position in a value as a linked list: extending it costs the same at any depth."""

    parent: Path | None
    key: str | int

    def child(self, key: str | int) -> Path:
        """Return the position one level down."""
        return Path(self, key)


class Violation(NamedTuple):
    """One way in which a value does not fit.

    Attributes:
        text: The message.
        keys: Keys from the root to the place.
        undeclared: The key that should not be there, if that is the violation.
    """

    text: str
    keys: tuple[str | int, ...]
    undeclared: str | None = None


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
        self.accept: Accept = self._compile_and_accept if in_vocabulary else _always_give_up

    def _compile_and_accept(self, value: Any) -> Any:
        self.accept = _compile_accept(self.schema, _COMPILED_LEVELS)
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
            return _walk(frozen, value, root)

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
    return [violation.text for violation in _walk(schema, value, root)]


# --- the pass that accepts --------------------------------------------------------------------------


def _always_give_up(_value: Any, /) -> Any:
    return GIVE_UP


def _accept_any(value: Any) -> Any:
    return freeze_fast(value)


def _accept_string(value: Any) -> Any:
    return value if type(value) is str else GIVE_UP


def _accept_boolean(value: Any) -> Any:
    return value if type(value) is bool else GIVE_UP


def _accept_null(value: Any) -> Any:
    return None if value is None else GIVE_UP


def _accept_integer(value: Any) -> Any:
    kind = type(value)
    return value if kind is int or (kind is float and value.is_integer()) else GIVE_UP


def _accept_number(value: Any) -> Any:
    kind = type(value)
    return value if kind is int or (kind is float and value - value == 0) else GIVE_UP


_SCALARS: Final[dict[str, Accept]] = {
    "string": _accept_string,
    "boolean": _accept_boolean,
    "null": _accept_null,
    "integer": _accept_integer,
    "number": _accept_number,
}

_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (NoneType,),
    "integer": (int, float),
    "number": (int, float),
    "array": (list, FrozenList),
    "object": (dict, FrozenDict),
}

_EXACT_TYPE: Final[dict[Accept, type]] = {
    _accept_string: str,
    _accept_boolean: bool,
    _accept_null: NoneType,
    _accept_integer: int,
    _accept_number: int,
}
"""For plain scalars: the type that needs no call to be accepted."""


def _compile_accept(node: Mapping[str, Any], levels: int) -> Accept:
    """Build the accepting closure of a node, or one that always gives up below `levels`."""
    if not levels:
        return _always_give_up
    if "oneOf" in node:
        return _one_of(node["oneOf"], levels - 1)
    type_name = node.get("type")
    if type_name is None:
        return _accept_any
    if type_name == "object":
        return _object(node, levels - 1)
    if type_name == "array":
        return _array(node, levels - 1)
    if "enum" in node or "const" in node:
        literals = set(node["enum"]) if "enum" in node else {node["const"]}
        if "const" in node:
            literals &= {node["const"]}
        return _literals(_SCALARS[type_name], frozenset(literals))
    return _SCALARS[type_name]


def _literals(scalar: Accept, literals: frozenset[Any]) -> Accept:
    # The scalar test comes first, so that True is never looked up among numbers.
    def accept(value: Any) -> Any:
        return value if scalar(value) is not GIVE_UP and value in literals else GIVE_UP

    return accept


def _one_of(arms: list[Mapping[str, Any]], levels: int) -> Accept:
    # Arms are sorted by the Python types they could accept, so that most values meet one arm only.
    by_type: dict[type, list[Accept]] = {kind: [] for kinds in _PYTHON_TYPES.values() for kind in kinds}
    for arm in arms:
        accept_arm = _compile_accept(arm, levels)
        if accept_arm is _always_give_up:
            return _always_give_up
        for kind in _PYTHON_TYPES.get(arm.get("type", ""), tuple(by_type)):
            by_type[kind].append(accept_arm)
    candidates = {kind: tuple(accepts) for kind, accepts in by_type.items()}

    def accept(value: Any) -> Any:
        found: Any = GIVE_UP
        for arm in candidates.get(type(value), ()):
            taken = arm(value)
            if taken is not GIVE_UP:
                if found is not GIVE_UP:
                    return GIVE_UP
                found = taken
        return found

    return accept


def _array(node: Mapping[str, Any], levels: int) -> Accept:
    accept_item = _compile_accept(node.get("items", {}), levels)
    if accept_item is _always_give_up:
        return _always_give_up
    exact = _EXACT_TYPE.get(accept_item)

    def accept(value: Any) -> Any:
        kind = type(value)
        if kind is list:
            # Copied before it is looked at, so that another thread cannot change it in between.
            items = value.copy()
            for index, item in enumerate(items):
                if type(item) is exact:
                    continue
                taken = accept_item(item)
                if taken is GIVE_UP:
                    return GIVE_UP
                if taken is not item:
                    items[index] = taken
            return frozen_list(items)
        if kind is FrozenList:
            for item in value:
                if accept_item(item) is GIVE_UP:
                    return GIVE_UP
            return value
        return GIVE_UP

    return accept


def _object(node: Mapping[str, Any], levels: int) -> Accept:
    properties: Mapping[str, Any] = node.get("properties", {})
    accepts: dict[str, Accept] = {}
    for name, child in properties.items():
        accepts[name] = _compile_accept(child, levels)
        if accepts[name] is _always_give_up:
            return _always_give_up
    additional = node.get("additionalProperties", True)
    accept_other: Accept | None = None
    if additional is True:
        accept_other = _accept_any
    elif additional is not False:
        accept_other = _compile_accept(additional, levels)
        if accept_other is _always_give_up:
            return _always_give_up
    required = tuple(node.get("required", ()))
    declared = len(properties)
    exact = {name: _EXACT_TYPE[accept] for name, accept in accepts.items() if accept in _EXACT_TYPE}
    exact_type, accept_of = exact.get, accepts.get

    def accept(value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            fields = value.copy()
        elif kind is FrozenDict:
            fields = value
        else:
            return GIVE_UP
        for key, item in fields.items():
            if type(key) is not str:
                return GIVE_UP
            if exact_type(key) is type(item):
                continue
            accept_field = accept_of(key, accept_other)
            if accept_field is None:
                return GIVE_UP
            taken = accept_field(item)
            if taken is GIVE_UP:
                return GIVE_UP
            if taken is not item:
                fields[key] = taken
        # In a closed object every key is a declared one by now, so counting them may settle it.
        if len(fields) != declared or accept_other is not None:
            for name in required:
                if name not in fields:
                    return GIVE_UP
        return fields if kind is FrozenDict else frozen_dict(fields)

    return accept


# --- the walk that explains -------------------------------------------------------------------------


def _walk(schema: Mapping[str, Any], value: Any, root: str) -> list[Violation]:
    """Run the checks of all nodes from one loop, so that no depth of schema or value overflows."""
    violations: list[Violation] = []
    explain = _Explainer(root)
    running: list[Walk] = [explain.check(schema, value, None, violations)]
    while running:
        try:
            child = next(running[-1])
        except StopIteration:
            running.pop()
        else:
            running.append(explain.check(*child))
    return violations


class _Explainer:
    """The vocabulary's checks; `root` is the label of the whole value."""

    __slots__ = ("root",)

    def __init__(self, root: str) -> None:
        self.root = root

    def keys(self, path: Path | None) -> tuple[str | int, ...]:
        keys: list[str | int] = []
        while path is not None:
            keys.append(path.key)
            path = path.parent
        return tuple(reversed(keys))

    def label(self, path: Path | None) -> str:
        return child_path(self.root, self.keys(path)) or "arguments"

    def note(self, out: list[Violation], path: Path | None, rest: str) -> None:
        out.append(Violation(f'"{self.label(path)}" {rest}', self.keys(path)))

    def check(self, node: Mapping[str, Any], value: Any, path: Path | None, out: list[Violation]) -> Walk:
        if "oneOf" in node:
            return self.check_one_of(node, value, path, out)
        type_name = node.get("type")
        if type_name == "object":
            return self.check_object(node, value, path, out)
        if type_name == "array":
            return self.check_array(node, value, path, out)
        if type_name is None:
            if not _is_lossless(value):
                self.note(out, path, "must be a lossless JSON value")
        else:
            self.check_scalar(node, type_name, value, path, out)
        return _no_children()

    def check_scalar(
        self, node: Mapping[str, Any], type_name: str, value: Any, path: Path | None, out: list[Violation]
    ) -> None:
        if not is_literal(value, type_name):
            if type_name == "number" and type(value) is float:
                self.note(out, path, "must be a finite JSON number")
            else:
                self.note(out, path, f"must be {_NOUNS[type_name]}")
        elif "enum" in node and value not in node["enum"]:
            self.note(out, path, f"must be one of {json_text(node['enum'])}")
        elif "const" in node and value != node["const"]:
            self.note(out, path, f"must be {json_text(node['const'])}")

    def check_one_of(
        self, node: Mapping[str, Any], value: Any, path: Path | None, out: list[Violation]
    ) -> Walk:
        matched = 0
        for arm in node["oneOf"]:
            of_arm: list[Violation] = []
            yield arm, value, path, of_arm
            matched += not of_arm
        if matched != 1:
            self.note(out, path, f"must match exactly one oneOf branch (matched {matched})")

    def check_array(
        self, node: Mapping[str, Any], value: Any, path: Path | None, out: list[Violation]
    ) -> Walk:
        if type(value) is not list and type(value) is not FrozenList:
            self.note(out, path, "must be an array")
            return
        items = node.get("items")
        if items is None:
            if not _is_lossless(value):
                self.note(out, path, "must be a dense lossless JSON array")
            return
        for index, item in enumerate(list(value)):
            yield items, item, Path(path, index), out

    def check_object(
        self, node: Mapping[str, Any], value: Any, path: Path | None, out: list[Violation]
    ) -> Walk:
        if type(value) is not dict and type(value) is not FrozenDict:
            self.note(out, path, "must be an object")
            return
        before = len(out)
        if not all(type(key) is str for key in value):
            self.note(out, path, "must be a lossless JSON object")
            return
        fields = dict(value)
        properties: Mapping[str, Any] = node.get("properties", {})
        for name in node.get("required", ()):
            if name not in fields:
                keys = (*self.keys(path), name)
                out.append(Violation(f'missing required property "{child_path(self.root, keys)}"', keys))
        for name, child in properties.items():
            if name in fields:
                yield child, fields[name], Path(path, name), out
        additional = node.get("additionalProperties", True)
        others = [key for key in fields if key not in properties]
        if additional is False:
            for key in others:
                label = self.label(Path(path, key))
                text = f'"{label}" is not a declared property (additionalProperties: false)'
                out.append(Violation(text, self.keys(path), key))
        elif additional is not True:
            for key in others:
                yield additional, fields[key], Path(path, key), out
        elif len(out) == before and not all(_is_lossless(fields[key]) for key in others):
            self.note(out, path, "must be a lossless JSON object")


_NOUNS: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "null": "null",
}


def _no_children() -> Walk:
    yield from ()


def _is_lossless(value: object) -> bool:
    try:
        snapshot_frozen(value)
    except NotJsonError:
        return False
    return True
