"""From source text to a code object, or to refusals: the front of the policy.

Knows: the steps and their errors. Does not know: what is allowed, objects, the worker.
"""

from __future__ import annotations
import __future__

import ast
import re
import warnings
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from sandbox.policy import names, slips
from sandbox.policy.nodes import hook, place
from sandbox.policy.refusals import MAX_REFUSALS, ProgramRefusedError, Refusal
from sandbox.policy.scopes import ScopeTree
from sandbox.policy.transform import PolicyTransformer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

PROGRAM_FILE = "<program>"
"""The file name of a program's code, by which its frames are told from the sandbox's own."""

DOCSTRINGS = names.HOOK_PREFIX + "docstrings"
"""The global under which a program that imports `doctest` has its docstrings."""

_QUALIFIED_PREFIX = names.ENTRY_NAME + ".<locals>."
_IGNORE_ALL = ("ignore", None, Warning, None, 0)
"""What `warnings.simplefilter("ignore")` puts first, as a process does that runs programs only."""
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program that may start.

    Execute `code` in the globals of `sandbox.guards.build_globals`; it binds one coroutine function under
    `entry_name`. Its coroutine returns None (no result) or a `ProgramResult`.
    """

    code: CodeType
    entry_name: str = names.ENTRY_NAME


def compile_program(
    source: str,
    *,
    provided: frozenset[str] = frozenset(),
    star_names: Mapping[str, tuple[str, ...]] | None = None,
    file_name: str = PROGRAM_FILE,
) -> CompiledProgram:
    """Compile one program under the policy.

    Args:
        source: The program, the body of an async function. Any text at all.
        provided: Names bound before the program starts, besides the builtins, so that it may rebind them.
        star_names: For each module the names `from module import *` binds; the facades' own by default.
        file_name: The file its frames name.

    Raises:
        ProgramRefusedError: The text is not Python, or not the language. Nothing else is raised, whatever
        the text.
    """
    return _refusing_only(
        source,
        lambda: _compile(
            source.removeprefix("\ufeff"),
            provided,
            _facade_star_names() if star_names is None else star_names,
            file_name,
        ),
    )


def compile_example(source: str, file_name: str) -> CompiledProgram:
    """Compile a few lines as a console takes them: expressions are shown, and every name is a global.

    Raises:
        ProgramRefusedError: As for a program.
    """
    return _refusing_only(source, lambda: _compile_example(source, file_name))


def _refusing_only(source: str, compiling: Callable[[], CompiledProgram]) -> CompiledProgram:
    try:
        if warnings.filters[:1] == [_IGNORE_ALL]:
            return compiling()
        with warnings.catch_warnings():
            # A doubtful escape sequence in a program is not worth a line on the worker's stderr.
            warnings.simplefilter("ignore")
            return compiling()
    except ProgramRefusedError:
        raise
    except SyntaxError as error:
        raise _from_syntax_error(source, error) from None
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        column = error.start - source.rfind("\n", 0, error.start)
        raise _refused(
            line,
            column,
            "the source holds half of a surrogate pair, which is not a character",
            slips.SURROGATE,
        ) from None
    except (RecursionError, MemoryError):
        raise _refused(
            1, 1, "the program is nested too deeply, or one expression is too long", slips.TOO_DEEP
        ) from None
    except (ValueError, OverflowError, SystemError) as error:
        line = source.count("\n", 0, source.find("\0")) + 1 if "\0" in source else 1
        raise _refused(line, 1, str(error), None) from None


def _refused(
    line: int, column: int, message: str, hint: str | None, error_type: str = "SyntaxError"
) -> ProgramRefusedError:
    return ProgramRefusedError((Refusal(line, column, message, hint),), error_type)


def _from_syntax_error(source: str, error: SyntaxError) -> ProgramRefusedError:
    line = max(error.lineno or 1, 1)
    column = max(error.offset or 1, 1)
    message = error.msg or "invalid syntax"
    lines = _LINE_END.split(source)
    text = lines[line - 1] if line <= len(lines) else ""
    return _refused(line, column, message, slips.hint_for(message, text, source), type(error).__name__)


def _facade_star_names() -> Mapping[str, tuple[str, ...]]:
    # Imported late: the facades load every module a program may use, and checking a source alone does not
    # need them.
    from sandbox.facades.catalogue import star_names  # noqa: PLC0415

    return star_names()


def _compile(
    source: str, provided: frozenset[str], star_names: Mapping[str, tuple[str, ...]], file_name: str
) -> CompiledProgram:
    source.encode()
    tree = ast.parse(source, file_name, "exec")
    body = tree.body
    docstring = ast.get_docstring(tree, clean=False)
    documented = "doctest" in source and _imports_doctest(tree)
    docstrings = docstrings_of(tree) if documented else ()
    _keep_own_dunders(tree, source)
    flags, keep_annotations = _take_future_imports(body)
    if "import" in source:
        _expand_star_imports(tree, star_names)
    _return_last_value(body)
    # Examples see every name of the program, so each must be a global.
    scopes = ScopeTree(body, provided, share_all=documented)
    _transform(body, scopes, source, keep_annotations=keep_annotations)
    shared = scopes.shared & (scopes.program.bindings.keys() | scopes.program.loads)
    given: dict[str, Any] = {DOCSTRINGS: docstrings} if documented else {}
    if docstring is not None and "__doc__" in source:
        given["__doc__"] = docstring
    for name, value in given.items():
        assignment = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
        body.insert(0, place(assignment, _first_place()))
        shared.add(name)
    return _finished(body, shared, flags, file_name)


def _compile_example(source: str, file_name: str) -> CompiledProgram:
    source.encode()
    tree = ast.parse(source, file_name, "exec")
    _keep_own_dunders(tree, source)
    for node in list(_own_level(tree.body)):
        if isinstance(node, ast.Expr):
            node.value = place(ast.Call(hook("display"), [node.value], []), node)
    scopes = ScopeTree(tree.body, frozenset(), share_all=True)
    _transform(tree.body, scopes, source, keep_annotations=False)
    return _finished(tree.body, scopes.shared & scopes.program.bindings.keys(), 0, file_name)


def _transform(body: list[ast.stmt], scopes: ScopeTree, source: str, *, keep_annotations: bool) -> None:
    transformer = PolicyTransformer(scopes, _LINE_END.split(source), keep_annotations=keep_annotations)
    transformer.visit_program(body)
    if transformer.refusals:
        refusals = tuple(
            sorted(
                set(transformer.refusals), key=lambda refusal: (refusal.line, refusal.column, refusal.message)
            )
        )
        raise ProgramRefusedError(refusals[:MAX_REFUSALS], "PolicyError")


def _finished(body: list[ast.stmt], shared: set[str], flags: int, file_name: str) -> CompiledProgram:
    code = compile(_wrap(body, shared), file_name, "exec", flags=flags, dont_inherit=True, optimize=0)
    return CompiledProgram(_as_module_level(code))


def _imports_doctest(tree: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.Import) and any(alias.name == "doctest" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "doctest")
        for node in ast.walk(tree)
    )


def docstrings_of(tree: ast.Module) -> tuple[tuple[str, int, str], ...]:
    """Return (qualified name, line of its docstring, docstring) of the program, its functions and classes.

    What has none is listed with an empty one. A later definition replaces an earlier one of its name.
    """
    found: dict[str, tuple[str, int, str]] = {"": _documented("", tree)}

    def look(body: Iterable[ast.AST], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + node.name
                found[name] = _documented(name, node)
                if isinstance(node, ast.ClassDef):
                    look(node.body, name + ".")
            elif not isinstance(node, ast.expr):
                look(ast.iter_child_nodes(node), prefix)

    look(tree.body, "")
    return tuple(found.values())


def _documented(
    name: str, node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> tuple[str, int, str]:
    return name, node.body[0].lineno if node.body else 1, ast.get_docstring(node, clean=False) or ""


def _take_future_imports(body: list[ast.stmt]) -> tuple[int, bool]:
    """Remove leading `__future__` imports, which may not stand in a function; return their flags."""
    flags = 0
    position = 1 if body and _is_docstring(body[0]) else 0
    while position < len(body):
        statement = body[position]
        if not (
            isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level
        ):
            break
        for alias in statement.names:
            feature = getattr(__future__, alias.name, None)
            if not isinstance(feature, __future__._Feature) or alias.name == "barry_as_FLUFL":  # noqa: SLF001  # the type of every feature
                raise SyntaxError(
                    f"future feature {alias.name} is not defined",
                    (PROGRAM_FILE, alias.lineno, alias.col_offset + 1, None),
                )
            flags |= feature.compiler_flag
        del body[position]
    return flags, bool(flags & __future__.annotations.compiler_flag)


def _keep_own_dunders(tree: ast.Module, source: str) -> None:
    """Rename the dunder names that mean nothing to Python, so that they never will."""
    if not any(map(names.is_own_dunder, _DUNDER.findall(source))):
        return
    for node in ast.walk(tree):
        for field in _NAME_FIELDS:
            value = getattr(node, field, None)
            if type(value) is str and not (field == "name" and isinstance(node, ast.alias)):
                setattr(node, field, names.own_dunder(value))
        for field in ("names", "kwd_attrs"):
            listed = getattr(node, field, None)
            if isinstance(listed, list) and listed and type(listed[0]) is str:
                setattr(node, field, [names.own_dunder(name) for name in listed])


_DUNDER = re.compile(r"\b__\w+__\b")
_NAME_FIELDS = ("id", "attr", "name", "arg", "asname", "rest")
"""Fields of syntax nodes that hold one name; of an import only what it binds is the program's to choose."""


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _expand_star_imports(tree: ast.Module, star_names: Mapping[str, tuple[str, ...]]) -> None:
    """Spell out star imports at the program's own level, with the names the program uses."""
    used: set[str] | None = None
    for statement in _own_level(tree.body):
        if not (
            isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*" and not statement.level
        ):
            continue
        available = star_names.get(statement.module or "")
        if used is None:
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        wanted = [ast.alias(name=name, asname=None) for name in available or () if name in used]
        if not wanted:
            # Import something under a name nobody can spell: a module that is not there must say so when
            # the statement is executed, and one that is there binds nothing the program uses.
            some = available[0] if available else "any"
            wanted = [ast.alias(name=some, asname=names.HOOK_PREFIX + "star")]
        statement.names = [ast.copy_location(alias, statement) for alias in wanted]


_NO_OWN_LEVEL = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)
"""What holds no statements of the level it stands on."""


def _own_level(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements that are executed at the program's own level, nested ones as well."""
    for node in body:
        if not isinstance(node, _NO_OWN_LEVEL):
            yield node
            yield from _own_level(ast.iter_child_nodes(node))


def _return_last_value(body: list[ast.stmt]) -> None:
    """Without a `return`, return the value of a last statement that is an expression or sets one name."""
    if not body or any(_holds_return(statement) for statement in body):
        return
    last = body[-1]
    if isinstance(last, ast.Expr):
        if isinstance(last.value, ast.Constant) and last.value.value is None:
            body[-1] = place(ast.Return(ast.Call(hook("explicit"), [last.value], [])), last)
        else:
            body[-1] = place(ast.Return(ast.Call(hook("implicit"), [last.value], [])), last)
        return
    name: ast.expr | None = None
    if isinstance(last, ast.Assign) and len(last.targets) == 1:
        name = last.targets[0]
    elif isinstance(last, ast.AnnAssign) and last.value is not None:
        name = last.target
    if isinstance(name, ast.Name):
        body.append(place(ast.Return(ast.Call(hook("implicit"), [ast.Name(name.id, ast.Load())], [])), last))


def _holds_return(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, _NO_OWN_LEVEL):
        return False
    return any(_holds_return(child) for child in ast.iter_child_nodes(node))


def _first_place() -> ast.Pass:
    return ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _wrap(body: list[ast.stmt], shared: set[str]) -> ast.Module:
    start = _first_place()
    statements: list[ast.stmt] = [place(ast.Global(sorted(shared)), start)] if shared else []
    statements.extend(body)
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.AsyncFunctionDef(
        name=names.ENTRY_NAME, args=arguments, body=statements or [start], decorator_list=[], returns=None
    )
    if "type_params" in function._fields:
        setattr(function, "type_params", [])  # noqa: B010  # new in 3.12, which the type checker does not assume
    function.lineno = function.end_lineno = 1
    function.col_offset = function.end_col_offset = 0
    return ast.Module(body=[function], type_ignores=[])


def _as_module_level(code: CodeType) -> CodeType:
    """Make names of classes and functions read as if the program were a module, not a function's body."""

    def fix(constant: object, owner: CodeType) -> object:
        if isinstance(constant, CodeType):
            return _as_module_level(constant)
        # A class body stores its own qualified name from a constant.
        if (
            isinstance(constant, str)
            and constant == owner.co_qualname
            and constant.startswith(_QUALIFIED_PREFIX)
        ):
            return constant.removeprefix(_QUALIFIED_PREFIX)
        return constant

    constants = tuple(fix(constant, code) for constant in code.co_consts)
    return code.replace(co_consts=constants, co_qualname=code.co_qualname.removeprefix(_QUALIFIED_PREFIX))
