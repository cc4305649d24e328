# ruff: noqa: D102, N815 -- the names are fixed by ast.NodeVisitor: visit_<NodeType>
"""Who binds which name where: the scope tree of one program.

Knows: Python's scoping rules. Does not know: what is allowed.

The transformer asks three questions of it: which names the program's own level must share with the module
globals, whether a variable can only ever hold a fresh list, dict or string, and whether a parameter is
never rebound.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, Literal, cast

from sandbox.policy.names import MUTATORS, needs_owner

_Visitor = Callable[["ScopeTree", ast.AST], Any]
Kind = Literal["program", "function", "class", "comprehension", "annotation"]

_FRESH_DISPLAYS = (
    ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr, ast.Tuple,
    ast.Constant, ast.GeneratorExp,
)  # fmt: skip
_LEAVES = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_FRESH_CALLS = frozenset({"list", "dict", "set", "sorted", "str", "bytearray", "frozenset"})
_BUILTIN_NAMES = frozenset(dir(builtins))


class Scope:
    """One scope and what its statements do to names."""

    __slots__ = (
        "bindings",
        "children",
        "globals",
        "kind",
        "loads",
        "node",
        "nonlocals",
        "parameters",
        "parent",
        "rebound",
    )

    def __init__(self, kind: Kind, node: ast.AST | None, parent: Scope | None) -> None:
        self.kind = kind
        self.node = node
        self.parent = parent
        self.children: list[Scope] = []
        self.bindings: dict[str, list[ast.expr | str]] = {}
        self.loads: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.parameters: list[str] = []
        self.rebound: set[str] = set()
        if parent is not None:
            parent.children.append(self)

    @property
    def is_function(self) -> bool:
        """Whether names bound here are variables that inner scopes can see."""
        return self.kind in ("program", "function", "comprehension", "annotation")

    def bind(self, name: str, value: ast.expr | str) -> None:
        """Record that `value` (an expression, or a word for what bound it) is bound to `name`."""
        if name in self.bindings:
            self.rebound.add(name)
        self.bindings.setdefault(name, []).append(value)


class ScopeTree(ast.NodeVisitor):
    """Builds the scopes of a program whose statements are the body of one function."""

    _visitors: dict[type[ast.AST], _Visitor] = {}  # noqa: RUF012  # filled once per node type

    def visit(self, node: ast.AST) -> None:
        """Dispatch by node type through a table, as `PolicyWalker.visit`."""
        kind = node.__class__
        visitor = self._visitors.get(kind)
        if visitor is None:
            visitor = cast("_Visitor", getattr(ScopeTree, "visit_" + kind.__name__, ScopeTree.generic_visit))
            self._visitors[kind] = visitor
        visitor(self, node)

    def generic_visit(self, node: ast.AST) -> None:
        """Visit the children of a node; what neither binds nor reads a name is passed over."""
        for field in node._fields:
            value = getattr(node, field, None)
            if value.__class__ is list:
                for item in value:
                    if isinstance(item, ast.AST) and not isinstance(item, _LEAVES):
                        self.visit(item)
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                self.visit(value)

    def __init__(self, body: list[ast.stmt], provided: frozenset[str], *, share_all: bool = False) -> None:
        self.program = Scope("program", None, None)
        self.scopes: dict[ast.AST, Scope] = {}
        self._uses: list[tuple[Scope, str, bool, bool]] = []
        self._loops = 0
        self._deleted: set[str] = set()
        self._scope = self.program
        self._scopes = [self.program]
        for statement in body:
            self.visit(statement)
        self.bound_anywhere: set[str] = set()
        declared: set[str] = set()
        for scope in self._scopes:
            self.bound_anywhere.update(scope.bindings)
            declared |= scope.globals
            for name in scope.nonlocals:
                owner = self.resolve(scope.parent, name, nested=True)
                if owner is not None:
                    owner.bind(name, "nonlocal")
                    owner.rebound.add(name)
        self.shared = self._shared_names(declared, provided) | (
            self.program.bindings.keys() if share_all else set()
        )
        """Names of the program's own level that live in the module globals."""
        self.hoisted = self._hoisted_checks()
        """Parameters whose type is checked once, when the function starts: (function scope, name, is
        mutator check)."""

    def _shared_names(self, declared: set[str], provided: frozenset[str]) -> set[str]:
        # Of a name that is gone a module says that it is not defined, a function that it has no value.
        shared = declared | self._deleted
        for name in self.program.bindings:
            # A later binding of a builtin must not hide the builtin before it: a function would say
            # "unbound local".
            if name in _BUILTIN_NAMES or name in provided:
                shared.add(name)
        for scope in self._scopes:
            if scope.kind != "class":
                continue
            for name in scope.loads & scope.bindings.keys():
                # `class A: size = size` reads the outer variable only if it is a global.
                if (
                    name in self.program.bindings
                    and self.resolve(scope.parent, name, nested=True) is self.program
                ):
                    shared.add(name)
        return shared

    def _hoisted_checks(self) -> set[tuple[Scope, str, bool]]:
        counts: dict[tuple[Scope, str, bool], int] = {}
        for scope, name, mutator, in_loop in self._uses:
            owner = self.steady_parameter(scope, name)
            if owner is not None:
                key = (owner, name, mutator)
                # One use in a loop is worth as much as two outside.
                counts[key] = counts.get(key, 0) + (2 if in_loop or scope is not owner else 1)
        return {key for key, count in counts.items() if count > 1}

    def resolve(self, scope: Scope | None, name: str, *, nested: bool = False) -> Scope | None:
        """Return the scope whose variable `name` means in `scope`; None for a global or builtin.

        With `nested`, the name is read from a scope inside `scope`, which skips a class.
        """
        first = not nested
        while scope is not None:
            if name in scope.globals:
                return None
            if name in scope.bindings and name not in scope.nonlocals and (first or scope.kind != "class"):
                return scope
            first = False
            scope = scope.parent
        return None

    def is_fresh(self, scope: Scope, name: str) -> bool:
        """Whether variable `name` can only hold a display or a new builtin container, never a class."""
        owner = self.resolve(scope, name)
        if owner is None or owner.kind == "class" or (owner is self.program and name in self.shared):
            return False
        return all(self._is_fresh_value(value) for value in owner.bindings[name])

    def _is_fresh_value(self, value: ast.expr | str) -> bool:
        if isinstance(value, str):
            return False
        if isinstance(value, _FRESH_DISPLAYS):
            return True
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id in _FRESH_CALLS
            and value.func.id not in self.bound_anywhere
        )

    def is_bound_by_class(self, scope: Scope, name: str) -> bool:
        """Whether `name` is bound by `class` statements only."""
        owner = self.resolve(scope, name)
        if owner is None:
            owner = self.program if name in self.program.bindings else None
        return owner is not None and all(value == "class" for value in owner.bindings[name])

    def may_hold_instance(self, scope: Scope, name: str) -> bool:
        """Whether `name` is a variable that something other than import or class binds."""
        owner = self.resolve(scope, name)
        if owner is None:
            owner = self.program if name in self.program.bindings else None
        return owner is not None and any(value not in ("import", "class") for value in owner.bindings[name])

    def holds_own_instance(self, scope: Scope, name: str) -> bool:
        """Whether every value of variable `name` is made by calling a class of the program."""
        owner = self.resolve(scope, name)
        if owner is None:
            owner = self.program if name in self.program.bindings else None
        return (
            owner is not None
            and bool(owner.bindings[name])
            and all(
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and self.is_bound_by_class(owner, value.func.id)
                for value in owner.bindings[name]
            )
        )

    def steady_parameter(self, scope: Scope, name: str) -> Scope | None:
        """Return the function whose never rebound parameter `name` means in `scope`."""
        owner = self.resolve(scope, name)
        if owner is None or not isinstance(owner.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        return owner if name in owner.parameters and name not in owner.rebound else None

    # ------------------------------------------------------------------ building

    def _enter(self, kind: Kind, node: ast.AST) -> Scope:
        scope = Scope(kind, node, self._scope)
        self.scopes[node] = scope
        self._scopes.append(scope)
        return scope

    def _inside(self, scope: Scope, *parts: ast.AST | list[ast.stmt] | None) -> None:
        outer, self._scope = self._scope, scope
        loops, self._loops = self._loops, 0
        for part in parts:
            if isinstance(part, list):
                for statement in part:
                    self.visit(statement)
            elif part is not None:
                self.visit(part)
        self._scope, self._loops = outer, loops

    def _variable_scope(self) -> Scope:
        scope = self._scope
        while scope.kind in ("comprehension", "annotation") and scope.parent is not None:
            scope = scope.parent
        return scope

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._scope.loads.add(node.id)
        else:
            self._scope.bind(node.id, "target")
            if isinstance(node.ctx, ast.Del):
                self._scope.rebound.add(node.id)
                if self._scope is self.program:
                    self._deleted.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            mutator = isinstance(node.ctx, ast.Load) and node.attr in MUTATORS
            if mutator or not isinstance(node.ctx, ast.Load) or needs_owner(node.attr):
                self._uses.append((self._scope, node.value.id, mutator, self._loops > 0))
        self.visit(node.value)

    def _visit_loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    visit_For = _visit_loop
    visit_AsyncFor = _visit_loop
    visit_While = _visit_loop

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._target(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._target(node.target, node.value)
        elif isinstance(node.target, ast.Name):
            # A bare annotation makes the name local without binding it.
            self._scope.bindings.setdefault(node.target.id, [])
        else:
            self.visit(node.target)

    def _target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._scope.bind(target.id, value)
        else:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._scope.loads.add(node.target.id)
            self._scope.bind(node.target.id, "augmented")
        else:
            self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        scope = self._variable_scope()
        if isinstance(node.target, ast.Name):
            scope.bind(node.target.id, node.value)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self._scope.bind(alias.asname or alias.name.partition(".")[0], "import")

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global) -> None:
        self._scope.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self._scope.nonlocals.update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._scope.bind(node.name, "except")
            self._scope.rebound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._scope.bind(node.name, "capture")
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._scope.bind(node.rest, "capture")
        self.generic_visit(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._scope.bind(node.name, "def")
        outer = self._type_parameters(node)
        self._visit_defaults(node.args)
        for annotation in _annotations(node.args):
            self.visit(annotation)
        if node.returns is not None:
            self.visit(node.returns)
        scope = self._enter("function", node)
        self._bind_parameters(scope, node.args)
        self._inside(scope, node.body)
        self._scope = outer

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_defaults(node.args)
        scope = self._enter("function", node)
        self._bind_parameters(scope, node.args)
        self._inside(scope, node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._scope.bind(node.name, "class")
        outer = self._type_parameters(node)
        for part in (*node.bases, *node.keywords):
            self.visit(part)
        scope = self._enter("class", node)
        self._inside(scope, node.body)
        self._scope = outer

    def visit_TypeAlias(self, node: ast.AST) -> None:
        self._scope.bind(node.name.id, "alias")  # type: ignore[attr-defined]  # TypeAlias is new in 3.12
        outer = self._type_parameters(node)
        scope = self._enter("annotation", node)
        self._inside(scope, node.value)  # type: ignore[attr-defined]  # as above
        self._scope = outer

    def _type_parameters(self, node: ast.AST) -> Scope:
        """Enter the scope of PEP 695 type parameters, if there are any; return the scope to go back to."""
        outer = self._scope
        parameters: list[ast.AST] = getattr(node, "type_params", None) or []
        if parameters:
            scope = Scope("annotation", None, outer)
            self._scopes.append(scope)
            self._scope = scope
            for parameter in parameters:
                scope.bind(parameter.name, "type parameter")  # type: ignore[attr-defined]  # TypeVar is new in 3.12
                self.scopes[parameter] = scope
                self.generic_visit(parameter)
        return outer

    def _visit_defaults(self, args: ast.arguments) -> None:
        for default in (*args.defaults, *args.kw_defaults):
            if default is not None:
                self.visit(default)

    def _bind_parameters(self, scope: Scope, args: ast.arguments) -> None:
        plain = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        for arg in plain:
            scope.parameters.append(arg.arg)
            scope.bind(arg.arg, "parameter")
        for extra in (args.vararg, args.kwarg):
            if extra is not None:
                scope.bind(extra.arg, "parameter")

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        # The first iterable belongs to the surrounding scope.
        self.visit(node.generators[0].iter)
        scope = self._enter("comprehension", node)
        outer, self._scope = self._scope, scope
        for number, generator in enumerate(node.generators):
            self.visit(generator.target)
            if number:
                self.visit(generator.iter)
            for condition in generator.ifs:
                self.visit(condition)
        if isinstance(node, ast.DictComp):
            self.visit(node.key)
            self.visit(node.value)
        else:
            self.visit(node.elt)
        self._scope = outer

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_DictComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension


def _annotations(args: ast.arguments) -> list[ast.expr]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return [arg.annotation for arg in every if arg is not None and arg.annotation is not None]
