"""Every module a program can import, and why others are refused.

Knows: the facades, what lies behind a refused name. Does not know: how an import statement is executed.
"""

from __future__ import annotations

import abc
import codecs
import collections
import contextlib
import csv
import datetime as dt
import decimal
import difflib
import fractions
import functools
import json
import random
import string
import time
import types
import typing
from typing import Any

from sandbox.facades import (
    appearance,
    asyncio_facade,
    console,
    containers,
    enumerations,
    functions,
    inner,
    jsontext,
    plain,
    randomness,
    records,
    regular,
    seals,
    texts,
    typed,
    zones,
)
from sandbox.guards.classes import OPEN_BASES
from sandbox.guards.exposure import PUBLISHED
from sandbox.guards.readonly import FrozenModule, members_of

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

PER_PROGRAM = ("contextlib", "pprint", "random", "sys")
"""Modules built anew for each program, because they hold its streams or its random state."""

# Which tool does it instead depends on the run, so a run says it.
_FILE_HINT = "programs have no file system"
_NETWORK_HINT = "programs have no network"
_PROCESS_HINT = "programs cannot start processes"
_THREAD_HINT = "there are no threads; run awaitables concurrently with asyncio.gather"
_DATA_HINT = "third-party packages are not installed; use lists and dicts with statistics, math, csv and json"
_INTROSPECTION_HINT = "programs cannot inspect the interpreter; keep what you need in variables"

HINTS: dict[str, str] = {
    **dict.fromkeys(
        (
            "os",
            "pathlib",
            "shutil",
            "tempfile",
            "glob",
            "fnmatch",
            "fileinput",
            "sqlite3",
            "zipfile",
            "tarfile",
        ),
        _FILE_HINT,
    ),
    **dict.fromkeys(
        (
            "requests",
            "httpx",
            "aiohttp",
            "urllib3",
            "http",
            "socket",
            "ssl",
            "ftplib",
            "smtplib",
            "urllib.request",
            "bs4",
            "websockets",
        ),
        _NETWORK_HINT,
    ),
    **dict.fromkeys(("subprocess", "multiprocessing", "pty", "signal", "sh"), _PROCESS_HINT),
    **dict.fromkeys(("concurrent", "concurrent.futures", "_thread", "trio", "anyio"), _THREAD_HINT),
    **dict.fromkeys(("numpy", "pandas", "scipy", "sklearn", "matplotlib", "polars"), _DATA_HINT),
    **dict.fromkeys(
        ("gc", "traceback", "dis", "ctypes", "importlib", "builtins", "__main__"),
        _INTROSPECTION_HINT,
    ),
    "pickle": "use json.dumps and json.loads",
    "marshal": "use json.dumps and json.loads",
    "yaml": "use json, or parse the lines by hand",
    "argparse": "a program has no command line; put its input into variables",
    "getpass": "a program cannot ask anybody; put its input into variables",
    "warnings": "use print()",
    "weakref": "keep ordinary references; a program ends with its run",
}
"""What to use instead of a module that is not here."""


@functools.cache
def shared_modules() -> dict[str, FrozenModule]:
    """Return the facades that every program of this process shares, built once."""
    seals.seal()
    members: dict[str, dict[str, object]] = {
        **plain.plain_members(),
        "abc": typed.abc_members(),
        "ast": texts.ast_members(),
        "asyncio": asyncio_facade.asyncio_members(),
        "codecs": texts.codecs_members(),
        "copy": containers.copy_members(),
        "dataclasses": records.dataclasses_members(),
        "enum": enumerations.enum_members(),
        "functools": functions.functools_members(),
        "heapq": containers.heapq_members(),
        "json": jsontext.json_members(),
        "operator": functions.operator_members(),
        "re": regular.re_members(),
        "secrets": randomness.secrets_members(),
        "types": typed.types_members(),
        "typing": typed.typing_members(),
        "uuid": randomness.uuid_members(),
        "zoneinfo": zones.zoneinfo_members(),
    }
    members["collections"]["namedtuple"] = containers.namedtuple
    for module, listed in members.items():
        appearance.named_members(module, listed)
    missing = {"asyncio": asyncio_facade.MISSING, "ast": texts.AST_MISSING}
    modules = {name: FrozenModule(name, listed, missing.get(name)) for name, listed in members.items()}
    for name in sorted(modules, reverse=True):
        package, _, leaf = name.rpartition(".")
        if package:
            parent = modules.get(package)
            known = {} if parent is None else {item: getattr(parent, item) for item in members_of(parent)}
            modules[package] = FrozenModule(package, {**known, leaf: modules[name]})
    _publish(modules)
    return modules


def program_modules(streams: console.Console) -> dict[str, FrozenModule]:
    """Return the facades that belong to one program."""
    members = {
        "contextlib": console.contextlib_members(streams),
        "pprint": console.pprint_members(streams),
        "random": randomness.random_members(),
        "sys": console.sys_members(streams),
    }
    for module, listed in members.items():
        appearance.named_members(module, listed)
    return {module: FrozenModule(module, listed) for module, listed in members.items()}


def random_module() -> FrozenModule:
    """Return `random` for one program, seeded now: made ahead, all programs would draw the same numbers."""
    return FrozenModule("random", randomness.random_members())


@functools.cache
def module_names() -> tuple[str, ...]:
    """Return the names of every importable module, sorted."""
    return tuple(sorted({*shared_modules(), *PER_PROGRAM, *inner.NAMES}))


@functools.cache
def star_names() -> Mapping[str, tuple[str, ...]]:
    """Return, for each module, the names `from module import *` binds."""
    streams = console.Console(lambda stream, text: None)
    modules = {**shared_modules(), **program_modules(streams)}
    members = {**{name: members_of(module) for name, module in modules.items()}, **offered_by_inner()}
    return {name: tuple(item for item in listed if item[:1] != "_") for name, listed in members.items()}


def offered_by_inner() -> dict[str, list[str]]:
    """Return what each of the modules offers that are programs themselves."""
    return {name: list(inner.offered(name)) for name in inner.NAMES}


def warm_up() -> None:
    """Do, before a worker loses the file system, whatever the standard library puts off to first use."""
    shared_modules()
    inner.read_texts()
    zones.load_zones()
    dt.datetime.strptime("2024-01-01", "%Y-%m-%d")  # noqa: DTZ007  # only to import what it needs
    time.strptime("2024-01-01", "%Y-%m-%d")
    for codec in (
        "latin-1",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "utf-32",
        "cp1252",
        "ascii",
        "idna",
        "punycode",
        "utf-8-sig",
        "cp437",
        "utf-7",
        "iso8859-15",
        "unicode_escape",
        "raw_unicode_escape",
        "shift_jis",
        "gbk",
        "big5",
        "euc_jp",
        "koi8-r",
    ):
        "a".encode(codec)
    for transform in ("rot13", "hex"):
        codecs.lookup(transform)
    "\N{LATIN SMALL LETTER A}".encode("ascii", "namereplace")


_OPEN: tuple[Any, ...] = (
    # Data.
    object, int, float, complex, str, bytes, bytearray, list, dict, set, frozenset, tuple,
    collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter,
    collections.ChainMap, collections.UserDict, collections.UserList, types.SimpleNamespace,
    decimal.Decimal, fractions.Fraction, dt.date, dt.datetime, dt.time, dt.timedelta, dt.tzinfo,
    # Abstract bases.
    abc.ABC, typing.Generic, typing.Protocol, *enumerations.ENUM_BASES,
    # Made to be extended.
    json.JSONEncoder, json.JSONDecoder, string.Template, csv.Dialect, csv.excel, random.Random, property,
    contextlib.ContextDecorator, contextlib.AsyncContextDecorator, contextlib.AbstractContextManager,
    contextlib.AbstractAsyncContextManager, difflib.SequenceMatcher,
)  # fmt: skip
_TYPED_DICT: Any = typing.TypedDict
_ENTRY_CLASSES = (*typed.NAMED_TUPLE_BASES, *_TYPED_DICT.__mro_entries__((_TYPED_DICT,)))
"""The hidden classes that `class X(NamedTuple)` and `class X(TypedDict)` really inherit from."""

_RESULT_CLASSES: tuple[type, ...] = (
    type({}.keys()), type({}.values()), type({}.items()), type(iter([])), type(iter(())), type(iter("")),
    type(iter({})), type(zip()), type(map(abs, ())), type(filter(None, ())), type(enumerate(())),
    type(reversed([])), type(range(0)), type(None),
    type(...), type(NotImplemented), type(csv.reader([])), time.struct_time,
)  # fmt: skip
"""Classes of ordinary results: harmless to hold, pleasant to name."""


def _publish(modules: Mapping[str, FrozenModule]) -> None:
    OPEN_BASES.update(_OPEN)
    OPEN_BASES.update(_ENTRY_CLASSES)
    for module in modules.values():
        for name in members_of(module):
            member = getattr(module, name)
            if isinstance(member, type) and not issubclass(member, type):
                PUBLISHED.add(member)
                if isinstance(member, abc.ABCMeta) and module is not modules["asyncio"]:
                    OPEN_BASES.add(member)
                if issubclass(member, BaseException):
                    OPEN_BASES.add(member)
    PUBLISHED.update(_RESULT_CLASSES)
    PUBLISHED.update(_OPEN)
