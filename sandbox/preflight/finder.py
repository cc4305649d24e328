"""What in a program is bound to fail, found before its first statement runs.

Four slips are looked for: names nobody binds, members a namespace does not have, arguments a call cannot
have, and calls that are used without `await`. A slip is reported only where the program is certain to
reach it: at its own level, outside of try, loops, branches, functions and comprehensions, and before
anything that may end the program early. Whatever is in doubt is left to the run, which says the same.
A fifth is looked for where a program is only checked: imports that fail. A run leaves them until they are
executed, since the language says so (decision 0175).

Knows: syntax trees and what the caller says about names. Does not know: the policy, objects, the wire.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from sandbox.preflight.arguments import argument_faults, given_arguments
from sandbox.preflight.bindings import Bindings, is_always_true, may_call, may_end

if TYPE_CHECKING:
    from sandbox.preflight.spaces import Space

MAX_ERRORS: Final = 10
"""Errors reported for one program. Arbitrary; who fixes ten has seen what is wrong."""
_LOOKS_INSIDE: Final = frozenset(
    {
        "print",
        "str",
        "repr",
        "format",
        "len",
        "int",
        "float",
        "bool",
        "list",
        "tuple",
        "set",
        "frozenset",
        "dict",
        "sorted",
        "sum",
        "min",
        "max",
        "enumerate",
        "iter",
        "next",
        "reversed",
        "abs",
        "round",
    }
)
"""Builtins that touch their first argument, which a call that has not run does not allow."""
_OF_PROMISES: Final = frozenset({"result", "then", "done", "exception", "wait", "join", "add_done_callback"})
"""What is read of a call in other languages or of a task, where `await` alone is meant."""
_MAX_PART_CHARS: Final = 40
"""Longest subscript quoted in a hint. Arbitrary."""
_LEAVES: Final = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
Advise: TypeAlias = Callable[[str, frozenset[str], bool], "str | None"]
"""Gives a hint for a name that nobody binds, from it, the names the program binds, and whether it stands
where a key is meant."""
Import: TypeAlias = Callable[[str, tuple[str, ...], int], "str | None"]
"""Says why an import fails, from the module, the names taken from it, and the number of leading dots."""


class CertainError(NamedTuple):
    """One slip: what Python would raise, and where."""

    line: int
    column: int
    error_type: str
    message: str
    hint: str | None


class _Pending(NamedTuple):
    """An expression whose value is a call that has not run."""

    label: str
    is_opaque: bool
    """Whether every operation on it raises, as with calls of the host; a coroutine can be printed."""


def certain_errors(
    source: str,
    names: Collection[str],
    spaces: Mapping[str, Space],
    advise: Advise,
    why_not_importable: Import | None = None,
) -> list[CertainError]:
    """List what must fail when the program is run.

    Args:
        source: A program that compiles.
        names: What is bound before it starts, builtins included.
        spaces: The namespaces among these.
        advise: Gives the hints for unknown names.
        why_not_importable: Judges imports; without it nothing is said of them.

    Returns:
        The errors in the order of the text; none at all when in doubt.
    """
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
        finder = _Finder(names, spaces, Bindings(tree), advise, why_not_importable)
        finder.follow(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The policy took it, so it is only too deep for us. The run decides.
        return []
    return sorted(set(finder.errors), key=lambda error: error[:2])[:MAX_ERRORS]


class _Finder:
    def __init__(
        self,
        names: Collection[str],
        spaces: Mapping[str, Space],
        bindings: Bindings,
        advise: Advise,
        why_not_importable: Import | None,
    ) -> None:
        self._names = names
        self._spaces = {name: space for name, space in spaces.items() if not bindings.counts[name]}
        self._bindings = bindings
        self._advise = advise
        self._why_not_importable = why_not_importable
        self._pending: dict[str, _Pending] = {}
        self.errors: list[CertainError] = []

    # ---- statements

    def follow(self, body: list[ast.stmt]) -> bool:
        """Look at statements that are certain to run; returns whether what follows them is, too."""
        return all(self._statement(statement) for statement in body)

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.If) and is_always_true(node.test):
            return self.follow(node.body)
        if self._bindings.may_leave and may_call(node, self._is_harmless):
            # The program may end in the middle of this statement.
            return False
        self._parts(node)
        return not may_end(node)

    def _parts(self, node: ast.stmt) -> None:
        """Look at the expressions of a statement that are certain to be evaluated."""
        match node:
            case ast.Return():
                self._returned(node.value)
                self._values(node.value)
            case ast.Raise():
                self._values(node.exc, node.cause)
            case ast.Expr():
                self._alone(node.value)
                self._values(node.value)
            case ast.Assign():
                self._values(node.value, *node.targets)
                if len(node.targets) == 1:
                    self._remember(node.targets[0], node.value)
            case ast.AnnAssign():
                self._values(node.value)
                if node.value is not None:
                    self._values(node.target)
                    self._remember(node.target, node.value)
            case ast.AugAssign():
                self._values(node.value, node.target)
                self._augmented(node.target)
            case ast.Delete():
                self._values(*node.targets)
            case ast.If() | ast.While() | ast.Assert():
                self._touched(node.test)
            case ast.For():
                self._touched(node.iter)
            case ast.AsyncFor():
                self._values(node.iter)
            case ast.With() | ast.AsyncWith():
                self._touched(node.items[0].context_expr)
            case ast.Match():
                self._values(node.subject)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._values(*node.decorator_list, *node.args.defaults, *node.args.kw_defaults)
            case ast.ClassDef():
                self._values(*node.decorator_list, *node.bases, *(word.value for word in node.keywords))
            case ast.Import():
                for alias in node.names:
                    self._import(alias, alias.name, ())
            case ast.ImportFrom() if node.module != "__future__":
                wanted = tuple(alias.name for alias in node.names if alias.name != "*")
                self._import(node, node.module or "", wanted, node.level)

    def _import(
        self, node: ast.stmt | ast.alias, module: str, wanted: tuple[str, ...], level: int = 0
    ) -> None:
        if self._why_not_importable is None:
            return
        why = self._why_not_importable(module, wanted, level)
        if why is not None:
            self._report(node, "ImportError", why, None)

    def _augmented(self, target: ast.expr) -> None:
        if not isinstance(target, ast.Name) or target.id in self._names or self._bindings.has_star:
            return
        if self._bindings.counts[target.id] == self._bindings.augmented[target.id]:
            hint = f"give it a first value before, for example {target.id} = 0"
            self._report(target, "NameError", f"name {target.id!r} has no value that could be changed", hint)

    def _remember(self, target: ast.expr, value: ast.expr) -> None:
        """Keep in mind that a variable that is set only once holds a call that has not run."""
        pending = self._pending_call(value)
        if pending is not None and isinstance(target, ast.Name) and self._bindings.counts[target.id] == 1:
            self._pending[target.id] = pending

    # ---- expressions

    def _values(self, *nodes: ast.expr | None) -> None:
        """Look at expressions that are certain to be evaluated."""
        for node in nodes:
            if node is not None:
                self._value(node)

    def _touched(self, node: ast.expr, part: str = "") -> None:
        """Look at an expression whose value is then worked with, which a call that has not run refuses.

        Args:
            node: The expression.
            part: What is read of it, as the text goes on.
        """
        pending = self._pending_call(node)
        if pending is not None and pending.is_opaque:
            self._not_awaited(node, pending, part)
        self._value(node)

    def _value(self, node: ast.AST) -> None:
        if isinstance(node, _LEAVES):
            return
        match node:
            case ast.Name():
                self._name(node)
            case ast.Call():
                self._call(node)
            case ast.Await():
                self._awaited(node.value)
                self._value(node.value)
            case ast.Attribute() | ast.Subscript():
                self._part(node)
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    self._key(key)
                    self._value(value)
            case ast.BoolOp():
                self._touched(node.values[0])
            case ast.IfExp():
                self._touched(node.test)
            case ast.Compare():
                if isinstance(node.comparators[0], ast.Constant) and not isinstance(
                    node.ops[0], ast.Is | ast.IsNot
                ):
                    self._touched(node.left)
                self._values(node.left, node.comparators[0])
            case ast.BinOp():
                before = len(self.errors)
                self._touched(node.left)
                # `tools.exotic-name` is one slip and not two.
                if len(self.errors) == before or not isinstance(node.op, ast.Sub):
                    self._touched(node.right)
            case ast.UnaryOp():
                self._touched(node.operand)
            case ast.FormattedValue() | ast.Starred():
                self._touched(node.value)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = node.generators[0]
                (self._values if first.is_async else self._touched)(first.iter)
            case ast.Lambda():
                self._values(*node.args.defaults, *node.args.kw_defaults)
            case ast.NamedExpr():
                self._values(node.value)
                self._remember(node.target, node.value)
            case _:
                for child in ast.iter_child_nodes(node):
                    self._value(child)

    def _key(self, node: ast.expr | None) -> None:
        """Look at the key of a dict or the index of a value."""
        if isinstance(node, ast.Name):
            self._name(node, is_key=True)
        else:
            self._values(node)

    def _name(self, node: ast.Name, *, is_key: bool = False) -> None:
        if not isinstance(node.ctx, ast.Load) or node.id in self._names or self._bindings.has_star:
            return
        if not self._bindings.counts[node.id]:
            hint = self._advise(node.id, frozenset(self._bindings.counts), is_key)
            self._report(node, "NameError", f"name {node.id!r} is not defined", hint)

    def _call(self, node: ast.Call) -> None:
        found = self._member(node.func)
        if found is not None:
            self._given(node, *found)
        self._values(node.func)
        rest = node.args
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if rest and name in _LOOKS_INSIDE and not self._bindings.counts[name]:
            self._touched(rest[0])
        self._values(*rest, *(word.value for word in node.keywords))

    def _is_harmless(self, node: ast.Call) -> bool:
        """Whether a call runs no code of the program."""
        if not isinstance(node.func, ast.Name):
            return self._member(node.func) is not None
        is_builtin = node.func.id in _LOOKS_INSIDE and not self._bindings.counts[node.func.id]
        return is_builtin and not node.keywords

    def _part(self, node: ast.Attribute | ast.Subscript) -> None:
        """Look at `value.name` or `value[key]`; report a member that a namespace does not have."""
        if isinstance(node, ast.Subscript):
            self._key(node.slice)
        space, name = self._space_and_name(node)
        if space is None:
            self._touched(node.value, part_text(node))
        elif name is not None and name not in space.members and not name.startswith("_"):
            error_type = "AttributeError" if isinstance(node, ast.Attribute) else "LookupError"
            self._report(node, error_type, space.unknown(name), None)

    def _space_and_name(self, node: ast.expr) -> tuple[Space | None, str | None]:
        if not (isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)):
            return None, None
        match node:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=owner), attr=group)):
                space = self._spaces.get(owner)
                if space is None or group not in space.groups:
                    return None, None
                return space, space.resolved(f"{group}.{node.attr}")
            case ast.Attribute(value=ast.Name(id=owner)):
                space = self._spaces.get(owner)
                return space, None if space is not None and node.attr in space.groups else node.attr
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(key))):
                space = self._spaces.get(owner)
                return space, key if space is None else space.resolved(key)
            case ast.Subscript(value=ast.Name(id=owner)):
                return self._spaces.get(owner), None
        return None, None

    def _member(self, node: ast.expr) -> tuple[Space, str] | None:
        space, name = self._space_and_name(node)
        return None if space is None or name is None or name not in space.members else (space, name)

    # ---- calls that were not awaited

    def _pending_call(self, node: ast.expr) -> _Pending | None:
        """Return the call that an expression is, if it is one that runs only when awaited."""
        if isinstance(node, ast.Name):
            return self._pending.get(node.id)
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Name):
            name = node.func.id
            is_own = name in self._bindings.coroutines and self._bindings.counts[name] == 1
            return _Pending(name, is_opaque=False) if is_own else None
        found = self._member(node.func)
        if found is None or found[1] in found[0].eager:
            return None
        space, name = found
        return _Pending(space.label(name), is_opaque=name not in space.coroutines)

    def _alone(self, node: ast.expr) -> None:
        """Report a call that stands alone as a statement: nobody can await it later."""
        if isinstance(node, ast.Call) and (pending := self._pending_call(node)) is not None:
            self._not_awaited(node, pending)
            # Once it is awaited, it would still fail.
            self._awaited(node)

    def _returned(self, node: ast.expr | None) -> None:
        match node:
            case ast.List() | ast.Tuple():
                for item in node.elts:
                    self._returned(item)
            case ast.Dict():
                for value in node.values:
                    self._returned(value)
            case ast.expr():
                pending = self._pending_call(node)
                if pending is not None:
                    self._not_awaited(node, pending)

    def _not_awaited(self, node: ast.expr, pending: _Pending, part: str = "") -> None:
        call = f"{pending.label}(...)"
        hint = f"write `await {call}`"
        if isinstance(node, ast.Name):
            hint = f"write `{node.id} = await {call}`"
        elif part:
            # `await call[...]` would be the call again, since await comes last.
            hint = f"put the await in brackets: `(await {call}){part}`"
        self._report(node, "TypeError", f"{call} is not awaited, so it would not run", hint)

    # ---- arguments

    def _awaited(self, node: ast.expr, how: str = "await ") -> None:
        """Look at what is certain to be awaited: bad arguments of a call raise there, and not before."""
        if not isinstance(node, ast.Call):
            if (uncalled := self._member(node)) is not None:
                label = uncalled[0].label(uncalled[1])
                self._report(node, "TypeError", f"{label} is not called", f"call it: `{how}{label}(...)`")
            return
        found = self._member(node.func)
        if found is not None:
            self._arguments(node, *found)
        elif self._is_gather(node):
            for part in node.args:
                self._awaited(part, how="")

    def _is_gather(self, node: ast.Call) -> bool:
        """Whether a call is `asyncio.gather(...)` in the form that raises what its calls raise."""
        match node.func:
            case ast.Attribute(value=ast.Name(id="asyncio"), attr="gather"):
                return not node.keywords and self._bindings.is_module("asyncio")
        return False

    def _given(self, node: ast.Call, space: Space, name: str) -> None:
        """Report arguments in a form that no call may have."""
        if name in space.coroutines or _is_spread(node):
            return
        if given_arguments(node, space.positional.get(name, ())) is None:
            message = f"{space.label(name)} takes its arguments by name, or as one dict and nothing else"
            self._report(node, "TypeError", message, _signature(space, name))

    def _arguments(self, node: ast.Call, space: Space, name: str) -> None:
        """Report arguments that the member refuses when the call runs."""
        given = given_arguments(node, space.positional.get(name, ()))
        if given is None or name not in space.parameters or _is_spread(node):
            return
        faults = argument_faults(space.parameters[name], given)
        if faults:
            message = f"{space.label(name)}: {'; '.join(faults)}"
            self._report(node, "ToolCallError", message, _signature(space, name))

    def _report(
        self, node: ast.expr | ast.stmt | ast.alias, error_type: str, message: str, hint: str | None
    ) -> None:
        self.errors.append(CertainError(node.lineno, node.col_offset + 1, error_type, message, hint))


def _is_spread(node: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in node.args)


def _signature(space: Space, name: str) -> str:
    return f"the {space.noun} is: {space.members[name]}"


def part_text(node: ast.Attribute | ast.Subscript) -> str:
    """Write what is read of a value: a field where an attribute stands that no JSON value has."""
    if isinstance(node, ast.Attribute):
        if node.attr in _OF_PROMISES:
            return ""
        is_method = any(hasattr(kind, node.attr) for kind in (str, list, dict))
        return f".{node.attr}" if is_method else f'["{node.attr}"]'
    text = ast.unparse(node.slice).replace("'", '"')
    return f"[{text}]" if len(text) <= _MAX_PART_CHARS else "[...]"
