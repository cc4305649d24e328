"""The walk that explains: every way in which a value breaks a schema of the vocabulary.

It keeps its own stack, so no depth of schema or value overflows, and it never runs code of the value.

Knows: the vocabulary's meaning, with messages and paths.
Does not know: speed; `acceptance` decides the common case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sandbox.values import FrozenDict, FrozenList, NotJsonError, child_path, snapshot_frozen
from tool_bindings.schema import is_literal, json_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    Walk: TypeAlias = Generator["tuple[Mapping[str, Any], Any, Path | None, list[Violation]]", None, None]
    """One node's check; it yields the children it wants checked."""

__all__ = ["Path", "Violation", "explain"]


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


def explain(schema: Mapping[str, Any], value: Any, root: str) -> list[Violation]:
    """List how any object at all breaks a schema; never raises because of the object.

    Args:
        schema: A schema of the vocabulary.
        value: What to check; it need not be JSON.
        root: Label of the value in messages.
    """
    # The checks of all nodes run from this one loop, so that nothing recurses.
    violations: list[Violation] = []
    explainer = _Explainer(root)
    running: list[Walk] = [explainer.check(schema, value, None, violations)]
    while running:
        try:
            child = next(running[-1])
        except StopIteration:
            running.pop()
        else:
            running.append(explainer.check(*child))
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
                self.note(out, path, f"must be {NOUNS[type_name]}")
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


NOUNS: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
"""What a value of each JSON type is called in messages."""


def _no_children() -> Walk:
    yield from ()


def _is_lossless(value: object) -> bool:
    try:
        snapshot_frozen(value)
    except NotJsonError:
        return False
    return True
