"""Schemas that servers advertise, made fit for registration.

Every rewriting keeps the set of values a schema accepts, or widens it where a server would check anyway;
none narrows it. The aim is the vocabulary of `tool_bindings.schema`: what reaches it is validated by
compiled code, and is shown in stubs with real types instead of `Any`.

Knows: JSON Schema as servers write it (pydantic, zod). Does not know: servers, or how a value is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sandbox.values import JsonValue, NotJsonError, json_size, snapshot
from tool_bindings.errors import UnsupportedSchemaError
from tool_bindings.mcp.naming import clean_text
from tool_bindings.validation import compile_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["output_schema", "parameters_schema"]

MAX_SCHEMA_BYTES: Final = 262_144
"""JSON bytes of one schema; a larger one counts as absent. Arbitrary: a hundred times a usual one."""
MAX_SCHEMA_DEPTH: Final = 60
"""Levels of one schema; a deeper one counts as absent. Arbitrary: hand-written ones have ten."""
MAX_NODES: Final = 2_000
"""Schema nodes after references are written out; a reference that would pass this stays one."""
MAX_NOTE_CHARS: Final = 1000
"""Characters of a description inside a schema."""

_ANNOTATING: Final = frozenset(
    (
        *(
            "$schema",
            "$comment",
            "$id",
            "title",
            "examples",
            "example",
            "deprecated",
            "readOnly",
            "writeOnly",
        ),
        *("format", "contentEncoding", "contentMediaType", "discriminator", "markdownDescription"),
        *("enumDescriptions", "errorMessage"),
    )
)
"""Keywords that say nothing about which values are valid. `x-...` keywords are such as well."""
_PATTERNS: Final = frozenset(("pattern", "patternProperties", "propertyNames"))
"""Keywords with a server's regular expressions, which could take for ever here (decision 0252)."""
_DROPPED: Final = _ANNOTATING | _PATTERNS

_ANNOTATIONS: Final = frozenset(("description", "default"))
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_TYPED_KEYWORDS: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
}


def parameters_schema(schema: object) -> dict[str, Any]:
    """Return what a tool's arguments are checked against; any object when the server's schema is unusable.

    The server checks its arguments itself, so nothing is lost by letting one through.
    """
    fitted = _fitted(schema)
    if fitted is not None and "type" not in fitted and "properties" in fitted:
        fitted = {"type": "object", **fitted}  # Arguments are an object whether a schema says so or not.
    if fitted is None or fitted.get("type") != "object" or not _compiles(fitted):
        return {"type": "object"}
    return fitted


def output_schema(schema: object) -> dict[str, Any]:
    """Return the schema of a tool's canonical value, `{content, structuredContent}`.

    Args:
        schema: What the server advertises for its structured content; None for nothing.
    """
    fitted = None if schema is None else _fitted(schema)
    if fitted is not None:
        closed = _canonical(_moved(fitted), required=True)
        if _compiles(closed):
            return closed
    return _canonical({}, required=False)


def _canonical(structured: dict[str, Any], *, required: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"content": {"type": "array"}, "structuredContent": structured},
        "required": ["content", "structuredContent"] if required else ["content"],
        "additionalProperties": False,
    }


def _compiles(schema: Mapping[str, Any]) -> bool:
    try:
        compile_schema(schema)
    except (UnsupportedSchemaError, RecursionError):
        # jsonschema recurses, and what a server may send is not bounded by what it is sensible to send.
        return False
    return True


def _fitted(schema: object) -> dict[str, Any] | None:
    """Return the schema in the vocabulary as far as it goes, or None when it cannot be used."""
    try:
        plain = snapshot(schema, "schema")
    except NotJsonError:
        return None
    if not isinstance(plain, dict) or json_size(plain) > MAX_SCHEMA_BYTES or _depth(plain) > MAX_SCHEMA_DEPTH:
        return None
    fitter = _Fitter(plain)
    fitted = fitter.node(plain, ())
    if not isinstance(fitted, dict) or fitter.foreign:
        return None
    if fitter.kept_references:
        # They point into the original's definitions, which therefore stay as they were sent.
        for key in ("$defs", "definitions"):
            if key in plain:
                fitted[key] = _without_patterns({key: plain[key]})[key]
    return fitted


def _depth(value: JsonValue) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
        ]
    return depth


class _Fitter:
    """Rewrites one schema. Recursion is bounded by `MAX_SCHEMA_DEPTH` and by each reference's own path."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._nodes = 0
        self.kept_references = False
        self.foreign = False
        """Whether something in it depends on a document's identity, which a rewriting would change."""

    def node(self, node: Any, path: tuple[str, ...]) -> Any:
        self._nodes += 1
        if not isinstance(node, dict):
            return node
        if any(key in node for key in ("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor")):
            self.foreign = True
        if isinstance(node.get("$ref"), str):
            return self._reference(node, path)
        kept = {
            key: value
            for key, value in node.items()
            if key not in _DROPPED and key not in ("$defs", "definitions") and not key.startswith("x-")
        }
        if "patternProperties" in node and kept.get("additionalProperties") is not True:
            # What the patterns allowed must not become forbidden.
            kept.pop("additionalProperties", None)
        if isinstance(kept.get("description"), str):
            kept["description"] = clean_text(kept["description"], MAX_NOTE_CHARS)
        else:
            kept.pop("description", None)
        self._children(kept, path)
        return _plain_union(_typed(_single_all_of(kept)))

    def _children(self, kept: dict[str, Any], path: tuple[str, ...]) -> None:
        if isinstance(kept.get("properties"), dict):
            kept["properties"] = {
                name: _open(self.node(child, path)) for name, child in kept["properties"].items()
            }
        for key in ("items", "additionalProperties", "not", "contains", "if", "then", "else"):
            if isinstance(kept.get(key), dict):
                kept[key] = self.node(kept[key], path)
        for key in ("oneOf", "anyOf", "allOf", "prefixItems"):
            if isinstance(kept.get(key), list):
                kept[key] = [self.node(arm, path) for arm in kept[key]]
        if isinstance(kept.get("required"), list):
            self._declare_required(kept)
        if kept.get("required") == []:
            del kept["required"]
        if kept.get("items") is True:
            del kept["items"]
        if kept.get("additionalProperties") == {}:
            kept["additionalProperties"] = True

    def _declare_required(self, kept: dict[str, Any]) -> None:
        """Let every required name be declared, as the vocabulary wants; an undeclared one may be anything."""
        properties = kept.get("properties", {})
        names = kept["required"]
        if not isinstance(properties, dict) or kept.get("additionalProperties") is False:
            return
        missing = [name for name in names if isinstance(name, str) and name not in properties]
        if missing and not isinstance(kept.get("additionalProperties"), dict):
            kept["properties"] = {**properties, **{name: {} for name in missing}}

    def _reference(self, node: dict[str, Any], path: tuple[str, ...]) -> Any:
        reference = node["$ref"]
        target = self._look_up(reference)
        if not isinstance(target, dict) or reference in path or self._nodes > MAX_NODES:
            self.kept_references = True
            return {"$ref": reference}
        fitted = self.node(target, (*path, reference))
        beside = {key: node[key] for key in _ANNOTATIONS if key in node}
        if "description" in beside:
            beside["description"] = clean_text(str(beside["description"]), MAX_NOTE_CHARS)
        return {**fitted, **beside} if isinstance(fitted, dict) else fitted

    def _look_up(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return self._root if reference == "#" else None
        found: Any = self._root
        for part in reference[2:].split("/"):
            if not isinstance(found, dict):
                return None
            found = found.get(part.replace("~1", "/").replace("~0", "~"))
        return found


def _open(node: Any) -> Any:
    """Write the schema that accepts everything as the vocabulary does."""
    return {} if node is True else node


def _single_all_of(node: dict[str, Any]) -> dict[str, Any]:
    """Write `allOf` of one schema, which stands beside annotations only, as that schema."""
    arms = node.get("allOf")
    others = node.keys() - {"allOf"} - _ANNOTATIONS
    if isinstance(arms, list) and len(arms) == 1 and isinstance(arms[0], dict) and not others:
        return {**arms[0], **{key: node[key] for key in _ANNOTATIONS if key in node}}
    return node


def _typed(node: dict[str, Any]) -> dict[str, Any]:
    """Write a list of types as a union, and name the type that an enum or a const has anyway."""
    kinds = node.get("type")
    if isinstance(kinds, list):
        return _type_list(node, kinds)
    if (
        kinds is None
        and ("enum" in node or "const" in node)
        and not node.keys() & {"oneOf", "anyOf", "allOf"}
    ):
        literals = [node["const"]] if "const" in node else node["enum"]
        found = {_type_of(literal) for literal in literals} if isinstance(literals, list) else set()
        if len(found) == 1 and None not in found:
            return {"type": found.pop(), **node}
    return node


def _type_list(node: dict[str, Any], kinds: list[Any]) -> dict[str, Any]:
    if not kinds or not all(kind in _TYPES for kind in kinds):
        return node
    rest = {key: value for key, value in node.items() if key != "type"}
    names = list(dict.fromkeys(kinds))
    if "number" in names and "integer" in names:
        names.remove("integer")  # Every integer is a number.
    if len(names) == 1:
        return {"type": names[0], **rest}
    if rest.keys() - _ANNOTATIONS - _TYPED_KEYWORDS.keys():
        return node
    arms = [
        {
            "type": name,
            **{key: rest[key] for key, owner in _TYPED_KEYWORDS.items() if owner == name and key in rest},
        }
        for name in names
    ]
    return {"oneOf": arms, **{key: rest[key] for key in _ANNOTATIONS if key in rest}}


def _type_of(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    return {str: "string", int: "integer"}.get(type(value))


def _plain_union(node: dict[str, Any]) -> dict[str, Any]:
    """Write `anyOf` as `oneOf` where no value can match two arms, and one arm as itself."""
    key = "anyOf" if "anyOf" in node else "oneOf"
    arms = node.get(key)
    if not isinstance(arms, list) or not all(isinstance(arm, dict) for arm in arms):
        return node
    others = node.keys() - {key} - _ANNOTATIONS
    if others == {"type"} and all(arm.get("type") == node["type"] for arm in arms):
        others = set()  # Said twice.
    if others:
        return node
    notes = {name: node[name] for name in _ANNOTATIONS if name in node}
    flat = [leaf for arm in arms for leaf in _arms_of(arm)]
    if len(flat) == 1:
        return {**flat[0], **notes}
    if key == "anyOf" and not _disjoint(flat):
        return node
    return {"oneOf": flat if _disjoint(flat) else arms, **notes}


def _arms_of(arm: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arms of a union inside a union, whose own notes say nothing more."""
    inner = arm.get("oneOf")
    if isinstance(inner, list) and not arm.keys() - {"oneOf"} - _ANNOTATIONS:
        return [leaf for leaf in inner if isinstance(leaf, dict)]
    return [arm]


def _disjoint(arms: list[dict[str, Any]]) -> bool:
    """Whether no value can match two of the arms: by their types, or by the literals of one type."""
    seen: dict[str, list[Any] | None] = {}
    for arm in arms:
        kind = arm.get("type")
        if not isinstance(kind, str):
            return False
        kind = "number" if kind == "integer" else kind
        literals = [arm["const"]] if "const" in arm else arm.get("enum")
        if kind not in seen:
            seen[kind] = literals if isinstance(literals, list) else None
            continue
        known = seen[kind]
        if known is None or not isinstance(literals, list) or any(item in known for item in literals):
            return False
        seen[kind] = [*known, *literals]
    return True


def _moved(node: Any) -> Any:
    """Return a schema whose references still work when it stands below `structuredContent`."""
    if isinstance(node, dict):
        moved = {key: _moved(value) for key, value in node.items()}
        if isinstance(node.get("$ref"), str) and node["$ref"].startswith("#"):
            moved["$ref"] = "#/properties/structuredContent" + node["$ref"][1:]
        return moved
    return [_moved(item) for item in node] if isinstance(node, list) else node


def _without_patterns(node: Any) -> Any:
    """Drop the dropped keywords from definitions that stay as they were sent."""
    if not isinstance(node, dict):
        return [_without_patterns(item) for item in node] if isinstance(node, list) else node
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("enum", "const", "default"):
            kept[key] = value
        elif key in _SCHEMA_MAPS and isinstance(value, dict):
            kept[key] = {name: _without_patterns(child) for name, child in value.items()}
        elif key not in _DROPPED:
            kept[key] = _without_patterns(value)
    if "patternProperties" in node:
        kept.pop("additionalProperties", None)
    return kept


_SCHEMA_MAPS: Final = ("properties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose members are named by the author, so that a name is no keyword there."""
