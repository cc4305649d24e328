"""Small pieces of syntax tree: built by the policy, or recognised by it.

Knows: tree nodes. Does not know: rules.
"""

from __future__ import annotations

import ast
import string
from typing import TYPE_CHECKING, Any, TypeVar

from sandbox.policy import names

if TYPE_CHECKING:
    from collections.abc import Iterable

_Located = TypeVar("_Located", bound=ast.AST)

_POSITIONED = (ast.expr, ast.stmt, ast.keyword, ast.alias, ast.arg, ast.excepthandler, ast.pattern)


def hook(name: str) -> ast.Name:
    """A load of one of the policy's own globals."""
    return ast.Name(names.HOOK_PREFIX + name, ast.Load())


def place(new: _Located, old: ast.AST) -> _Located:
    """Give `new` and the parts of it that have none the position of `old`.

    Parts that have one are not looked into: they came with theirs from the source, or were placed before.
    """
    at: Any = old
    todo: list[Any] = [new]
    while todo:
        node = todo.pop()
        if isinstance(node, _POSITIONED):
            if getattr(node, "lineno", None) is not None:
                continue
            node.lineno, node.end_lineno = at.lineno, at.end_lineno
            node.col_offset, node.end_col_offset = at.col_offset, at.end_col_offset
        for field in node._fields:
            part = getattr(node, field, None)
            if part.__class__ is list:
                todo.extend(item for item in part if isinstance(item, ast.AST))
            elif isinstance(part, ast.AST):
                todo.append(part)
    return new


def hoisted_name(name: str, *, mutator: bool) -> str:
    """Name (without the prefix) of the variable that holds a parameter checked once."""
    return ("receiver." if mutator else "owned.") + name


def hoisted_check(node: ast.AST, name: str, *, mutator: bool) -> ast.stmt:
    """`checked = p if type(p) is known else guard(p)`, run when the function starts."""
    wanted = hook("receivers" if mutator else "owned")
    test = ast.Compare(ast.Call(hook("type"), [ast.Name(name, ast.Load())], []), [ast.In()], [wanted])
    value = ast.IfExp(
        test, ast.Name(name, ast.Load()), ast.Call(hook("guard"), [ast.Name(name, ast.Load())], [])
    )
    target = ast.Name(names.HOOK_PREFIX + hoisted_name(name, mutator=mutator), ast.Store())
    return place(ast.Assign([target], value), node)


def is_zero_argument_super(node: ast.AST) -> bool:
    """Whether `node` is the call `super()`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and not node.args
        and not node.keywords
    )


def copy_call(node: ast.expr) -> ast.expr:
    """Return another `super()` at the place of `node`."""
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name("super", ast.Load()), node), [], []), node)


def is_abstract_metaclass(node: ast.expr) -> bool:
    """Whether an expression is `ABCMeta`, by itself or as an attribute of a module."""
    if isinstance(node, ast.Attribute):
        return node.attr == "ABCMeta"
    return isinstance(node, ast.Name) and node.id == "ABCMeta"


def is_result(node: ast.expr) -> bool:
    """Whether `node` is a call of one of the policy's own functions."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id[:1] == names.HOOK_PREFIX
    )


def is_plain_template(node: ast.expr) -> bool:
    """Whether `node` is a string literal whose `format` method needs no guard."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and reads_no_attributes(node.value)


def reads_no_attributes(template: str, depth: int = 0) -> bool:
    """Whether no field of a `str.format` template reads an attribute; False as well for a malformed one."""
    try:
        fields: Iterable[tuple[str, str | None, str | None, str | None]] = string.Formatter().parse(template)
        for _, field, spec, _ in fields:
            if field is not None and "." in field:
                return False
            if spec and (depth > 1 or not reads_no_attributes(spec, depth + 1)):
                return False
    except ValueError:
        return False
    return True
