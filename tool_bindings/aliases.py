"""Readable names of tools that belong to a group, such as a server, beside their long public ones.

`GROUP/name` is for `tools["GROUP/name"]`, `GROUP.attribute` for `tools.GROUP.attribute`.

Knows: pure functions of names. Does not know: servers, registries, programs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tool_bindings.definition import ToolDefinition

__all__ = ["Grouped", "aliases_of", "readable_aliases"]


class Grouped:
    """Base of tool bodies that belong to a group.

    Args:
        group: Name of the group.
        name: The tool's name in it.
        has_alias: Whether the name can be shown as it is: one that looks like another on a screen cannot.
    """

    def __init__(self, group: str, name: str, *, has_alias: bool) -> None:
        self.group = group
        self.name = name
        self.has_alias = has_alias


def aliases_of(definitions: Sequence[ToolDefinition]) -> dict[str, tuple[str, ...]]:
    """Return the readable names of tools; one with several targets is ambiguous."""
    grouped = []
    for definition in definitions:
        body: object = definition.execute
        if isinstance(body, Grouped) and body.has_alias:
            grouped.append((body.group, body.name, definition.name))
    return readable_aliases(grouped, [definition.name for definition in definitions]) if grouped else {}


def readable_aliases(
    tools: Iterable[tuple[str, str, str]], taken: Iterable[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Map readable names to the public names they may stand for.

    In `GROUP.attribute` everything but letters, digits and `_` has become `_`. An alias with one public
    name is good; one with several is ambiguous, and whoever resolves it says so instead of choosing.

    Args:
        tools: Group, name in it and public name of each tool.
        taken: Names of all registered tools. An alias that is one of them is ambiguous, and so is
            every `GROUP.attribute` of a group whose name is the attribute of a tool.
    """
    names = set(taken)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for group, name, public in tools:
        first, second = _attribute(group), _attribute(name)
        found[f"{group}/{name}"].append(public)
        if first.isidentifier() and second.isidentifier():
            found[f"{first}.{second}"].append(public)
            if first in names:
                found[f"{first}.{second}"].append(first)
    return {
        alias: (*publics, alias) if alias in names else tuple(publics) for alias, publics in found.items()
    }


def _attribute(name: str) -> str:
    return _NOT_A_WORD.sub("_", name)


_NOT_A_WORD: Final = re.compile(r"\W", re.ASCII)
