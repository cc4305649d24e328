"""The globals of one program: its builtins, its hooks, its bindings.

Knows: which builtins there are. Does not know: tools, the wire.
"""

from __future__ import annotations

import array
import builtins
import collections
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from sandbox.facades import catalogue, console, inner
from sandbox.facades.appearance import named, renamed
from sandbox.facades.console import Console
from sandbox.facades.functions import guarded_getattr
from sandbox.guards import attributes, classes, examples, exposure, hardening, ownership
from sandbox.guards.imports import make_import
from sandbox.guards.readonly import FrozenModule, members_of
from sandbox.policy import names, results
from sandbox.values import FrozenDict, FrozenList

Write = Callable[[str, str], None]

_PLAIN_BUILTINS = [
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "complex",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "format",
    "frozenset",
    "hash",
    "hex",
    "id",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "ord",
    "pow",
    "property",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "tuple",
    "zip",
    "NotImplemented",
    "Ellipsis",
    "__build_class__",
]

_EXCEPTIONS = tuple(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and name[:1] != "_"
)

UNAVAILABLE: dict[str, tuple[type[Exception], str]] = {
    "open": (
        PermissionError,
        "open() is not available: programs have no file system; io.StringIO holds text in memory",
    ),
    "input": (EOFError, "input() is not available: nobody is there to answer. Put the value into a variable"),
    **{name: (RuntimeError, f"{message}; {hint}") for name, (message, hint) in names.REFUSED_CALLS.items()},
    "help": (RuntimeError, "help() is not available; print(obj.__doc__) shows a docstring"),
}
"""Builtins that exist only to say what to do instead."""


def build_globals(
    *,
    bindings: Mapping[str, object] | None = None,
    stdout_write: Write,
    modules: Mapping[str, object] | None = None,
    hints: Mapping[str, str] | None = None,
    substitutes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the complete globals for one program.

    Args:
        bindings: Names bound before the program starts, such as `tools`. A program may inherit from the
            exception classes among them.
        stdout_write: Takes (`stdout` or `stderr`, text) for everything printed.
        modules: Importable modules besides the facades, by full name.
        hints: For names of `UNAVAILABLE`, what to use instead with the tools this run really has.
        substitutes: The same for modules that are not there.
    """
    prepare()
    blank = _blanks.pop() if _blanks else _new_blank()
    program, importable, available = blank.program, blank.importable, blank.available
    blank.streams.connect(stdout_write)
    console.install(blank.streams)
    importable["random"] = catalogue.random_module()
    importable.update(modules or {})
    for name, hint in (hints or {}).items():
        if name in UNAVAILABLE:
            available[name] = _unavailable(name, UNAVAILABLE[name][0], hint)
    available["__import__"] = make_import(importable, substitutes, (bindings or {}).keys())
    for value in (bindings or {}).values():
        if isinstance(value, type) and issubclass(value, BaseException):
            classes.OPEN_BASES.add(value)
            exposure.PUBLISHED.add(value)
    program.update(bindings or {})
    return program


class _Blank(NamedTuple):
    """What a program's globals are made of that does not depend on the program."""

    program: dict[str, Any]
    streams: Console
    importable: dict[str, Any]
    available: dict[str, Any]


_blanks: list[_Blank] = []
"""Made ahead, each for one program."""


def prepare_blanks(count: int) -> None:
    """Make the unchanging part of so many programs' globals ahead.

    For a process that forks: putting an object into a table writes to the object, so a child that did it
    would have to copy the pages of every builtin and facade.
    """
    prepare()
    _blanks.extend(_new_blank() for _ in range(count))


def _new_blank() -> _Blank:
    streams = Console(_nowhere)
    importable: dict[str, Any] = {**catalogue.shared_modules(), **catalogue.program_modules(streams)}
    available = _builtins(streams)
    hooks = {
        "type": type,
        "owned": ownership.OWNED,
        "receivers": ownership.RECEIVERS,
        "guard": attributes.guard,
        "proxy": attributes.Guarded,
        "getattr": attributes.read,
        "setattr": attributes.write,
        "typeof": exposure.type_of,
        "super": checked_super,
        "class": classes.plain_builder,
        "abstract_class": classes.abstract_builder,
        "explicit": results.explicit,
        "implicit": results.implicit,
        "display": _displayer(streams),
    }
    own = {
        "__builtins__": available,
        "__name__": "__main__",
        "__doc__": None,
        **{names.HOOK_PREFIX + name: value for name, value in hooks.items()},
    }
    program = dict(own)
    for name in inner.NAMES:
        given = examples.helpers(program) if name == "doctest" else {}
        importable.setdefault(name, inner.InnerModule(name, own, given))
    return _Blank(program, streams, importable, available)


def _nowhere(_stream: str, _text: str) -> None:
    """Drop what is written before a program is there."""


def builtin_names() -> tuple[str, ...]:
    """Return the names a program finds without importing, sorted; the unavailable ones left out."""
    streams = Console(_nowhere)
    return tuple(
        sorted(name for name in _builtins(streams) if name not in UNAVAILABLE and not names.is_dunder(name))
    )


def _builtins(streams: Console) -> dict[str, Any]:
    available: dict[str, Any] = {name: getattr(builtins, name) for name in (*_PLAIN_BUILTINS, *_EXCEPTIONS)}
    for name, (error, message) in UNAVAILABLE.items():
        available[name] = _unavailable(name, error, message)
    available.update(
        {
            "super": super,
            "type": exposure.type_stand_in,
            "print": console.print_function(streams),
            "getattr": guarded_getattr,
            "hasattr": _hasattr,
            "setattr": _setattr,
            "delattr": _delattr,
            "dir": _dir,
            "exit": _exit,
            "quit": _exit,
            "__debug__": True,
        }
    )
    for name in ("getattr", "hasattr", "setattr", "delattr", "dir", "exit"):
        named(available[name], name)
    return available


def _displayer(streams: Console) -> Callable[[Any], None]:
    def display(value: Any) -> None:
        if value is not None:
            streams.print(repr(value))

    return display


def _unavailable(name: str, error: type[Exception], message: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        del kwargs
        if name == "input" and args:
            # What is asked is printed, whoever is there to answer.
            console.print_now(args[0], end="")
        raise error(message)

    named(refuse, name)
    return refuse


def _exit(code: Any = None, /) -> NoReturn:
    raise SystemExit(code)


def _hasattr(ob: Any, name: Any, /) -> bool:
    try:
        attributes.read(ob, name, literal=False)
    except AttributeError:
        return False
    return True


def _setattr(ob: Any, name: Any, value: Any, /) -> None:
    attributes.write(ob, name, value)


def _delattr(ob: Any, name: Any, /) -> None:
    attributes.delete(ob, name)


def _dir(*args: Any) -> list[str]:
    if len(args) != 1:
        raise TypeError("dir() takes one object here; keep your own values in a dict")
    if isinstance(args[0], FrozenModule):
        return members_of(args[0])
    private = attributes.is_program_object(args[0])
    return [
        names.as_written(name)
        for name in dir(args[0])
        if name[:1] != names.HOOK_PREFIX and (private or name[:1] != "_")
    ]


def checked_super(*args: Any) -> Any:
    """`super(Class, obj)` for classes of the program; the form without arguments is native."""
    if len(args) != 2:
        raise TypeError("super() needs the class and the object here; inside a method write super()")
    if not (isinstance(args[0], type) and ownership.is_program_class(args[0])):
        raise TypeError("super() works on classes of this program")
    return super(*args)


named(checked_super, "super")
renamed({classes.ClassBuilder: "type"})


@functools.cache
def prepare() -> None:
    """Build and publish what the programs of this process share, before a worker is locked down."""
    catalogue.warm_up()
    exception_types = {getattr(builtins, name) for name in _EXCEPTIONS}
    plain_types = {value for name in _PLAIN_BUILTINS if isinstance(value := getattr(builtins, name), type)}
    exposure.PUBLISHED.update(exception_types | plain_types)
    classes.OPEN_BASES.update(exception_types - {BaseExceptionGroup, ExceptionGroup})
    hardening.harden(exposure.PUBLISHED | classes.OPEN_BASES)
    ownership.RECEIVERS.update(_INSTANCE_RECEIVERS)


_INSTANCE_RECEIVERS: frozenset[type] = frozenset(
    {
        list, dict, set, bytearray, str, bytes, int, tuple, frozenset, type(None), FrozenDict, FrozenList,
        array.array, collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter,
    }
)  # fmt: skip
"""Builtin types whose instances are never classes, so that a mutating method read from one is bound to it."""
