"""The tools as a program reaches them, and what is certain about their arguments before it runs.

Of a schema only such assertions count as stand by themselves: every other beside them can refuse more,
never less.

Knows: names, signatures, schemas. Does not know: what answers a call.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from codemode.hints import hints_for
from sandbox.preflight.spaces import Parameters
from sandbox.vocabulary import ErrorClass, Namespace
from tool_bindings.aliases import aliases_of
from tool_bindings.stubs import signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandbox.vocabulary import HostFunction, ManyFunction
    from tool_bindings.definition import ToolDefinition

NAME: Final = "tools"
TOOL_CALL_ERROR: Final = ErrorClass("ToolCallError", ("tool_name", "toolName"))
"""What failed calls raise in a program."""
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_MANY: Final = 200
"""Tools whose signatures are all told to a worker, whatever its program. Arbitrary: writing and telling one
costs some 40 µs, and a program names few tools."""
_WORD: Final = re.compile(r"\w+")
_MAX_CHOICES: Final = 30
"""Values listed when an argument is none of them. Arbitrary; a longer list is the run's to explain."""


class OfferedTools:
    """A set of tools as programs can call them, apart from any program; for one program after the other.

    Args:
        definitions: The tools.
    """

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self.definitions = tuple(definitions)
        self.names = [definition.name for definition in self.definitions]
        self.hints = hints_for(frozenset(self.names))
        """What to write instead of what is not there."""
        self._aliases = aliases_of(self.definitions)
        self._all_are_signed = len(self.definitions) <= _MANY
        self._members = {
            definition.name: signature(definition)
            if self._all_are_signed
            else f"{definition.name}(...), as codemode.describe({json.dumps(definition.name)}) says"
            for definition in self.definitions
        }
        self._known: dict[str, Parameters] = {}
        self._spelled: defaultdict[str, list[tuple[str, tuple[ToolDefinition, ...]]]] = defaultdict(list)
        """By one of its words each text that a program names tools with, and these."""
        by_name = {definition.name: definition for definition in self.definitions}
        for name, definition in by_name.items():
            self._spell(name, (definition,))
        for alias, names in self._aliases.items():
            last_word = alias.partition("/")[2] or alias.partition(".")[2]
            # Among the targets may be the alias itself, which is a group's and no tool's.
            self._spell(last_word, tuple(by_name[name] for name in names if name in by_name))

    def _spell(self, text: str, definitions: tuple[ToolDefinition, ...]) -> None:
        self._spelled[max(_WORD.findall(text), key=len, default="")].append((text, definitions))

    def namespace(
        self, source: str, function: HostFunction, many: ManyFunction | None = None, *, judge_arguments: bool
    ) -> Namespace:
        """Return what a program calls the tools through.

        Args:
            source: The program.
            function: Answers the calls.
            many: Answers those of a batch.
            judge_arguments: Whether a call is bound to fail when the tool itself would refuse its arguments.
        """
        # Only of tools that the program names: there may be thousands. One that it names in another way, with
        # an escape in a string, say, is left to the run.
        named = self._named(source)
        return Namespace(
            NAME,
            self._members,
            function,
            TOOL_CALL_ERROR,
            noun="tool",
            ends_calls=True,
            many=many,
            aliases=self._aliases,
            parameters={each.name: self._parameters_of(each) for each in named} if judge_arguments else {},
            signatures={} if self._all_are_signed else {each.name: signature(each) for each in named},
        )

    def _named(self, source: str) -> list[ToolDefinition]:
        found: dict[str, ToolDefinition] = {}
        for word in {"", *_WORD.findall(source)}:
            for text, definitions in self._spelled.get(word, ()):
                if text in source:
                    found.update((definition.name, definition) for definition in definitions)
        return [found[name] for name in sorted(found)]

    def _parameters_of(self, definition: ToolDefinition) -> Parameters:
        known = self._known.get(definition.name)
        if known is None:
            known = self._known[definition.name] = _parameters(definition.parameters)
        return known


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
