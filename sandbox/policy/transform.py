# ruff: noqa: D102, N802, N815 -- the names are fixed by ast.NodeVisitor: visit_<NodeType>
"""The rewriting half of the policy: refuse what is not the language, guard the few operations that need it.

Knows: syntax trees and the name rules. Does not know: objects, modules, the worker.

Built on RestrictedPython's transformer, whose rule "a node without a visitor is refused" is what keeps a
construct of a later Python out until somebody has looked at it. Almost everything stays a native operation:
an attribute whose name is harmless on every object is read directly. Guards appear only where the name is
not harmless:

    obj.x = v           (obj if :type(obj) in :owned else :guard(obj)).x = v
    obj._x              (obj if :type(obj) in :owned else :guard(obj))._x
    xs.append           (xs if :type(xs) in :receivers else :guard(xs)).append
    t.format            :getattr(t, "format")
    obj.__name__        :getattr(obj, "__name__")

where `:owned` is the set of clean classes the program defined. A parameter that is used so more than once
is checked once, at the start of its function.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sandbox.policy import names, wording
from sandbox.policy.nodes import (
    copy_call,
    hoisted_check,
    hoisted_name,
    hook,
    is_abstract_metaclass,
    is_plain_template,
    is_result,
    is_zero_argument_super,
    place,
)
from sandbox.policy.walker import PolicyWalker

if TYPE_CHECKING:
    from sandbox.policy.scopes import Scope, ScopeTree

_Located = TypeVar("_Located", bound=ast.AST)
_TEMPORARY = names.HOOK_PREFIX + "t"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _root(value: ast.expr) -> ast.expr:
    """Return what attributes, items and calls start from."""
    while isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value


class PolicyTransformer(PolicyWalker):
    """Rewrites the statements of one program in place and collects refusals.

    Args:
        tree: The scopes of the same statements.
        lines: The source lines, to count columns in characters.
        keep_annotations: Annotations become strings (`from __future__ import annotations`) and are left
            alone.
    """

    def __init__(self, tree: ScopeTree, lines: list[str], *, keep_annotations: bool) -> None:
        super().__init__(lines)
        self._tree = tree
        self._scope: Scope = tree.program
        self._keep_annotations = keep_annotations
        self._in_pattern = False
        self._walrus_allowed = True

    def visit_program(self, body: list[ast.stmt]) -> None:
        """Visit the program's own statements."""
        self._visit_list(body)

    # ------------------------------------------------------------------ names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            self.check_name(node, name)
            if name == "__class_getitem__":
                self.refuse(node, *wording.CLASS_SUBSCRIPT)
            return node
        if name == "super":
            # Zero-argument calls are handled by `visit_Call`; everything else gets a function that checks
            # its arguments.
            return ast.copy_location(hook("super"), node)
        if name[:1] == "_":
            problem = wording.reading(name)
            if problem is not None:
                self.refuse(node, *problem)
        elif name in names.REFUSED_CALLS and name not in self._tree.bound_anywhere:
            self.refuse(node, *names.REFUSED_CALLS[name])
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        for name in node.names:
            self.check_name(node, name)
        if self._scope is self._tree.program:
            return ast.copy_location(ast.Pass(), node)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST | list[ast.AST]:
        for name in node.names:
            self.check_name(node, name)
        shared = [
            name
            for name in node.names
            if name in self._tree.shared
            and self._tree.resolve(self._scope.parent, name, nested=True) is self._tree.program
        ]
        if not shared:
            return node
        # The program's own variable of this name lives in the module globals.
        kept = [name for name in node.names if name not in shared]
        result: list[ast.AST] = [ast.copy_location(ast.Global(shared), node)]
        if kept:
            result.append(ast.copy_location(ast.Nonlocal(kept), node))
        return result

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return cast("ast.AST", self.node_contents_visit(node))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.check_name(node, node.name)
        return cast("ast.AST", self.node_contents_visit(node))

    # ------------------------------------------------------------------ import statements

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            self.check_name(alias, alias.asname or alias.name.partition(".")[0])
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level:
            self.refuse(
                node,
                "relative imports have nothing to refer to: a program is one file",
                "import a module by its full name",
            )
            return node
        for alias in node.names:
            self.check_name(alias, alias.asname or alias.name)
        return node

    # ------------------------------------------------------------------ attributes

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return self._visit_stored_attribute(node)
        attr = node.attr
        if attr in names.FRAME_ATTRIBUTES:
            self.refuse(node, *wording.frame_attribute(attr))
        elif attr[:1] == "_" and attr != "_":
            if names.is_dunder(attr):
                return self._visit_dunder(node)
            return self._checked_receiver(node, mutator=False)
        elif attr in names.ALWAYS_DYNAMIC:
            return self._dynamic(node, self.visit(node.value), attr)
        elif attr in names.MUTATORS:
            return self._checked_receiver(node, mutator=True)
        elif names.needs_owner(attr):
            return self._checked_receiver(node, mutator=False)
        else:
            node.value = self.visit(node.value)
        return node

    def _visit_stored_attribute(self, node: ast.Attribute) -> ast.AST:
        if names.is_dunder(node.attr):
            self.refuse(node, *wording.stored_dunder(node.attr))
            return node
        return self._checked_receiver(node, mutator=False)

    def _visit_dunder(self, node: ast.Attribute) -> ast.AST:
        attr, value = node.attr, node.value
        if attr in names.TEXT_ATTRIBUTES and isinstance(value, ast.Attribute) and value.attr == "__class__":
            return self._dynamic(node, self._type_of(value), attr)
        if attr == "__class__" and self._is_of_own_class(value):
            return self._type_of(node)
        if attr in names.CLASS_ONLY_ATTRIBUTES:
            readable = isinstance(value, ast.Name) and self._tree.is_bound_by_class(self._scope, value.id)
        elif attr == "__dict__":
            readable = self._may_be_own_instance(value)
        else:
            readable = attr in names.READABLE_ATTRIBUTES
        if not readable:
            self.refuse(node, *wording.dunder_attribute(attr))
            return node
        first = self._super_receiver(value)
        if first is not None and attr not in (
            "__setattr__",
            "__delattr__",
            "__new__",
            "__dict__",
            "__dir__",
            "__getattr__",
        ):
            # Bound to an instance of the program's own class, the base's method can only change that
            # instance.
            node.value = self._choose(
                node, first, "owned", value, place(ast.Call(hook("guard"), [copy_call(value)], []), node)
            )
            return self._no_pattern(node)
        return self._dynamic(node, self.visit(value), attr)

    def _type_of(self, node: ast.Attribute) -> ast.AST:
        return self._no_pattern(place(ast.Call(hook("typeof"), [self.visit(node.value)], []), node))

    def _is_of_own_class(self, value: ast.expr) -> bool:
        """Whether a value comes from a method's parameter, from a class, or from an instance made of one."""
        root = _root(value)
        if not isinstance(root, ast.Name):
            return False
        if self._is_method_parameter(root) or self._tree.holds_own_instance(self._scope, root.id):
            return True
        return root is not value and self._tree.is_bound_by_class(self._scope, root.id)

    def _is_method_parameter(self, value: ast.Name) -> bool:
        owner = self._tree.resolve(self._scope, value.id)
        if owner is None or value.id not in owner.parameters:
            return False
        return owner.parent is not None and owner.parent.kind in ("class", "annotation")

    def _may_be_own_instance(self, value: ast.expr) -> bool:
        root = _root(value)
        if not isinstance(root, ast.Name):
            return False
        return self._tree.may_hold_instance(self._scope, root.id) or (
            root is not value and self._tree.is_bound_by_class(self._scope, root.id)
        )

    def _super_receiver(self, value: ast.expr) -> ast.Name | None:
        """Return the first parameter behind a zero-argument `super()`, if it is never rebound."""
        if not (is_zero_argument_super(value) and isinstance(self._scope.node, _DEFINITIONS)):
            return None
        if not self._scope.parameters or self._scope.parameters[0] in self._scope.rebound:
            return None
        return ast.Name(self._scope.parameters[0], ast.Load())

    def _dynamic(self, node: ast.Attribute, value: Any, attr: str) -> ast.AST:
        return self._no_pattern(place(ast.Call(hook("getattr"), [value, ast.Constant(attr)], []), node))

    def _checked_receiver(self, node: ast.Attribute, *, mutator: bool) -> ast.AST:
        value = node.value
        wanted = "receivers" if mutator else "owned"
        if isinstance(value, ast.Name) and value.id != "super":
            if mutator and self._tree.is_fresh(self._scope, value.id):
                node.value = self.visit(value)
                return node
            owner = self._tree.steady_parameter(self._scope, value.id)
            if owner is not None and (owner, value.id, mutator) in self._tree.hoisted:
                node.value = place(hook(hoisted_name(value.id, mutator=mutator)), value)
                return self._no_pattern(node)
            self.visit(value)
            slow = place(ast.Call(hook("guard"), [ast.Name(value.id, ast.Load())], []), value)
            node.value = self._choose(node, value, wanted, ast.Name(value.id, ast.Load()), slow)
            return self._no_pattern(node)
        first = self._super_receiver(value) if mutator else None
        if first is not None:
            node.value = self._choose(
                node, first, "owned", value, place(ast.Call(hook("guard"), [copy_call(value)], []), node)
            )
        elif (
            isinstance(
                value,
                ast.Constant | ast.JoinedStr | ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp,
            )
            and mutator
        ):
            node.value = self.visit(value)
            return node
        elif (
            self._walrus_allowed
            and self._scope.kind in ("program", "function")
            and not is_zero_argument_super(value)
        ):
            kept = ast.NamedExpr(ast.Name(_TEMPORARY, ast.Store()), self.visit(value))
            again = ast.Name(_TEMPORARY, ast.Load())
            slow = ast.Call(hook("guard"), [ast.Name(_TEMPORARY, ast.Load())], [])
            node.value = self._choose(node, kept, wanted, again, slow)
        else:
            node.value = place(ast.Call(hook("guard"), [self.visit(value)], []), node)
        return self._no_pattern(node)

    def _choose(self, at: ast.AST, tested: ast.expr, wanted: str, fast: ast.expr, slow: ast.expr) -> ast.expr:
        test = ast.Compare(ast.Call(hook("type"), [tested], []), [ast.In()], [hook(wanted)])
        return place(ast.IfExp(test, fast, slow), at)

    def _no_pattern(self, node: _Located) -> _Located:
        """A pattern may hold dotted names only, so a guarded read cannot stand in one."""
        if self._in_pattern:
            self.refuse(
                node,
                "this attribute cannot be read inside a pattern",
                "assign it to a variable and compare in a guard: case x if x == value",
            )
        return node

    # ------------------------------------------------------------------ assignment

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if (
            len(node.targets) == 1
            and isinstance(target, ast.Attribute)
            and (target.attr in names.SETTABLE_ATTRIBUTES or target.attr == "__dict__")
        ):
            call = ast.Call(
                hook("setattr"),
                [self.visit(target.value), ast.Constant(target.attr), self.visit(node.value)],
                [],
            )
            return place(ast.Expr(call), node)
        return cast("ast.AST", self.node_contents_visit(node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        target = node.target
        if isinstance(target, ast.Attribute) and target.attr in names.ALWAYS_DYNAMIC:
            # The old value is read before the new one is stored, and the read needs the guard even on own
            # objects.
            target.value = place(ast.Call(hook("proxy"), [self.visit(target.value)], []), target)
            node.value = self.visit(node.value)
            return node
        return cast("ast.AST", self.node_contents_visit(node))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        shared = (
            self._scope is self._tree.program
            and isinstance(node.target, ast.Name)
            and node.target.id in self._tree.shared
        )
        node.target = self.visit(node.target)
        node.annotation = self._visit_annotation(node.annotation)
        if node.value is not None:
            node.value = self.visit(node.value)
        if not shared:
            return node
        # "annotated name can't be global": a function may not annotate one, a module may.
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def _visit_annotation(self, annotation: Any) -> Any:
        if annotation is None or self._keep_annotations:
            return annotation
        outer, self._walrus_allowed = self._walrus_allowed, False
        result = self.visit(annotation)
        self._walrus_allowed = outer
        return result

    # ------------------------------------------------------------------ calls, subscripts, loops: native

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if is_zero_argument_super(node):
            return node
        if isinstance(func, ast.Attribute) and func.attr == "format" and is_plain_template(func.value):
            self._visit_list(node.args)
            self._visit_list(node.keywords)
            return node
        return cast("ast.AST", self.node_contents_visit(node))

    def _native(self, node: ast.AST) -> ast.AST:
        return cast("ast.AST", self.node_contents_visit(node))

    visit_Subscript = _native
    visit_For = _native
    visit_AsyncFor = _native
    visit_With = _native
    visit_AsyncWith = _native
    visit_Await = _native
    visit_Match = _native
    visit_match_case = _native
    visit_IsNot = _native

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if self._scope is not self._tree.program:
            return self._native(node)
        if node.value is not None and not is_result(node.value):
            node.value = place(ast.Call(hook("explicit"), [self.visit(node.value)], []), node)
        elif node.value is not None:
            self._visit_list(cast("ast.Call", node.value).args)
        return node

    def _visit_yield(self, node: ast.Yield | ast.YieldFrom) -> ast.AST:
        scope: Scope | None = self._scope
        while scope is not None and scope.kind == "comprehension":
            scope = scope.parent
        if scope is self._tree.program:
            self.refuse(
                node,
                "'yield' outside function",
                "put the loop that yields into a def and iterate over its call",
            )
        return self._native(node)

    visit_Yield = _visit_yield
    visit_YieldFrom = _visit_yield

    def visit_TryStar(self, node: ast.AST) -> ast.AST:
        self.refuse(node, *wording.construct("TryStar"))
        return node

    # ------------------------------------------------------------------ comprehensions

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> ast.AST:
        first = node.generators[0]
        outer_walrus, self._walrus_allowed = self._walrus_allowed, False
        first.iter = self.visit(first.iter)
        outer, self._scope = self._scope, self._tree.scopes[node]
        for number, generator in enumerate(node.generators):
            generator.target = self.visit(generator.target)
            if number:
                generator.iter = self.visit(generator.iter)
            self._visit_list(generator.ifs)
        if isinstance(node, ast.DictComp):
            node.key = self.visit(node.key)
            node.value = self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self._scope, self._walrus_allowed = outer, outer_walrus
        return node

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_DictComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension

    # ------------------------------------------------------------------ functions

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.check_name(node, node.name)
        self._visit_list(node.decorator_list)
        self._visit_type_parameters(node)
        self._visit_arguments(node.args)
        node.returns = self._visit_annotation(node.returns)
        self._visit_body(node, self._tree.scopes[node])
        return node

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function

    def _visit_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        outer, self._scope = self._scope, scope
        outer_walrus, self._walrus_allowed = self._walrus_allowed, True
        self._visit_list(node.body)
        self._scope, self._walrus_allowed = outer, outer_walrus
        checks: list[ast.stmt] = []
        for name in scope.parameters:
            checks.extend(
                hoisted_check(node, name, mutator=mutator)
                for mutator in (False, True)
                if (scope, name, mutator) in self._tree.hoisted
            )
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body[start:start] = checks

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._visit_arguments(node.args)
        outer, self._scope = self._scope, self._tree.scopes[node]
        outer_walrus, self._walrus_allowed = (
            self._walrus_allowed,
            outer.kind in ("program", "function") and self._walrus_allowed,
        )
        node.body = self.visit(node.body)
        self._scope, self._walrus_allowed = outer, outer_walrus
        return node

    def _visit_arguments(self, args: ast.arguments) -> None:
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None:
                self.check_name(arg, arg.arg)
                arg.annotation = self._visit_annotation(arg.annotation)
        self._visit_list(args.defaults)
        self._visit_list(args.kw_defaults)

    def _visit_type_parameters(self, node: ast.AST) -> None:
        outer, self._walrus_allowed = self._walrus_allowed, False
        for parameter in getattr(node, "type_params", None) or ():
            self.check_name(parameter, parameter.name)
            scope, self._scope = self._scope, self._tree.scopes[parameter]
            self.node_contents_visit(parameter)
            self._scope = scope
        self._walrus_allowed = outer

    def visit_TypeAlias(self, node: Any) -> ast.AST:
        self.visit(node.name)
        self._visit_type_parameters(node)
        outer, self._scope = self._scope, self._tree.scopes[node]
        node.value = self.visit(node.value)
        self._scope = outer
        return cast("ast.AST", node)

    # ------------------------------------------------------------------ classes

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.check_name(node, node.name)
        self._visit_list(node.decorator_list)
        self._visit_type_parameters(node)
        self._visit_list(node.bases)
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == "type" and "type" not in self._tree.bound_anywhere:
                self.refuse(base, *wording.METACLASS)
        builder = "class"
        keywords = []
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(keyword, "a class statement takes no ** keywords", "write the keywords out")
            elif keyword.arg == "metaclass":
                if is_abstract_metaclass(keyword.value):
                    builder = "abstract_class"
                else:
                    self.refuse(keyword, *wording.METACLASS)
            else:
                keyword.value = self.visit(keyword.value)
                keywords.append(keyword)
        outer, self._scope = self._scope, self._tree.scopes[node]
        outer_walrus, self._walrus_allowed = self._walrus_allowed, True
        self._visit_list(node.body)
        self._scope, self._walrus_allowed = outer, outer_walrus
        node.keywords = [*keywords, place(ast.keyword("metaclass", hook(builder)), node)]
        return node

    # ------------------------------------------------------------------ patterns

    def _visit_pattern(self, node: ast.AST) -> ast.AST:
        outer, self._in_pattern = self._in_pattern, True
        self.node_contents_visit(node)
        self._in_pattern = outer
        return node

    visit_MatchValue = _visit_pattern
    visit_MatchSingleton = _visit_pattern
    visit_MatchSequence = _visit_pattern
    visit_MatchOr = _visit_pattern

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> ast.AST:
        self.check_name(node, node.name)
        return self._visit_pattern(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        self.check_name(node, node.rest)
        return self._visit_pattern(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        for attr in node.kwd_attrs:
            # A class pattern reads the attribute itself, past every guard.
            if (
                names.is_dunder(attr)
                or names.is_private(attr)
                or attr in names.GUARDED_PUBLIC
                or names.is_inspection_like(attr)
            ):
                self.refuse(
                    node,
                    f'a pattern cannot read the attribute "{attr}"',
                    "match the object first and read the attribute in the case body",
                )
        return self._visit_pattern(node)
