"""Programs that define what they never call.

Knows: syntax trees. Does not know: why a program gave nothing.
"""

from __future__ import annotations

import ast
from typing import Final

_DEFINING: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def idle_hint(source: str) -> str | None:
    """Say how to start a program that consists of definitions only, or None if it does more."""
    tree = ast.parse(source.removeprefix("\ufeff"))
    if not all(isinstance(statement, _DEFINING) or _is_constant(statement) for statement in tree.body):
        return None
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    idle = [
        statement
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name not in read
    ]
    if not idle:
        return None
    start = next((function for function in idle if function.name == "main"), idle[-1])
    arguments = "..." if start.args.args or start.args.kwonlyargs else ""
    call = f"{'await ' * isinstance(start, ast.AsyncFunctionDef)}{start.name}({arguments})"
    return f"nothing calls `{start.name}`, so nothing was done: end the program with `{call}`"


def _is_constant(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign) else statement
    return isinstance(value, ast.Constant)
