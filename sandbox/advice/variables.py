"""Hints for names: not bound, bound too late, not importable.

Knows: how Python says so. Does not know: values.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from sandbox.advice.names import same_member, unknown_name

if TYPE_CHECKING:
    from sandbox.advice.failed import Failed


def name_error(failed: Failed) -> str | None:
    """Give the hint of a name that nothing binds."""
    name = getattr(failed.error, "name", None)
    if type(name) is not str or isinstance(failed.error, UnboundLocalError):
        return None
    written = {node.id for node in ast.walk(failed.tree) if isinstance(node, ast.Name)}
    bound = frozenset(other for other in written if any(other in scope for scope in failed.scopes))
    return unknown_name(name, bound, failed.around, is_key=_is_key(failed))


def _is_key(failed: Failed) -> bool:
    for node in ast.walk(failed.tree):
        keys = (
            node.keys
            if isinstance(node, ast.Dict)
            else [node.slice]
            if isinstance(node, ast.Subscript)
            else []
        )
        if any(key is failed.node for key in keys):
            return True
    return False


def unbound(failed: Failed) -> str | None:
    """Give the hint of a name that is bound too late, or elsewhere."""
    name = getattr(failed.error, "name", None)
    if type(name) is not str:
        match = re.search(r"variable '(\w+)'", failed.text)
        name = match[1] if match else None
    if name is None:
        return None
    if failed.in_function and _is_set_outside(failed.tree, name):
        return f"write `nonlocal {name}` as the first line of the function, or use a name of its own there"
    return f"give `{name}` a value before this line, also for when a branch or loop is not entered"


def _is_set_outside(tree: ast.Module, name: str) -> bool:
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        todo.extend(ast.iter_child_nodes(node))
    return False


def not_importable(failed: Failed) -> str | None:
    """Give the hint of what needs no import."""
    name = getattr(failed.error, "name", None)
    if type(name) is str and name in failed.around.spaces:
        return f"`{name}` is there without an import: leave the line out"
    found = re.match(r"cannot import name '(\w+)' from", failed.text)
    if found is None:
        return None
    if found[1] in failed.around.names:
        return f"`{found[1]}` is there without an import: leave it out"
    label = same_member(found[1], failed.around)
    return None if label is None else f"write `await {label}(...)`: tools are there without an import"
