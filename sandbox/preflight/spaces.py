"""What the finder is told of the namespaces a program can call.

Knows: names, forms, types of arguments. Does not know: programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


class Parameters(NamedTuple):
    """What is certain about the arguments of one member."""

    names: Collection[str]
    required: Collection[str]
    is_closed: bool
    """Whether no other name is accepted."""
    types: Mapping[str, Collection[str]]
    """JSON types of which an argument must have one."""
    choices: Mapping[str, Sequence[Any]]
    """The only values an argument may have."""

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return {
            "names": list(self.names),
            "required": list(self.required),
            "isClosed": self.is_closed,
            "types": {name: list(kinds) for name, kinds in self.types.items()},
            "choices": {name: list(values) for name, values in self.choices.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Parameters:
        """Rebuild what `to_json` wrote."""
        return cls(
            record["names"], record["required"], record["isClosed"], record["types"], record["choices"]
        )


class Space(NamedTuple):
    """One namespace, as far as a program's text can be checked against it."""

    members: Mapping[str, str]
    """Member names and signatures."""
    parameters: Mapping[str, Parameters]
    """Members whose arguments are known."""
    positional: Mapping[str, Sequence[str]]
    """Members that take arguments by position, and the names these have."""
    eager: Collection[str]
    """Members that work without `await`."""
    coroutines: Collection[str]
    """Members that give an ordinary coroutine, which can be handled before it has run."""
    noun: str
    label: Callable[[str], str]
    """Writes a member as a program reaches it."""
    unknown: Callable[[str], str]
    """Says that there is no such member, and which there are."""
    groups: Collection[str] = ()
    """Attributes that are no members but have some, as `tools.server` has."""
    resolved: Callable[[str], str] = str
    """Gives the member that an alias stands for; any other name stands for itself."""
