"""Walks a syntax tree by a table and collects what is refused on the way.

Knows: how a node finds its visitor, how a refusal gets its place. Does not know: which construct is what.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

from RestrictedPython.transformer import RestrictingNodeTransformer

from sandbox.policy import wording
from sandbox.policy.refusals import Refusal

_Visitor = Callable[["PolicyWalker", ast.AST], Any]

_LEAVES = tuple(
    kind
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for kind in base.__subclasses__()
)


class PolicyWalker(RestrictingNodeTransformer):
    """RestrictedPython's walk in our words and at our speed; a node without a visitor is refused.

    Args:
        lines: The source lines, to count columns in characters.
    """

    _visitors: dict[type[ast.AST], _Visitor] = {}  # noqa: RUF012  # filled once per node type

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.refusals: list[Refusal] = []
        self._lines = lines

    # ------------------------------------------------------------------ refusing

    def refuse(self, node: ast.AST, message: str, hint: str | None = None) -> None:
        """Record that `node` is not part of the language."""
        line = getattr(node, "lineno", 1)
        offset = getattr(node, "col_offset", 0)
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        column = len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace")) + 1
        self.refusals.append(Refusal(line, column, message, hint))

    def error(self, node: ast.AST, info: str) -> None:  # replaces RestrictedPython's wording
        """Record a refusal that the base class decided on."""
        self.refuse(node, *wording.construct(type(node).__name__))

    def warn(self, node: ast.AST, info: str) -> None:
        """Drop a warning of the base class; what it warns of is refused as well."""

    def not_allowed(self, node: ast.AST) -> None:
        """Refuse a node type that has no visitor."""
        self.refuse(node, *wording.construct(type(node).__name__))

    def check_name(
        self, node: ast.AST, name: str | None, allow_magic_methods: bool = False
    ) -> None:  # the base class's signature
        """Check a name in a binding position."""
        if name is None:
            return
        problem = wording.binding(name)
        if problem is not None:
            self.refuse(node, *problem)

    # ------------------------------------------------------------------ walking

    def visit(self, node: ast.AST) -> Any:
        """Dispatch by node type through a table; building a name per node costs more than visiting."""
        kind = node.__class__
        visitor = self._visitors.get(kind)
        if visitor is None:
            visitor = cast(
                "_Visitor", getattr(type(self), "visit_" + kind.__name__, type(self).generic_visit)
            )
            self._visitors[kind] = visitor
        return visitor(self, node)

    def node_contents_visit(self, node: Any) -> Any:
        """Visit the children of a node, replacing them in place."""
        for field in node._fields:
            value = getattr(node, field, None)
            if value.__class__ is list:
                self._visit_list(value)
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                replacement = self.visit(value)
                if replacement is not value:
                    setattr(node, field, replacement)
        return node

    def _visit_list(self, nodes: list[Any]) -> None:
        result: list[Any] = []
        for node in nodes:
            if not isinstance(node, ast.AST):
                result.append(node)
                continue
            replacement = self.visit(node)
            if isinstance(replacement, list):
                result.extend(replacement)
            elif replacement is not None:
                result.append(replacement)
        nodes[:] = result
