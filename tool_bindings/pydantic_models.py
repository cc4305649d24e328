"""pydantic models in annotations, where pydantic is installed.

Knows: a model's JSON schema in our terms, and making and writing its instances.
Does not know: other annotations. It never imports pydantic: a class that is a model brought it along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from sandbox.values import child_path, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["is_model", "model_schema", "structure_model", "unstructure_model"]


def is_model(hint: Any) -> TypeGuard[Any]:
    """Whether an annotation is a pydantic model class."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def model_schema(model: Any, join: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> dict[str, Any]:
    """Return a model's schema with its references written out and its unions joined by `join`.

    Keywords such as `minimum` stay; a schema that has some is a full JSON Schema.

    Raises:
        RecursionError: The model contains itself.
    """
    document: dict[str, Any] = model.model_json_schema()
    schema: dict[str, Any] = _rewrite(document, document.get("$defs", {}), (), join)
    return schema


def _rewrite(
    node: Any,
    definitions: Mapping[str, Any],
    enclosing: tuple[str, ...],
    join: Callable[[list[dict[str, Any]]], dict[str, Any]],
) -> Any:
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in enclosing or name not in definitions:
            msg = f"{name} contains itself"
            raise RecursionError(msg)
        target = {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}
        return _rewrite(target, definitions, (*enclosing, name), join)
    arms = node.get("anyOf") or node.get("oneOf")
    if arms:
        joined = join([_rewrite(arm, definitions, enclosing, join) for arm in arms])
        notes = {key: node[key] for key in ("title", "description", "default", "examples") if key in node}
        return {**joined, **notes}
    # `format` promises nothing in JSON Schema; to a model it is worth a note.
    schema = {key: value for key, value in node.items() if key not in ("$defs", "format")}
    if "format" in node:
        schema.setdefault("description", f"format: {node['format']}")
    if "properties" in node:
        schema["properties"] = {
            name: _rewrite(child, definitions, enclosing, join) for name, child in node["properties"].items()
        }
        # pydantic drops unknown keys unless told otherwise; here nothing is dropped silently.
        schema.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            schema[key] = _rewrite(node[key], definitions, enclosing, join)
    return schema


def structure_model(value: Any, model: Any) -> Any:
    """Make an instance from a JSON value that fits the model's schema.

    Raises:
        ValueError: The model's own validators refuse it; without links to its documentation.
    """
    try:
        return model.model_validate(thaw(value))
    except ValueError as error:
        describe = getattr(error, "errors", None)
        if describe is None:
            raise
        faults = describe(include_url=False, include_context=False, include_input=False)
        parts = []
        for fault in faults:
            place = child_path("", [key for key in fault["loc"] if isinstance(key, (str, int))])
            parts.append(f"at {place}: {fault['msg']}" if place else str(fault["msg"]))
        msg = "; ".join(parts)
        raise ValueError(msg) from None


def unstructure_model(value: Any) -> Any:
    """Write an instance as JSON, in the form its schema describes."""
    return value.model_dump(mode="json", by_alias=True, exclude=set(type(value).model_computed_fields))
