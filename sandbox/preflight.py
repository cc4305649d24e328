"""What in a program is bound to fail, found before its first statement runs.

Four slips are looked for: names nobody binds, members a namespace does not have, arguments a call cannot
have, and calls that are used without `await`. A slip is reported only where the program is certain to
reach it: at its own level, outside of try, loops, branches, functions and comprehensions, and before
anything that may end the program early. Whatever is in doubt is left to the run, which says the same.

Knows: syntax trees and what the caller says about names. Does not know: the policy, objects, the wire.
"""

from __future__ import annotations

import ast
import difflib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

MAX_ERRORS: Final = 10
"""Errors reported for one program. Arbitrary; who fixes ten has seen what is wrong."""

_LEAVING: Final = frozenset({"exit", "quit", "_exit", "SystemExit", "KeyboardInterrupt"})
"""Names by which a program can end itself well in the middle."""

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


_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WHOLE: Final = frozenset({"integer", "number"})
_NOUNS: Final = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "True or False",
    "null": "None",
    "array": "a list",
    "object": "a dict",
}
_SHOWN_CHARS: Final = 40
"""Longest constant quoted in an error. Arbitrary."""

Advise: TypeAlias = Callable[[str, frozenset[str]], "str | None"]
"""Gives a hint for a name that nobody binds, from it and the names the program binds."""


class Parameters(NamedTuple):
    """What is certain about the arguments of one member."""

    names: Collection[str]
    required: Collection[str]
    is_closed: bool
    """Whether no other name is accepted."""
    types: Mapping[str, Collection[str]]
    """JSON types of which an argument must have one."""
    choices: Mapping[str, Sequence[Any]]
    """The only values an argument may have."""

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return {
            "names": list(self.names),
            "required": list(self.required),
            "isClosed": self.is_closed,
            "types": {name: list(kinds) for name, kinds in self.types.items()},
            "choices": {name: list(values) for name, values in self.choices.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Parameters:
        """Rebuild what `to_json` wrote."""
        return cls(
            record["names"], record["required"], record["isClosed"], record["types"], record["choices"]
        )


class Space(NamedTuple):
    """One namespace, as far as a program's text can be checked against it."""

    members: Mapping[str, str]
    """Member names and signatures."""
    parameters: Mapping[str, Parameters]
    """Members whose arguments are known."""
    positional: Mapping[str, Sequence[str]]
    """Members that take arguments by position, and the names these have."""
    eager: Collection[str]
    """Members that work without `await`."""
    coroutines: Collection[str]
    """Members that give an ordinary coroutine, which can be handled before it has run."""
    noun: str
    label: Callable[[str], str]
    """Writes a member as a program reaches it."""
    unknown: Callable[[str], str]
    """Says that there is no such member, and which there are."""


class CertainError(NamedTuple):
    """One slip: what Python would raise, and where."""

    line: int
    column: int
    error_type: str
    message: str
    hint: str | None


def certain_errors(
    source: str, names: Collection[str], spaces: Mapping[str, Space], advise: Advise
) -> list[CertainError]:
    """List what must fail when the program is run.

    Args:
        source: A program that compiles.
        names: What is bound before it starts, builtins included.
        spaces: The namespaces among these.
        advise: Gives the hints for unknown names.

    Returns:
        The errors in the order of the text; none at all when in doubt.
    """
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
        finder = _Finder(names, spaces, _Bindings(tree), advise)
        finder.follow(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The policy took it, so it is only too deep for us. The run decides.
        return []
    return sorted(set(finder.errors), key=lambda error: error[:2])[:MAX_ERRORS]


class _Bindings:
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
        for node in ast.walk(tree):
            kind = type(node)
            if kind is ast.Name:
                # Most nodes are names or bind nothing, and this is on the way of every run.
                if type(node.ctx) is ast.Store:  # type: ignore[attr-defined]  # a name, as just tested
                    self.counts[node.id] += 1  # type: ignore[attr-defined]  # as above
                self.may_leave |= node.id in _LEAVING  # type: ignore[attr-defined]  # as above
            elif kind in _BINDING:
                self._note(node)

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


_BINDING: Final = frozenset(
    {
        ast.AugAssign, ast.Attribute, ast.Constant, *_DEFINITIONS, ast.arg, ast.alias, ast.ExceptHandler,
        ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal,
        # Only Python 3.12 and later have these.
        *(getattr(ast, kind) for kind in ("TypeVar", "TypeVarTuple", "ParamSpec") if hasattr(ast, kind)),
    }
)  # fmt: skip


_LEAVES: Final = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


class _Pending(NamedTuple):
    """An expression whose value is a call that has not run."""

    label: str
    is_opaque: bool
    """Whether every operation on it raises, as with calls of the host; a coroutine can be printed."""


class _Given(NamedTuple):
    """The arguments of one call."""

    values: dict[str, ast.expr]
    is_whole: bool
    """Whether there are no others, as `**more` might bring."""


class _Finder:
    def __init__(
        self, names: Collection[str], spaces: Mapping[str, Space], bindings: _Bindings, advise: Advise
    ) -> None:
        self._names = names
        self._spaces = {name: space for name, space in spaces.items() if not bindings.counts[name]}
        self._bindings = bindings
        self._advise = advise
        self._pending: dict[str, _Pending] = {}
        self.errors: list[CertainError] = []

    # ---- statements

    def follow(self, body: list[ast.stmt]) -> bool:
        """Look at statements that are certain to run; returns whether what follows them is, too."""
        return all(self._statement(statement) for statement in body)

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Return():
                self._returned(node.value)
                self._values(node.value)
                return False
            case ast.Raise():
                self._values(node.exc, node.cause)
                return False
            case ast.If() if _is_always_true(node.test):
                return self.follow(node.body)
        self._parts(node)
        if isinstance(node, _DEFINITIONS):
            return True
        may_leave = self._bindings.may_leave and any(isinstance(part, ast.Call) for part in ast.walk(node))
        return not may_leave and not _may_end(node)

    def _parts(self, node: ast.stmt) -> None:
        """Look at the expressions of a statement that are certain to be evaluated."""
        match node:
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

    def _touched(self, node: ast.expr) -> None:
        """Look at an expression whose value is then worked with, which a call that has not run refuses."""
        pending = self._pending_call(node)
        if pending is not None and pending.is_opaque:
            self._not_awaited(node, pending)
        self._value(node)

    def _value(self, node: ast.AST) -> None:
        if isinstance(node, _LEAVES):
            return
        match node:
            case ast.Name():
                self._name(node)
            case ast.Call():
                self._call(node)
            case ast.Attribute() | ast.Subscript():
                self._part(node)
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

    def _name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) or node.id in self._names or self._bindings.has_star:
            return
        if not self._bindings.counts[node.id]:
            hint = self._advise(node.id, frozenset(self._bindings.counts))
            self._report(node, "NameError", f"name {node.id!r} is not defined", hint)

    def _call(self, node: ast.Call) -> None:
        found = self._member(node.func)
        if found is not None:
            self._arguments(node, *found)
        self._values(node.func)
        rest = node.args
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if rest and name in _LOOKS_INSIDE and not self._bindings.counts[name]:
            self._touched(rest[0])
        self._values(*rest, *(word.value for word in node.keywords))

    def _part(self, node: ast.Attribute | ast.Subscript) -> None:
        """Look at `value.name` or `value[key]`; report a member that a namespace does not have."""
        if isinstance(node, ast.Subscript):
            self._values(node.slice)
        space, name = self._space_and_name(node)
        if space is None:
            self._touched(node.value)
        elif name is not None and name not in space.members and not name.startswith("_"):
            error_type = "AttributeError" if isinstance(node, ast.Attribute) else "LookupError"
            self._report(node, error_type, space.unknown(name), None)

    def _space_and_name(self, node: ast.expr) -> tuple[Space | None, str | None]:
        if not (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load)):
            return None, None
        space = self._spaces.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(node, ast.Attribute):
            return space, node.attr
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return space, key if isinstance(key, str) else None

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

    def _not_awaited(self, node: ast.expr, pending: _Pending) -> None:
        call = f"{pending.label}(...)"
        hint = f"write `await {call}`"
        if isinstance(node, ast.Name):
            hint = f"write `{node.id} = await {call}`"
        self._report(node, "TypeError", f"{call} is not awaited, so it would not run", hint)

    # ---- arguments

    def _arguments(self, node: ast.Call, space: Space, name: str) -> None:
        hint = f"the {space.noun} is: {space.members[name]}"
        if name in space.coroutines or any(isinstance(argument, ast.Starred) for argument in node.args):
            return
        given = _given(node, space.positional.get(name, ()))
        if given is None:
            message = f"{space.label(name)} takes its arguments by name, or as one dict and nothing else"
            self._report(node, "TypeError", message, hint)
        elif name in space.parameters:
            faults = _faults(space.parameters[name], given)
            if faults:
                self._report(node, "ToolCallError", f"{space.label(name)}: {'; '.join(faults)}", hint)

    def _report(self, node: ast.expr, error_type: str, message: str, hint: str | None) -> None:
        self.errors.append(CertainError(node.lineno, node.col_offset + 1, error_type, message, hint))


# ---- statements that may end the program


def _is_always_true(test: ast.expr) -> bool:
    """Whether a branch is always taken: `if True`, and the customary test of a module's name."""
    match test:
        case ast.Constant():
            return bool(test.value)
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
        ):
            return True
    return False


def _may_end(node: ast.AST) -> bool:
    """Whether a statement may return, raise, or go on for ever."""
    if isinstance(node, ast.Return | ast.Raise):
        return True
    if isinstance(node, ast.While) and _is_always_true(node.test) and not _breaks(node.body):
        return True
    if isinstance(node, (*_DEFINITIONS, ast.expr)):
        return False
    return any(_may_end(child) for child in ast.iter_child_nodes(node))


def _breaks(body: Sequence[ast.AST]) -> bool:
    return any(isinstance(part, ast.Break) for statement in body for part in ast.walk(statement))


# ---- arguments


def _given(node: ast.Call, order: Sequence[str]) -> _Given | None:
    """Return the arguments of a call by name, or None when they have a form no call may have."""
    values = {word.arg: word.value for word in node.keywords if word.arg is not None}
    given = _Given(values, is_whole=len(values) == len(node.keywords))
    if not node.args:
        return given
    if order:
        by_position = dict(zip(order, node.args, strict=False))
        if len(node.args) > len(order) or by_position.keys() & values.keys():
            return None
        return _Given(by_position | values, given.is_whole)
    if len(node.args) > 1 or node.keywords:
        return None
    return _record(node.args[0])


def _record(node: ast.expr) -> _Given | None:
    """Return the arguments in one dict, or None when it cannot be a dict."""
    types = _json_types(node)
    if types is not None and "object" not in types:
        return None
    if not isinstance(node, ast.Dict):
        return _Given({}, is_whole=False)
    values = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    return _Given(values, is_whole=len(values) == len(node.keys))


def _faults(parameters: Parameters, given: _Given) -> list[str]:
    faults = []
    for name, node in given.values.items():
        if name not in parameters.names:
            if parameters.is_closed:
                close = [
                    f' (did you mean "{known}"?)'
                    for known in difflib.get_close_matches(name, parameters.names, 1)
                ]
                faults.append(f'it has no argument "{name}"{"".join(close)}')
            continue
        types = _json_types(node)
        wanted = parameters.types.get(name)
        if wanted is not None and types is not None and not types & set(wanted):
            nouns = " or ".join(_NOUNS[kind] for kind in wanted)
            faults.append(f'"{name}" must be {nouns}, not {_shown(node, types)}')
        elif isinstance(node, ast.Constant) and types is not None and name in parameters.choices:
            choices = parameters.choices[name]
            if not any(_is_same(choice, node.value) for choice in choices):
                texts = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
                faults.append(f'"{name}" must be one of {texts}, not {_shown(node, types)}')
    if given.is_whole:
        missing = [name for name in parameters.required if name not in given.values]
        faults += [f'the required argument "{name}" is missing' for name in missing]
    return faults


def _json_types(node: ast.expr) -> frozenset[str] | None:
    """Return the JSON types an expression's value is of, None when that depends."""
    match node:
        case ast.Constant(value=None):
            return frozenset({"null"})
        case ast.Constant(value=bool()):
            return frozenset({"boolean"})
        case ast.Constant(value=int()):
            return _WHOLE
        case ast.Constant(value=float(value)):
            # JSON Schema takes 1.0 for an integer.
            return _WHOLE if value.is_integer() else frozenset({"number"})
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float())):
            types = _json_types(node.operand)
            return None if types == frozenset({"boolean"}) else types
        case ast.Constant(value=str()) | ast.JoinedStr():
            return frozenset({"string"})
        case ast.List() | ast.ListComp() | ast.Tuple():
            return frozenset({"array"})
        case ast.Dict() | ast.DictComp():
            return frozenset({"object"})
    return None


def _shown(node: ast.expr, types: frozenset[str]) -> str:
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    noun = _NOUNS["integer" if "integer" in types else min(types)]
    if not isinstance(node, ast.Constant) or len(text := repr(node.value)) > _SHOWN_CHARS:
        return noun
    return f"{noun.replace('a ', 'the ', 1).replace('an ', 'the ', 1)} {text}"


def _is_same(choice: object, value: object) -> bool:
    return choice == value and (choice is True or choice is False) == (value is True or value is False)
