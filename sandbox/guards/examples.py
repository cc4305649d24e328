"""The examples in a program's docstrings, as `doctest` runs them: program text, compiled under the policy.

Knows: where a program's names are and how an example sees them. Does not know: what an example should print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox.facades.inner import finish
from sandbox.policy import names, wording
from sandbox.policy.program import DOCSTRINGS, compile_example
from sandbox.policy.refusals import ProgramRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Examples:
    """The names that the examples of one docstring share: a copy of the program's."""

    __slots__ = ("_names",)

    def __init__(self, program: Mapping[str, Any]) -> None:
        self._names = dict(program)

    def bind(self, name: str, value: object) -> None:
        """Give the examples a name more.

        Raises:
            ValueError: No program may bind it.
        """
        if type(name) is not str or not name.isidentifier() or wording.binding(name) is not None:
            raise ValueError(f"an example cannot have the name {name!r}")
        self._names[names.own_dunder(name)] = value

    def run(self, source: str, label: str) -> None:
        """Run one example and print the values of its expressions, as a console does.

        Raises:
            SyntaxError: It is not Python, or not the language. Besides, whatever it raises.
        """
        if type(source) is not str or type(label) is not str:
            raise TypeError("an example is a string")
        try:
            compiled = compile_example(source, label)
        except ProgramRefusedError as error:
            raise SyntaxError(str(error.refusals[0])) from None
        exec(compiled.code, self._names)  # noqa: S102  # the policy's output, as the program itself
        finish(self._names.pop(compiled.entry_name)())

    def __repr__(self) -> str:
        return "<examples>"


def helpers(program: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return what the module `doctest` finds, for the program with these globals."""

    def open_examples() -> Examples:
        return Examples(program)

    def docstrings() -> tuple[tuple[str, int, str], ...]:
        found: tuple[tuple[str, int, str], ...] = program.get(DOCSTRINGS, ())
        return found

    return {"open_examples": open_examples, "docstrings": docstrings}
