"""The schema vocabulary: what a tool may declare, in two spellings.

The raw spelling is a small subset of JSON Schema. The author spelling marks a property with
`"required": True` in place, must say `additionalProperties` on every object, and has a type `json`
for any JSON value; it compiles to the raw one.

Knows: both spellings' rules and the text of every violation.
Does not know: how a value is validated (`validation`), or schemas outside the vocabulary beyond
recognising them. Every walk here keeps its own stack, so depth has no bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sandbox.values import FrozenDict, FrozenList, NotJsonError, encode, number_text, snapshot
from tool_bindings.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "JsonSchema",
    "assert_json_schema",
    "assert_object_schema",
    "is_full_schema",
    "json_text",
    "parameters_schema",
    "schema_violations",
    "value_schema",
]

JsonSchema: TypeAlias = Mapping[str, Any]
"""A raw schema, as it is sent to a model."""

SCALAR_TYPES: Final = ("string", "number", "integer", "boolean", "null")
TYPES: Final = ("object", "array", *SCALAR_TYPES)

_ANNOTATIONS: Final = ("description", "title", "default", "examples")
_CONSTRAINTS: Final = ("properties", "required", "additionalProperties", "items", "enum", "const")
_KEYWORDS: Final = ("type", "oneOf", *_CONSTRAINTS, *_ANNOTATIONS)
_SUBSET: Final = ", ".join(_KEYWORDS)

_ALLOWED_ON: Final[dict[str, tuple[str, ...]]] = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items",),
    **dict.fromkeys(SCALAR_TYPES, ("enum", "const")),
}


def json_text(value: Any) -> str:
    """Quote a literal for a message, as JSON with a space after commas, numbers as results show them."""
    if isinstance(value, list):
        return "[" + ", ".join(json_text(item) for item in value) + "]"
    return number_text(value) if type(value) is float else encode(value).decode("ascii")


def is_record(node: object) -> bool:
    """Whether a node is a plain object of a schema document."""
    return type(node) is dict or type(node) is FrozenDict


def is_array(node: object) -> bool:
    """Whether a node is a plain array of a schema document."""
    return type(node) is list or type(node) is FrozenList


def is_literal(value: object, type_name: str) -> bool:
    """Whether a value is of a scalar JSON type; `True` is no number, and `1.0` is an integer."""
    kind = type(value)
    if type_name == "string":
        return kind is str
    if type_name == "boolean":
        return kind is bool
    if type_name == "null":
        return value is None
    if kind is int:
        return True
    if not isinstance(value, float) or kind is not float:
        return False
    return value.is_integer() if type_name == "integer" else value - value == 0


# --- raw spelling -----------------------------------------------------------------------------------


def schema_violations(schema: object, *, root: str = "schema", maps: bool = False) -> list[str]:
    """List everything that breaks the vocabulary, in walk order.

    Args:
        schema: The raw schema.
        root: Label of the schema in the messages.
        maps: Also allow a schema as `additionalProperties`, which annotations such as
            `dict[str, int]` compile to.
    """
    violations: list[str] = []
    # (path, node) to enter, or (None, node) to leave it again.
    todo: list[tuple[str | None, Any]] = [(root, schema)]
    ancestors: set[int] = set()
    while todo:
        path, node = todo.pop()
        if path is None:
            ancestors.discard(id(node))
            continue
        if not is_record(node):
            violations.append(f"{path} must be a schema object")
            continue
        if id(node) in ancestors:
            violations.append(f"{path} is circular")
            continue
        ancestors.add(id(node))
        todo.append((None, node))
        children = list(_check_node(path, node, violations, maps=maps))
        todo.extend(reversed(children))
    return violations


def _check_node(
    path: str, node: Mapping[str, Any], violations: list[str], *, maps: bool
) -> Iterator[tuple[str, Any]]:
    """Note a node's own violations; yield its children with their paths."""
    for key in node:
        if key not in _KEYWORDS:
            violations.append(f"{path}.{key} is not a supported keyword (subset: {_SUBSET})")
        elif key in _ANNOTATIONS:
            if not _is_lossless(node[key]):
                violations.append(f"{path}.{key} annotation must be lossless JSON data")
            elif key in ("description", "title") and type(node[key]) is not str:
                violations.append(f"{path}.{key} must be a string")
    if "type" in node and "oneOf" in node:
        violations.append(f"{path} cannot declare both type and oneOf")
        return
    if "oneOf" in node:
        violations.extend(
            f"{path}.{key} is not supported beside oneOf" for key in _CONSTRAINTS if key in node
        )
        arms = node["oneOf"]
        if not is_array(arms) or len(arms) < 2:
            violations.append(f"{path}.oneOf must be an array of at least two schemas")
            return
        for index, arm in enumerate(arms):
            yield f"{path}.oneOf[{index}]", arm
        return
    if "type" not in node:
        violations.extend(f"{path}.{key} requires type or oneOf" for key in _CONSTRAINTS if key in node)
        return
    type_name = node["type"]
    if is_array(type_name):
        violations.append(f"{path}.type must name one type; write a union as oneOf")
        return
    if type(type_name) is not str or type_name not in TYPES:
        violations.append(f"{path}.type must be one of {'/'.join(TYPES)}")
        return
    allowed = _ALLOWED_ON[type_name]
    violations.extend(
        f'{path}.{key} is not supported on type "{type_name}"'
        for key in _CONSTRAINTS
        if key in node and key not in allowed
    )
    if type_name == "object":
        yield from _check_object(path, node, violations, maps=maps)
    elif type_name == "array":
        if "items" in node:
            yield f"{path}.items", node["items"]
    else:
        _check_literals(path, node, type_name, violations)


def _check_object(
    path: str, node: Mapping[str, Any], violations: list[str], *, maps: bool
) -> Iterator[tuple[str, Any]]:
    properties = node.get("properties", {})
    if not is_record(properties):
        violations.append(f"{path}.properties must be an object of schemas")
        properties = {}
    if "required" in node:
        required = node["required"]
        if not is_array(required) or not all(type(name) is str for name in required):
            violations.append(f"{path}.required must be an array of strings")
        else:
            violations.extend(
                f'{path}.required names "{name}" which is not in properties'
                for name in required
                if name not in properties
            )
    if "additionalProperties" in node:
        additional = node["additionalProperties"]
        if maps and is_record(additional):
            yield f"{path}.additionalProperties", additional
        elif type(additional) is not bool:
            violations.append(f"{path}.additionalProperties must be a boolean")
    for name, child in properties.items():
        yield f"{path}.properties.{name}", child


def _check_literals(path: str, node: Mapping[str, Any], type_name: str, violations: list[str]) -> None:
    literals: Any = None
    if "enum" in node:
        literals = node["enum"]
        if (
            not is_array(literals)
            or not literals
            or not all(is_literal(item, type_name) for item in literals)
        ):
            violations.append(f"{path}.enum must be a non-empty array of {type_name} values")
            literals = None
    if "const" in node:
        if not is_literal(node["const"], type_name):
            violations.append(f"{path}.const must be a {type_name} value")
        elif literals is not None and node["const"] not in literals:
            violations.append(f"{path}.const must be one of {path}.enum when both are declared")


def _is_lossless(value: object) -> bool:
    try:
        snapshot(value)
    except NotJsonError:
        return False
    return True


def assert_json_schema(schema: object) -> None:
    """Refuse a raw schema that breaks the vocabulary.

    Raises:
        UnsupportedSchemaError: Lists every violation.
    """
    violations = schema_violations(schema)
    if violations:
        raise UnsupportedSchemaError(violations)


def assert_object_schema(schema: object) -> None:
    """Refuse a raw schema that breaks the vocabulary or whose root is not an object.

    For consumers whose value is a record by nature, such as a structured output. Tool outputs may
    have any root.

    Raises:
        UnsupportedSchemaError: Lists every violation; the root's type only when nothing else is wrong.
    """
    assert_json_schema(schema)
    assert isinstance(schema, Mapping)
    if schema.get("type") != "object":
        raise UnsupportedSchemaError(['schema.type must be "object"'])


def is_full_schema(schema: object) -> bool:
    """Whether a document speaks more of JSON Schema than the vocabulary does.

    True when it uses a keyword, a list of types, or a boolean or schema where the vocabulary has
    none. Such a document is judged by the JSON Schema specification. One that stays inside the
    vocabulary's words and still breaks its rules is a mistake, not another dialect.
    """
    todo: list[Any] = [schema]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if not is_record(node) or id(node) in seen:
            continue
        seen.add(id(node))
        if any(key not in _KEYWORDS for key in node) or is_array(node.get("type")):
            return True
        children: list[Any] = []
        if is_record(node.get("properties")):
            children.extend(node["properties"].values())
        if is_array(node.get("oneOf")):
            children.extend(node["oneOf"])
        if "items" in node:
            children.append(node["items"])
        if any(type(child) is bool for child in children) or is_record(node.get("additionalProperties")):
            return True
        todo.extend(children)
    return False


# --- author spelling --------------------------------------------------------------------------------

_AUTHOR_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "object": ("properties", "additionalProperties"),
    "array": ("items",),
    "json": (),
    **dict.fromkeys(SCALAR_TYPES, ("enum", "const")),
}


def value_schema(spec: object) -> dict[str, Any]:
    """Compile a schema in the author spelling, for a tool's output.

    Raises:
        UnsupportedSchemaError: The first thing that is wrong with it.
    """
    compiled = _compile(spec, "schema", is_property=False)
    assert_json_schema(compiled)
    return compiled


def parameters_schema(properties: object) -> dict[str, Any]:
    """Compile a record of property specs in the author spelling to a tool's parameters.

    The root is an open object: arguments beyond the declared ones are allowed.

    Raises:
        UnsupportedSchemaError: The first thing that is wrong with them.
    """
    if not is_record(properties):
        raise UnsupportedSchemaError(["schema.properties must be an object of schemas"])
    compiled = _compile(
        {"type": "object", "properties": properties, "additionalProperties": True},
        "schema",
        is_property=False,
    )
    del compiled["additionalProperties"]
    assert_json_schema(compiled)
    return compiled


class _Open:
    """One node under compilation and where its result goes."""

    __slots__ = ("holder", "is_property", "key", "node", "path")

    def __init__(self, node: Any, path: str, holder: Any, key: Any, *, is_property: bool) -> None:
        self.node = node
        self.path = path
        self.holder = holder
        self.key = key
        self.is_property = is_property


def _compile(spec: object, root: str, *, is_property: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    todo: list[_Open | int] = [_Open(spec, root, result, "root", is_property=is_property)]
    ancestors: set[int] = set()
    while todo:
        step = todo.pop()
        if isinstance(step, int):
            ancestors.discard(step)
            continue
        node = step.node
        if not is_record(node):
            raise UnsupportedSchemaError([f"{step.path} must be a schema object"])
        if id(node) in ancestors:
            raise UnsupportedSchemaError([f"{step.path} is circular"])
        ancestors.add(id(node))
        todo.append(id(node))
        compiled, children = _compile_node(step)
        step.holder[step.key] = compiled
        todo.extend(reversed(children))
    compiled_root: dict[str, Any] = result["root"]
    return compiled_root


def _compile_node(step: _Open) -> tuple[dict[str, Any], list[_Open]]:
    node, path = step.node, step.path
    _refuse_author_slips(node, path, is_property=step.is_property)
    compiled: dict[str, Any] = {}
    children: list[_Open] = []
    if "oneOf" in node:
        arms = node["oneOf"]
        if not is_array(arms) or len(arms) < 2:
            raise UnsupportedSchemaError([f"{path}.oneOf must be an array of at least two schemas"])
        compiled["oneOf"] = [None] * len(arms)
        for index, arm in enumerate(arms):
            children.append(_Open(arm, f"{path}.oneOf[{index}]", compiled["oneOf"], index, is_property=False))
    elif node["type"] != "json":
        compiled["type"] = node["type"]
    if node.get("type") == "array":
        if "items" in node:
            children.append(_Open(node["items"], f"{path}.items", compiled, "items", is_property=False))
    elif node.get("type") == "object":
        properties = node.get("properties", {})
        if not is_record(properties):
            raise UnsupportedSchemaError([f"{path}.properties must be an object of schemas"])
        # Filled with None first, so that the order of properties is the declared one.
        compiled["properties"] = dict.fromkeys(properties)
        required = [
            name for name, child in properties.items() if is_record(child) and child.get("required") is True
        ]
        if required:
            compiled["required"] = required
        compiled["additionalProperties"] = node["additionalProperties"]
        for name, child in properties.items():
            children.append(
                _Open(child, f"{path}.properties.{name}", compiled["properties"], name, is_property=True)
            )
    for key in ("enum", "const", *_ANNOTATIONS):
        if key in node:
            compiled[key] = _copied(node[key], f"{path}.{key}")
    return compiled, children


def _refuse_author_slips(node: Mapping[str, Any], path: str, *, is_property: bool) -> None:
    if "type" in node and "oneOf" in node:
        raise UnsupportedSchemaError([f"{path} cannot declare both type and oneOf"])
    if "oneOf" in node:
        allowed: tuple[str, ...] = ("oneOf",)
    else:
        type_name = node.get("type")
        if type(type_name) is not str or type_name not in _AUTHOR_KEYS:
            raise UnsupportedSchemaError([f"{path}.type must be one of {'/'.join(_AUTHOR_KEYS)}"])
        allowed = ("type", *_AUTHOR_KEYS[type_name])
    for key in node:
        if key == "required":
            if not is_property:
                message = f"{path}.required is allowed only on a property; the array form is the raw spelling"
                raise UnsupportedSchemaError([message])
            if node[key] is not True:
                raise UnsupportedSchemaError(
                    [f"{path}.required must be true; leave it out for an optional one"]
                )
        elif key not in allowed and key not in _ANNOTATIONS:
            raise UnsupportedSchemaError(
                [f"{path}.{key} is not supported here (allowed: {', '.join(allowed)})"]
            )
    if node.get("type") == "object" and type(node.get("additionalProperties")) is not bool:
        message = f"{path}.additionalProperties must be an explicit boolean: may the object have other keys?"
        raise UnsupportedSchemaError([message])
    if "enum" in node and not is_array(node["enum"]):
        raise UnsupportedSchemaError([f"{path}.enum must be a non-empty array of {node.get('type')} values"])


def _copied(value: object, path: str) -> Any:
    try:
        return snapshot(value)
    except NotJsonError:
        raise UnsupportedSchemaError([f"{path} annotation must be lossless JSON data"]) from None
