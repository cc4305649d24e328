"""Modules that are themselves programs: written in the language, run behind the wall, one copy per program.

Knows: which modules those are, how one is loaded. Does not know: what they do.

A test runner or a logger handles whatever the program gives it, with methods the program wrote. Written as
trusted code it would have to be guarded at every step; written in the language it can do what the program
can, and nothing else. Each lives in a file `inner_*.py` of this package, whose `__all__` is what it offers.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.guards.readonly import FrozenModule
from sandbox.policy.program import compile_program

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILES = {
    "doctest": "inner_doctest",
    "inspect": "inner_inspect",
    "logging": "inner_logging",
    "queue": "inner_queue",
    "threading": "inner_threading",
    "timeit": "inner_timeit",
    "unittest": "inner_unittest",
    "unittest.case": "inner_unittest_case",
}

_OFFERED = re.compile(r"^__all__ = (\[.*?\])", re.DOTALL | re.MULTILINE)

NAMES = tuple(_FILES)
"""The modules, by the names programs import."""


@functools.cache
def _text(name: str) -> str:
    return Path(__file__).with_name(f"{_FILES[name]}.py").read_text(encoding="utf-8")


@functools.cache
def offered(name: str) -> tuple[str, ...]:
    """Return the names a module offers, sorted."""
    # Parsing all of it would delay every start for the few programs that import it.
    match = _OFFERED.search(_text(name))
    assert match is not None, _FILES[name]
    return tuple(sorted(ast.literal_eval(match[1])))


def read_texts() -> None:
    """Read every module, while there is a file system."""
    for name in NAMES:
        _text(name)


class InnerModule:
    """A module that is loaded when it is first imported.

    Args:
        name: One of `NAMES`.
        own_globals: The hooks and builtins of the program that will use it.
        given: Names the module finds besides, for what the language cannot do.
    """

    __slots__ = ("_given", "_globals", "_name")

    def __init__(self, name: str, own_globals: Mapping[str, Any], given: Mapping[str, object]) -> None:
        self._name = name
        self._globals = own_globals
        self._given = given

    def load(self) -> FrozenModule:
        """Run the module and return what it offers."""
        listed = ", ".join(f"{name!r}: {name}" for name in offered(self._name))
        compiled = compile_program(
            f"{_text(self._name)}\nreturn {{{listed}}}\n",
            provided=frozenset(self._given),
            file_name=f"<{self._name}>",
        )
        names = {**self._globals, "__name__": self._name, **self._given}
        exec(compiled.code, names)  # noqa: S102  # our own text, under the policy
        result = finish(names[compiled.entry_name]())
        return FrozenModule(self._name, result.value)


def finish(coroutine: Any) -> Any:
    """Run a coroutine that has nothing to wait for, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("there is nothing to wait for here: the text must not await")
