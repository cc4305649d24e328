"""The expression that raised, and the values it had.

Knows: frames, positions, plain data. Does not know: what went wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sandbox.advice.words import DICTS, LISTS
from sandbox.values import FrozenDict

if TYPE_CHECKING:
    from types import TracebackType

    from sandbox.advice.names import Surroundings


class Failed(NamedTuple):
    """The expression that raised, and where its values stand."""

    error: BaseException
    text: str
    """What the exception says."""
    node: ast.expr | None
    """The expression, if its place is known."""
    tree: ast.Module
    """The program."""
    scopes: Sequence[Mapping[str, Any]]
    """Variables, the innermost scope first."""
    around: Surroundings
    in_function: bool
    """Whether it failed in a function of the program, and not at the program's own level."""
    line: int | None
    """The line of the program that raised."""
    result: Any
    """The part of a tool's result that lacks a key, if that is the failure."""

    def value_of(self, node: ast.expr) -> tuple[bool, Any]:
        """Find the value of a variable, or of a constant part of one, without running anything."""
        match node:
            case ast.Constant():
                return True, node.value
            case ast.Name():
                for scope in self.scopes:
                    if node.id in scope:
                        return True, scope[node.id]
                return self._first_of(node.id)
            case ast.Subscript(slice=ast.Constant()):
                found, value = self.value_of(node.value)
                key: Any = node.slice.value  # type: ignore[attr-defined]  # a constant, as just matched
                if found and type(value) in DICTS and type(key) is str and dict.__contains__(value, key):
                    return True, dict.__getitem__(value, key)
                if found and type(value) in LISTS and type(key) is int and -len(value) <= key < len(value):
                    return True, list.__getitem__(value, key)
        return False, None

    def label_of(self, node: ast.expr) -> str | None:
        """Return how a program reaches the member of a namespace that an expression is, if it is one."""
        match node:
            case ast.Attribute(value=ast.Name(id=space), attr=name):
                pass
            case ast.Subscript(value=ast.Name(id=space), slice=ast.Constant(value=str(name))):
                pass
            case _:
                return None
        known = self.around.spaces.get(space)
        return known.label(name) if known is not None and name in known.members else None

    def on_line(self) -> Iterator[ast.AST]:
        """Yield what begins on the line that raised."""
        for node in ast.walk(self.tree):
            if self.line is not None and getattr(node, "lineno", None) == self.line:
                yield node

    def _first_of(self, name: str) -> tuple[bool, Any]:
        """Find the first value of a comprehension's variable, which from Python 3.12 on is gone by now."""
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp):
                continue
            if not any(inner is self.node for inner in ast.walk(node)):
                continue
            for part in node.generators:
                if isinstance(part.target, ast.Name) and part.target.id == name:
                    found, value = self.value_of(part.iter)
                    if found and type(value) in (*DICTS, *LISTS):
                        return bool(value), next(iter(value), None)
        return False, None


Rule: TypeAlias = Callable[[Failed], "str | None"]


def locate_failure(error: BaseException, source: str, program_file: str, around: Surroundings) -> Failed:
    """Find the expression that raised."""
    text = error.args[0] if error.args and type(error.args[0]) is str else ""
    tree = ast.parse(source)
    frames = list(_program_frames(error.__traceback__, program_file))
    if not frames:
        return Failed(error, text, None, tree, (), around, in_function=False, line=None, result=None)
    scopes: list[Mapping[str, Any]] = []
    for traceback in reversed(frames):
        scopes.append(traceback.tb_frame.f_locals)
        # Below 3.12 a comprehension is a frame of its own, inside the one it is written in.
        if traceback.tb_frame.f_code.co_name not in _COMPREHENSIONS:
            break
    last = frames[-1]
    in_function = traceback.tb_frame.f_code.co_name != "<module>"
    scopes.append(last.tb_frame.f_globals)
    node = _node_at(tree, last)
    lacking = _lacking(error.__traceback__)
    return Failed(error, text, node, tree, scopes, around, in_function, last.tb_lineno, lacking)


_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def _lacking(traceback: TracebackType | None) -> Any:
    """Return the frozen dict whose `__missing__` raised."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or traceback.tb_frame.f_code is not FrozenDict.__missing__.__code__:
        return None
    return traceback.tb_frame.f_locals.get("self")


def _program_frames(traceback: TracebackType | None, program_file: str) -> Iterator[TracebackType]:
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == program_file:
            yield traceback
        traceback = traceback.tb_next


def _node_at(tree: ast.Module, traceback: TracebackType) -> ast.expr | None:
    """Return the expression that was being evaluated."""
    places = list(traceback.tb_frame.f_code.co_positions())
    index = traceback.tb_lasti // 2
    if index >= len(places):
        return None
    line, end_line, column, end_column = places[index]
    place = (line, end_line, column, end_column)
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr | ast.For):
            continue
        if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == place:
            # Below 3.12 what iterates has the place of the whole loop.
            return node.iter if isinstance(node, ast.For) else node
    return None
