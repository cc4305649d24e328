"""Hints for the slips that language models make: what to write instead of what failed.

One rule a slip, in a table by exception type. A rule gives a hint only when it knows what was meant; a
wrong hint costs a reader more than none. Values are looked at where they stand, in the failed frame, and
only if they are plain data, so that no code of the program runs.

Knows: exceptions, the failed expression, the values in it. Does not know: the wire, failure kinds.
"""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import difflib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sandbox.values import FrozenDict, FrozenList

if TYPE_CHECKING:
    from types import TracebackType

    from sandbox.preflight import Space

_MAX_KEYS_CHARS: Final = 300
_MAX_KEYS: Final = 20
_MAX_CODE_CHARS: Final = 60
"""Longest expression quoted. Arbitrary, as the bounds above: a hint is one line or two."""
_NEAR: Final = 0.75
"""Likeness from which one name is taken for a slip of another."""


_DICTS: Final = (dict, FrozenDict)
_LISTS: Final = (list, FrozenList)
_SCALARS: Final = (str, int, float, bool, type(None))


class Surroundings(NamedTuple):
    """What a program finds when it starts."""

    names: Collection[str]
    """Bound names, builtins included."""
    spaces: Mapping[str, Space]
    modules: Collection[str]
    """What can be imported."""


# ---- names nobody binds

_OTHER_LANGUAGES: Final = {
    "true": "write True",
    "false": "write False",
    "null": "write None",
    "undefined": "write None",
    "nil": "write None",
    "NULL": "write None",
    "nan": 'write float("nan"); JSON has no such number, so it cannot be returned',
    "xrange": "write range(...)",
    "unicode": "write str(...)",
    "raw_input": "nobody is there to answer: put the value into a variable",
    "console": "write print(...)",
    "JSON": "`import json`, then json.loads(...) or json.dumps(...)",
    "Math": "`import math`, or the builtins abs, min, max, round",
    "Promise": "write `await asyncio.gather(...)`, after `import asyncio`",
    "fetch": "programs have no network: only tools reach outside",
    "require": "use `import`, or the tools, which need no import",
    "async_to_sync": "write `await` where you are: a program may use it anywhere",
    "display": "write print(...)",
    "echo": "write print(...)",
    "printf": "write print(...)",
    "println": "write print(...)",
    "puts": "write print(...)",
}
_FROM_MODULES: Final = {
    "defaultdict": "collections",
    "Counter": "collections",
    "deque": "collections",
    "OrderedDict": "collections",
    "namedtuple": "collections",
    "dataclass": "dataclasses",
    "field": "dataclasses",
    "asdict": "dataclasses",
    "timedelta": "datetime",
    "timezone": "datetime",
    "date": "datetime",
    "ZoneInfo": "zoneinfo",
    "Decimal": "decimal",
    "Fraction": "fractions",
    "reduce": "functools",
    "partial": "functools",
    "lru_cache": "functools",
    "cache": "functools",
    "wraps": "functools",
    "chain": "itertools",
    "groupby": "itertools",
    "islice": "itertools",
    "product": "itertools",
    "combinations": "itertools",
    "permutations": "itertools",
    "zip_longest": "itertools",
    "accumulate": "itertools",
    "count": "itertools",
    "itemgetter": "operator",
    "attrgetter": "operator",
    "gather": "asyncio",
    "create_task": "asyncio",
    "as_completed": "asyncio",
    "wait_for": "asyncio",
    "Semaphore": "asyncio",
    "TaskGroup": "asyncio",
    "ceil": "math",
    "floor": "math",
    "sqrt": "math",
    "log": "math",
    "pi": "math",
    "mean": "statistics",
    "median": "statistics",
    "stdev": "statistics",
    "dumps": "json",
    "loads": "json",
    "Enum": "enum",
    "StringIO": "io",
    "uuid4": "uuid",
    "sleep": "asyncio",
    "Any": "typing",
    "Optional": "typing",
    "List": "typing",
    "Dict": "typing",
    "TypedDict": "typing",
    "Literal": "typing",
    "NamedTuple": "typing",
    "heappush": "heapq",
    "heappop": "heapq",
    "bisect_left": "bisect",
    "pprint": "pprint",
    "dedent": "textwrap",
    "suppress": "contextlib",
}
"""Names that programs tend to forget to import, and where they are."""
_DATETIME: Final = " and write datetime.datetime.now(), or add `from datetime import datetime`"
_CALLERS: Final = frozenset(
    {"call_tool", "calltool", "invoke", "invoketool", "runtool", "usetool", "executetool", "mcp", "calltools"}
    | {"functions", "usemcptool", "tool", "api", "client", "agent", "session", "toolcall"}
)
"""Names other systems give to what calls a tool, squashed."""


def unknown_name(name: str, bound: frozenset[str], around: Surroundings) -> str | None:
    """Return what to write instead of a name that nothing binds.

    Args:
        name: The name.
        bound: Names the program itself binds.
        around: What it finds when it starts.
    """
    if name in _OTHER_LANGUAGES and not any(name in space.members for space in around.spaces.values()):
        return _OTHER_LANGUAGES[name]
    if (label := _same_member(name, around)) is not None:
        return f"write `await {label}(...)`"
    if name in around.modules:
        return f"add `import {name}`" + _DATETIME * (name == "datetime")
    if _FROM_MODULES.get(name) in around.modules:
        return f"add `from {_FROM_MODULES[name]} import {name}`"
    near = difflib.get_close_matches(name, bound, 1, _NEAR)
    near = near or [known for known in around.names if _is_slip_of(name, known)][:1]
    if near:
        return f"did you mean `{near[0]}`?"
    if re.fullmatch(r"[A-Z]\w*(Args|Output)\w*", name):
        return "the classes in the description are not there when a program runs: write a plain dict"
    if labels := _near_members(name, around):
        return f"did you mean `await {' or '.join(f'{label}(...)' for label in labels)}`?"
    if "tools" in around.spaces and _squash(name) in _CALLERS:
        return "call a tool by its own name: `await tools.NAME(key=value)`"
    return f"nothing is kept from earlier runs: give `{name}` a value in this program"


def _is_slip_of(name: str, known: str) -> bool:
    """Whether one letter more, less, other or swapped makes a builtin of a name that begins like it."""
    if name[:2] != known[:2] or name == f"{known}s" or abs(len(name) - len(known)) > 1:
        return False
    if len(name) == len(known):
        different = [index for index in range(len(name)) if name[index] != known[index]]
        return len(different) < 2 or (len(different) == 2 and sorted(name) == sorted(known))
    short, long = sorted((name, known), key=len)
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long)))


def _same_member(name: str, around: Surroundings) -> str | None:
    for space in around.spaces.values():
        for member in space.members:
            if member == name or _squash(member) == _squash(name):
                return space.label(member)
    return None


def _near_members(name: str, around: Surroundings) -> list[str]:
    labels: dict[str, str] = {}
    for space in around.spaces.values():
        for member in space.members:
            labels.setdefault(_squash(member), space.label(member))
    near = difflib.get_close_matches(_squash(name), labels, 1, _NEAR)
    if not near:
        words = {word for word in re.split(r"[^a-z]+|(?<=[a-z])(?=[A-Z])", name.lower()) if len(word) > 3}
        near = sorted(known for known in labels if known in words)[:2]
    return [labels[known] for known in near]


def _squash(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


# ---- exceptions


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

    def value_of(self, node: ast.expr) -> tuple[bool, Any]:
        """Find the value of a variable, or of a constant part of one, without running anything."""
        match node:
            case ast.Name():
                for scope in self.scopes:
                    if node.id in scope:
                        return True, scope[node.id]
                return self._first_of(node.id)
            case ast.Subscript(slice=ast.Constant()):
                found, value = self.value_of(node.value)
                key: Any = node.slice.value  # type: ignore[attr-defined]  # a constant, as just matched
                if found and type(value) in _DICTS and type(key) is str and dict.__contains__(value, key):
                    return True, dict.__getitem__(value, key)
                if found and type(value) in _LISTS and type(key) is int and -len(value) <= key < len(value):
                    return True, list.__getitem__(value, key)
        return False, None

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
                    if found and type(value) in (*_DICTS, *_LISTS):
                        return bool(value), next(iter(value), None)
        return False, None


Rule: TypeAlias = Callable[[Failed], "str | None"]


def advise(error: BaseException, source: str, program_file: str, around: Surroundings) -> str | None:
    """Return what to write instead of what raised, or None when that is not known.

    Args:
        error: What ended the program.
        source: The program.
        program_file: The file name of the program's code.
        around: What it found when it started.
    """
    try:
        failed = _failed(error, source, program_file, around)
        for kind in type(error).__mro__:
            for rule in _RULES.get(kind, ()):
                hint = rule(failed)
                if hint is not None:
                    return hint
    except Exception:  # noqa: BLE001  # objects of the program may do anything; a hint is not worth an error
        return None
    return None


def _failed(error: BaseException, source: str, program_file: str, around: Surroundings) -> Failed:
    text = error.args[0] if error.args and type(error.args[0]) is str else ""
    tree = ast.parse(source)
    frames = list(_program_frames(error.__traceback__, program_file))
    if not frames:
        return Failed(error, text, None, tree, (), around, in_function=False)
    scopes: list[Mapping[str, Any]] = []
    for traceback in reversed(frames):
        scopes.append(traceback.tb_frame.f_locals)
        # Below 3.12 a comprehension is a frame of its own, inside the one it is written in.
        if traceback.tb_frame.f_code.co_name not in _COMPREHENSIONS:
            break
    last = frames[-1]
    in_function = traceback.tb_frame.f_code.co_name != "<module>"
    scopes.append(last.tb_frame.f_globals)
    return Failed(error, text, _node_at(tree, last), tree, scopes, around, in_function)


_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


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


# ---- rules


def _name_error(failed: Failed) -> str | None:
    name = getattr(failed.error, "name", None)
    if type(name) is not str or isinstance(failed.error, UnboundLocalError):
        return None
    written = {node.id for node in ast.walk(failed.tree) if isinstance(node, ast.Name)}
    bound = frozenset(other for other in written if any(other in scope for scope in failed.scopes))
    return unknown_name(name, bound, failed.around)


def _unbound(failed: Failed) -> str | None:
    name = getattr(failed.error, "name", None)
    if type(name) is not str:
        match = re.search(r"variable '(\w+)'", failed.text)
        name = match[1] if match else None
    if name is None:
        return None
    if failed.in_function:
        if not _is_set_outside(failed.tree, name):
            return None
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


def _missing_key(failed: Failed) -> str | None:
    if not (isinstance(failed.node, ast.Subscript) and failed.error.args):
        return None
    found, value = failed.value_of(failed.node.value)
    if not found or type(value) not in _DICTS:
        return None
    key = failed.error.args[0]
    where = _code(failed.node.value)
    if type(key) is not str and not any(type(known) is type(key) for known in dict.__iter__(value)):
        return f"`{where}` is a dict, not a list; {_keys(value)}"
    near = difflib.get_close_matches(key, _text_keys(value), 1, _NEAR) if type(key) is str else []
    start = f"did you mean {json.dumps(near[0])}? " if near else ""
    return f"{start}`{where}` is a dict; {_keys(value)}"


def _missing_index(failed: Failed) -> str | None:
    if not isinstance(failed.node, ast.Subscript):
        return None
    found, value = failed.value_of(failed.node.value)
    if not found or type(value) not in (*_LISTS, tuple, str):
        return None
    what = "characters" if type(value) is str else "items"
    return f"`{_code(failed.node.value)}` has {len(value)} {what}; test its length first"


def _missing_attribute(failed: Failed) -> str | None:
    if not isinstance(failed.error, AttributeError):
        return None
    value, name = failed.error.obj, failed.error.name
    where = _code(failed.node.value) if isinstance(failed.node, ast.Attribute) else "value"
    if type(name) is not str:
        return None
    if isinstance(value, BaseException) and type(value).__name__ in failed.around.names:
        return _missing_on_error(failed, value, where)
    if type(value) in _DICTS:
        return _missing_on_dict(value, where, name)
    if type(value) in _LISTS:
        return _missing_on_list(value, where, name)
    if type(value) is str:
        if name in ("get", "keys", "items", "values") or _is_json_text(value):
            return _text_advice(value, where)
        if name in _STRING_METHODS:
            return f"write {_STRING_METHODS[name].format(where)}"
    if value is None:
        return f"`{where}` is None: test for that before"
    if type(value) in (int, float, bool):
        return f"`{where}` is {_described(value)}: it is the value itself"
    if type(value).__name__ in ("coroutine", "Future", "Task"):
        return "write `await` before the call"
    if type(value).__name__ == "function" and (label := repr(value)).startswith("<tool "):
        return f"call it: `await {label[6:-1]}(...)`"
    return _datetime(value, name) or _near_attribute(value, name)


def _datetime(value: object, name: str) -> str | None:
    """The module of that name for its class, and the other way round."""
    if value is dt.datetime:
        if name == "datetime":
            return "`datetime` is the class here, not the module: leave one `datetime.` out"
        if hasattr(dt, name):
            return f"`datetime` is the class here, not the module: add `from datetime import {name}`"
    elif repr(value).startswith("<module 'datetime'") and hasattr(dt.datetime, name):
        return f"`datetime` is the module here, not the class: write `datetime.datetime.{name}(...)`"
    return None


def _missing_on_dict(value: Any, where: str, name: str) -> str:
    if name in value:
        return f'a JSON object is a dict: write `{where}["{name}"]`'
    if name in ("append", "add", "push"):
        return f'a dict has no order to append to: write `{where}["key"] = ...` on a copy'
    if name == "has_key":
        return f'write `"key" in {where}`'
    return f'a JSON object is a dict, read by key: `{where}["key"]`; {_keys(value)}'


def _missing_on_list(value: Any, where: str, name: str) -> str | None:
    if name in _LIST_METHODS:
        return f"write {_LIST_METHODS[name].format(where)}"
    if name in ("get", "keys", "items", "values") or (
        value and type(value[0]) in _DICTS and name in value[0]
    ):
        return f"`{where}` is a list of {len(value)}: take one with `{where}[0]`, or loop over it"
    return _near_attribute(value, name)


_LIST_METHODS: Final = {
    "push": "`{}.append(x)`",
    "add": "`{}.append(x)`",
    "length": "`len({})`",
    "size": "`len({})`",
    "len": "`len({})`",
    "map": "`[f(x) for x in {}]`",
    "forEach": "`for x in {}: ...`",
    "filter": "`[x for x in {} if ...]`",
    "find": "`next((x for x in {} if ...), None)`",
    "includes": "`x in {}`",
    "contains": "`x in {}`",
    "join": '`", ".join({})`',
    "first": "`{}[0]`",
    "last": "`{}[-1]`",
    "slice": "`{}[start:stop]`",
    "concat": "`{} + other`",
    "head": "`{}[:5]`",
}
_STRING_METHODS: Final = {
    "length": "`len({})`",
    "size": "`len({})`",
    "trim": "`{}.strip()`",
    "toUpperCase": "`{}.upper()`",
    "toLowerCase": "`{}.lower()`",
    "includes": "`x in {}`",
    "contains": "`x in {}`",
    "startsWith": "`{}.startswith(x)`",
    "endsWith": "`{}.endswith(x)`",
    "substring": "`{}[start:stop]`",
    "replaceAll": "`{}.replace(old, new)`",
    "append": "`{0} = {0} + x`",
    "decode": "`{}`: it is text already",
}


def _near_attribute(value: object, name: str) -> str | None:
    kind = type(value)
    if kind.__module__ not in ("builtins", "datetime", "re", "collections", "decimal"):
        return None
    public = [known for known in dir(kind) if known[:1] != "_"]
    near = difflib.get_close_matches(name, public, 1, _NEAR)
    return f"did you mean `.{near[0]}`?" if near else None


def _text_advice(value: str, where: str) -> str:
    if _is_json_text(value):
        return f"`{where}` is JSON text: `import json`, then `json.loads({where})` gives its data"
    return f"`{where}` is a str, not a dict"


def _method_for_key(failed: Failed) -> str | None:
    """`r.items` where "items" is a key: it gives the dict's method."""
    if failed.node is None or "method" not in failed.text:
        return None
    for node in ast.walk(failed.node):
        if isinstance(node, ast.Attribute):
            found, value = failed.value_of(node.value)
            if found and type(value) in _DICTS and node.attr in value:
                return f'`{_code(node)}` is a method of dicts: write `{_code(node.value)}["{node.attr}"]`'
    return None


def _wrong_index(failed: Failed) -> str | None:
    """A subscript of something that has other parts, or none."""
    if not isinstance(failed.node, ast.Subscript) or not re.search("subscript|indices|'slice'", failed.text):
        return None
    base = failed.node.value
    where = _code(base)
    found, value = failed.value_of(base)
    if not found:
        return None
    if type(value) is str:
        return _loop_over_dict(failed, base) or _text_advice(value, where)
    if type(value) in _LISTS:
        key = failed.node.slice
        part = f"[{_code(key)}]"
        if value and type(value[0]) in _DICTS:
            return f"`{where}` is a list of {len(value)}: take one first, `{where}[0]{part}`, or loop over it"
        return f"`{where}` is a list of {len(value)}: its index is a whole number"
    if type(value) in _DICTS:
        return f"`{where}` is a dict, not a list; {_keys(value)}"
    if type(value) in _SCALARS:
        return f"`{where}` is {_described(value)}: it has no parts"
    return None


def _loop_over_dict(failed: Failed, name: ast.expr) -> str | None:
    """`for x in a_dict: x["key"]`: x is a key."""
    if not isinstance(name, ast.Name):
        return None
    for node in ast.walk(failed.tree):
        if not isinstance(node, ast.For | ast.comprehension):
            continue
        if isinstance(node.target, ast.Name) and node.target.id == name.id:
            found, value = failed.value_of(node.iter)
            if found and type(value) in _DICTS:
                return f"looping over a dict gives its keys: {_instead_of_loop(_code(node.iter), value)}"
    return None


def _instead_of_loop(where: str, value: Any) -> str:
    lists = [key for key in _text_keys(value) if type(value[key]) in _LISTS]
    if len(lists) == 1:
        return f"write `for ... in {where}[{json.dumps(lists[0])}]`"
    return f"write `for key, value in {where}.items()`; {_keys(value)}"


def _unpacked_dict(failed: Failed) -> str | None:
    """`for key, value in a_dict`."""
    for node in _loops(failed):
        if isinstance(node.target, ast.Tuple):
            found, value = failed.value_of(node.iter)
            if found and type(value) in _DICTS and len(node.target.elts) == 2:
                return f"write `{_code(node.iter)}.items()` to get keys and values"
    return None


def _loops(failed: Failed) -> Iterator[ast.For | ast.comprehension]:
    line = failed.node.lineno if failed.node is not None else None
    for node in ast.walk(failed.tree):
        if isinstance(node, ast.For | ast.comprehension) and (line is None or node.target.lineno == line):
            yield node


def _not_usable(failed: Failed) -> str | None:
    """An operation on a number, None or a function that wants something else."""
    text = failed.text
    if "can't be used in 'await' expression" in text:
        return _awaited(failed)
    if text.startswith("the JSON object must be str"):
        return "the value is data already, not JSON text: use it without json.loads"
    if "is not JSON serializable" in text:
        return _serializable(text)
    if "object is not callable" in text:
        return _called(failed)
    if re.search("coroutine|Future|Task", text):
        return "write `await` before the call that gives it"
    if re.search(r"Error' object|Exception' object", text):
        return _error_as_value(text)
    if "async_generator" in text:
        return "loop over it with `async for`"
    if "unsupported operand" in text or "can only concatenate" in text or "not supported between" in text:
        return _operands(text)
    if text.startswith("unhashable type"):
        return _unhashable(text)
    if text.endswith(("is not iterable", "has no len()")) and failed.node is not None:
        node = failed.node
        if isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            node = node.generators[0].iter
        found, value = failed.value_of(node)
        if found and type(value) in (int, float, bool, type(None)):
            return f"`{_code(node)}` is {_described(value)}"
    return None


def _missing_on_error(failed: Failed, error: BaseException, where: str) -> str | None:
    kind = type(error).__name__
    handlers = (node.name for node in ast.walk(failed.tree) if isinstance(node, ast.ExceptHandler))
    if where not in handlers:
        return _error_as_value(f"'{kind}'")
    own = sorted(name for name in vars(error) if name[:1] != "_")
    more = f"; it has {', '.join(f'`{where}.{name}`' for name in own)}" if own else ""
    return f"`str({where})` is its text{more}"


def _error_as_value(text: str) -> str:
    kind = text.partition("'")[2].partition("'")[0]
    return f"a failed call became an item: test `isinstance(item, {kind})` before reading it"


def _awaited(failed: Failed) -> str | None:
    found = re.search(r"object (\w+) can't", failed.text)
    kind = found[1] if found else ""
    if kind == "function" and isinstance(failed.node, ast.Await):
        return f"call it: `await {_code(failed.node.value)}(...)`"
    is_data = isinstance(failed.node, ast.Await) and _is_data(failed, failed.node.value)
    if kind in ("list", "tuple") and not is_data:
        return "await each item, or all of them with `await asyncio.gather(*calls)`"
    if is_data or kind in ("dict", "str", "int", "float", "bool", "NoneType"):
        return "that is a value already, not a call: leave out `await`"
    return None


def _is_data(failed: Failed, node: ast.expr) -> bool:
    """Whether a list holds nothing that could be awaited."""
    found, value = failed.value_of(node)
    return found and type(value) in _LISTS and all(type(item) in (*_SCALARS, *_DICTS) for item in value)


def _called(failed: Failed) -> str | None:
    if not isinstance(failed.node, ast.Call):
        return None
    function = failed.node.func
    found, value = failed.value_of(function)
    if isinstance(function, ast.Name) and hasattr(builtins, function.id) and found:
        return f"the program gave the name `{function.id}` another value: use a name of its own for that"
    if found and type(value) in (*_DICTS, *_LISTS, tuple, str):
        return f"read a part of `{_code(function)}` with square brackets"
    return None


def _serializable(text: str) -> str | None:
    kind = text.removeprefix("Object of type ").partition(" ")[0]
    advice = {
        "datetime": ".isoformat()",
        "date": ".isoformat()",
        "Decimal": "str(x) or float(x)",
        "set": "sorted(x) or list(x)",
        "bytes": ".decode()",
        "UUID": "str(x)",
    }
    return f"convert it first: {advice[kind]}, or give json.dumps default=str" if kind in advice else None


def _operands(text: str) -> str | None:
    kinds = set(re.findall(r"(?:'|\"|concatenate )(\w+)", text))
    if "NoneType" in kinds:
        return "one side is None: test for that before, or put another value in its place"
    if "str" in kinds and kinds & {"int", "float"}:
        return "convert one side: str(number) or an f-string for text, int(text) or float(text) for a number"
    if kinds >= {"dict", "list"} or ("str" in kinds and kinds & {"dict", "list"}):
        return (
            "the two sides are of different kinds: take the part you mean, or make text of it with json.dumps"
        )
    return None


def _unhashable(text: str) -> str | None:
    kind = text.rpartition("'")[0].rpartition("'")[2]
    if kind == "slice":
        return "a dict has no order to slice: list(value.items())[:n]"
    if kind in ("dict", "list", "set"):
        return "a key must not change: use a tuple, or text such as json.dumps(value, sort_keys=True)"
    return None


def _bad_number(failed: Failed) -> str | None:
    start = r"(?:invalid literal for int\(\) with base 10|could not convert string to float): "
    found = re.fullmatch(start + "'(.*)'", failed.text)
    if found is None:
        return None
    text = found[1].strip()
    if re.fullmatch(r"-?\d+\.\d+", text):
        return f"it has a fraction: int(float({text!r}))"
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text):
        return 'remove the separators first: text.replace(",", "")'
    if re.fullmatch(r"-?\d[\d.,]*\s*[%A-Za-z€$£]+|[€$£]\s*-?\d[\d.,]*", text):
        return 'take the number out first, for example with re.search(r"-?\\d+(\\.\\d+)?", text)'
    if not text:
        return "the text is empty: test for that before"
    return None


def _not_json(failed: Failed) -> str | None:
    if type(failed.error).__name__ != "JSONDecodeError":
        return None
    document = getattr(failed.error, "doc", "")
    if type(document) is not str:
        return None
    if not document.strip():
        return "the text is empty"
    if failed.text.startswith("Extra data"):
        return "the text holds several values: [json.loads(line) for line in text.splitlines()]"
    if document.lstrip()[:1] in "{[" and "'" in document:
        return "this is not JSON but Python's own notation; JSON has double quotes"
    if document.lstrip()[:1] not in '{["-0123456789tfn':
        return "the text is not JSON; print(text[:200]) shows what it is"
    return None


def _bad_time(failed: Failed) -> str | None:
    if failed.text.startswith("unconverted data remains"):
        return (
            "the format covers the start of the text only; datetime.fromisoformat(text) reads all of ISO 8601"
        )
    if re.search(r"'\d{4}-\d\d-\d\d([T ][\d:.]+.*)?' does not match", failed.text):
        return "this is ISO 8601: datetime.fromisoformat(text) reads it"
    return None


def _import(failed: Failed) -> str | None:
    name = getattr(failed.error, "name", None)
    if type(name) is str and name in failed.around.spaces:
        return f"`{name}` is there without an import: leave the line out"
    found = re.match(r"cannot import name '(\w+)' from", failed.text)
    if found is None:
        return None
    if found[1] in failed.around.names:
        return f"`{found[1]}` is there without an import: leave it out"
    label = _same_member(found[1], failed.around)
    return None if label is None else f"write `await {label}(...)`: tools are there without an import"


def _nested_loop(failed: Failed) -> str | None:
    if failed.text.startswith("asyncio.run() cannot be called"):
        return "write `await main()`: a program may use await anywhere"
    if "await wasn't used with future" in failed.text:
        return "write `await` before the call"
    return None


def _too_deep(_failed: Failed) -> str | None:
    return "the recursion has no end, or is too deep: loop with a list as the stack"


_RULES: Final[Mapping[type, tuple[Rule, ...]]] = {
    UnboundLocalError: (_unbound,),
    NameError: (_name_error,),
    KeyError: (_missing_key,),
    IndexError: (_missing_index,),
    AttributeError: (_missing_attribute,),
    TypeError: (_method_for_key, _wrong_index, _unpacked_dict, _not_usable),
    ValueError: (_bad_number, _not_json, _bad_time, _unpacked_dict),
    ImportError: (_import,),
    RecursionError: (_too_deep,),
    RuntimeError: (_nested_loop,),
}


# ---- words


def _code(node: ast.expr) -> str:
    text = ast.unparse(node).replace("'", '"')
    return text if len(text) <= _MAX_CODE_CHARS else "value"


def _text_keys(value: Any) -> list[str]:
    return [key for key in dict.__iter__(value) if type(key) is str]


def _keys(value: Any) -> str:
    """Say which keys there are, within the bounds."""
    names = [json.dumps(key, ensure_ascii=False) for key in _text_keys(value)]
    if not names:
        return "it is empty" if not value else "its keys are not text"
    shown: list[str] = []
    for name in names[:_MAX_KEYS]:
        if sum(map(len, shown)) + len(name) > _MAX_KEYS_CHARS:
            break
        shown.append(name)
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"its keys are {', '.join(shown)}{more}"


def _described(value: object) -> str:
    if value is None:
        return "None"
    text = repr(value)
    article = "an" if type(value) is int else "a"
    return f"{article} {type(value).__name__}" + (f" ({text})" if len(text) <= _MAX_CODE_CHARS else "")


def _is_json_text(value: str) -> bool:
    text = value.strip()
    return text[:1] + text[-1:] in ("{}", "[]")
