"""What a program binds, and where its own level may end.

Knows: syntax trees. Does not know: namespaces.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVING: Final = frozenset({"exit", "quit", "_exit", "SystemExit", "KeyboardInterrupt"})
"""Names by which a program can end itself well in the middle."""
_BINDING: Final = frozenset(
    {
        ast.AugAssign, ast.Attribute, ast.Constant, *DEFINITIONS, ast.arg, ast.alias, ast.ExceptHandler,
        ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal,
        # Only Python 3.12 and later have these.
        *(getattr(ast, kind) for kind in ("TypeVar", "TypeVarTuple", "ParamSpec") if hasattr(ast, kind)),
    }
)  # fmt: skip


class Bindings:
    """What a program binds, anywhere in it: who binds a name may have a reason to read it."""

    def __init__(self, tree: ast.Module) -> None:
        self.counts: Counter[str] = Counter()
        self.augmented: Counter[str] = Counter()
        self.has_star = False
        self.may_leave = False
        self.coroutines = {
            statement.name
            for statement in tree.body
            if isinstance(statement, ast.AsyncFunctionDef)
            and not statement.decorator_list
            and not any(isinstance(node, ast.Yield) for node in ast.walk(statement))
        }
        self._imported = {
            alias.name
            for statement in tree.body
            if isinstance(statement, ast.Import)
            for alias in statement.names
            if alias.asname is None
        }
        # Not ast.walk: this is on the way of every run, and most nodes are names or bind nothing.
        todo: list[Any] = [tree]
        while todo:
            node = todo.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Store:
                    self.counts[node.id] += 1
                self.may_leave |= node.id in _LEAVING
                continue
            if kind in _BINDING:
                self._note(node)
            for field in getattr(node, "_fields", ()):
                value = getattr(node, field, None)
                if type(value) is list:
                    todo.extend(value)
                elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                    todo.append(value)

    def is_module(self, name: str) -> bool:
        """Whether a name is the module of that name and nothing else."""
        return name in self._imported and self.counts[name] == 1

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.AugAssign():
                if isinstance(node.target, ast.Name):
                    self.augmented[node.target.id] += 1
            case ast.Attribute():
                self.may_leave |= node.attr in _LEAVING
            case ast.Constant():
                self.may_leave |= isinstance(node.value, str) and node.value in _LEAVING
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.counts[node.name] += 1
            case ast.arg():
                self.counts[node.arg] += 1
            case ast.alias():
                self.has_star |= node.name == "*"
                self.may_leave |= node.name in _LEAVING
                self.counts[node.asname or node.name.partition(".")[0]] += 1
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                self.counts[node.name or ""] += 1
            case ast.MatchMapping():
                self.counts[node.rest or ""] += 1
            case ast.Global() | ast.Nonlocal():
                self.counts.update(node.names)
            case _:
                # A type parameter.
                self.counts[node.name] += 1  # type: ignore[attr-defined]  # they all have a name


def is_always_true(test: ast.expr) -> bool:
    """Whether a branch is always taken: `if True`, and the customary test of a module's name."""
    match test:
        case ast.Constant():
            return bool(test.value)
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
        ):
            return True
    return False


def may_end(node: ast.AST) -> bool:
    """Whether a statement may return, raise, or go on for ever."""
    if isinstance(node, (ast.Return, ast.Raise)):
        return True
    if isinstance(node, ast.While) and is_always_true(node.test) and not _breaks(node.body):
        return True
    if isinstance(node, (*DEFINITIONS, ast.expr)):
        return False
    return any(may_end(child) for child in ast.iter_child_nodes(node))


def may_call(node: ast.stmt, is_harmless: Callable[[ast.Call], bool]) -> bool:
    """Whether a statement may run code of the program, which may end it.

    Args:
        node: The statement.
        is_harmless: Whether a call runs no code of the program.
    """

    def calls(part: ast.AST) -> bool:
        return any(isinstance(inner, ast.Call) and not is_harmless(inner) for inner in ast.walk(part))

    match node:
        case ast.ClassDef():
            # Its body runs, and what its bases do for a new class.
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [*node.args.defaults, *(value for value in node.args.kw_defaults if value)]
            return bool(node.decorator_list) or any(map(calls, defaults))
    return calls(node)


def _breaks(body: Sequence[ast.AST]) -> bool:
    return any(isinstance(part, ast.Break) for statement in body for part in ast.walk(statement))
