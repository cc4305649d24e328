"""The tools as a program reaches them, and what is certain about their arguments before it runs.

Of a schema only such assertions count as stand by themselves: every other beside them can refuse more,
never less.

Knows: names, signatures, schemas. Does not know: what answers a call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sandbox.preflight.spaces import Parameters
from sandbox.vocabulary import ErrorClass, Namespace
from tool_bindings.aliases import aliases_of
from tool_bindings.stubs import signature

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sandbox.vocabulary import HostFunction
    from tool_bindings.definition import ToolDefinition

NAME: Final = "tools"
TOOL_CALL_ERROR: Final = ErrorClass("ToolCallError", ("tool_name", "toolName"))
"""What failed calls raise in a program."""
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_MANY: Final = 200
"""Tools whose signatures are all sent along with a program. Arbitrary: writing and sending one costs some
40 µs, and a program names few tools."""
_MAX_CHOICES: Final = 30
"""Values listed when an argument is none of them. Arbitrary; a longer list is the run's to explain."""


def tools_namespace(
    definitions: Sequence[ToolDefinition], source: str, function: HostFunction, *, judge_arguments: bool
) -> Namespace:
    """Return what a program calls tools through.

    Args:
        definitions: The tools it may call.
        source: The program.
        function: Answers the calls.
        judge_arguments: Whether a call is bound to fail when the tool itself would refuse its arguments.
    """
    aliases = aliases_of(definitions)
    named = {definition.name for definition in definitions if definition.name in source}
    for alias, names in aliases.items():
        if _last_word(alias) in source:
            named.update(names)
    return Namespace(
        NAME,
        _members(definitions, named),
        function,
        TOOL_CALL_ERROR,
        noun="tool",
        ends_calls=True,
        aliases=aliases,
        parameters=_certain_parameters(definitions, named) if judge_arguments else {},
    )


def _last_word(alias: str) -> str:
    return alias.partition("/")[2] or alias.partition(".")[2]


def _members(definitions: Sequence[ToolDefinition], named: Collection[str]) -> dict[str, str]:
    everything = len(definitions) <= _MANY
    return {
        definition.name: signature(definition)
        if everything or definition.name in named
        else f"{definition.name}(...), as codemode.describe({json.dumps(definition.name)}) says"
        for definition in definitions
    }


def _certain_parameters(
    definitions: Iterable[ToolDefinition], named: Collection[str]
) -> dict[str, Parameters]:
    # Only of tools that the program names: there may be thousands. One that it names in another way, with
    # an escape in a string, say, is left to the run.
    return {
        definition.name: _parameters(definition.parameters)
        for definition in definitions
        if definition.name in named
    }


def _parameters(schema: Mapping[str, Any]) -> Parameters:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        properties = {}
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    required = [name for name in schema.get("required", ()) if isinstance(name, str)]
    types: dict[str, list[str]] = {}
    choices: dict[str, list[Any]] = {}
    for name, node in properties.items():
        if (found := _types(node)) is not None:
            types[name] = found
        values = (
            node.get("enum", [node["const"]] if "const" in node else None) if isinstance(node, dict) else None
        )
        if isinstance(values, list) and len(values) <= _MAX_CHOICES and all(map(_is_scalar, values)):
            choices[name] = list(values)
    return Parameters(list(properties), required, is_closed, types, choices)


def _types(node: Any) -> list[str] | None:
    """Return the JSON types a schema allows, or None when that is not plain to see."""
    if not isinstance(node, dict):
        return None
    kind = node.get("type")
    if isinstance(kind, str):
        kind = [kind]
    if isinstance(kind, list) and kind and all(isinstance(one, str) and one in _TYPES for one in kind):
        return list(kind)
    if kind is not None:
        return None
    for union in ("oneOf", "anyOf"):
        arms = node.get(union)
        if isinstance(arms, list) and arms:
            of_arms = [_types(arm) for arm in arms]
            if None in of_arms:
                return None
            return list(dict.fromkeys(one for kinds in of_arms for one in kinds or ()))
    return None


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float))
