"""Walks everything a program can reach, and calls what it finds with awkward arguments.

Edges are what the policy leaves native (public names without a guard), what the guards yield, items of
containers, and results of calls. The walk reports every object that no program may hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.machinery
import io
import signal
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.guards import attributes, exposure, ownership
from sandbox.guards.readonly import FrozenModule, members_of
from sandbox.policy import names

_FORBIDDEN = (
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    asyncio.AbstractEventLoop,
    importlib.machinery.ModuleSpec,
    importlib.machinery.BuiltinImporter,
    io.FileIO,
    io.BufferedWriter,
    io.TextIOWrapper,
)
_SKIPPED_CALLS = frozenset(
    {
        "exit",
        "quit",
        "_exit",
        "sleep",
        "print",
        "pprint",
        "pp",
        "input",
        "setrecursionlimit",
        "run",
        "breakpoint",
        "field_size_limit",
    }
)
_ATOMS = (int, float, complex, str, bytes, bool, type(None))


_SAMPLES = 3
"""Objects of one kind that are walked; the rest are only looked at."""


def _kind(value: Any) -> Any:
    """What makes two objects alike for the walk: classes and functions are themselves, methods their name
    and receiver's class."""
    if isinstance(value, type | FrozenModule):
        return id(value)
    qualname = getattr(value, "__qualname__", None)
    if isinstance(value, types.MethodType | types.BuiltinMethodType | types.MethodWrapperType):
        return type(value), qualname, type(value.__self__)
    if isinstance(value, types.FunctionType):
        return types.FunctionType, value.__module__, qualname
    return type(value), qualname if isinstance(qualname, str) else None


class Item:
    """A class of the program with the attributes trusted code likes to use."""

    maps = [(), {"__add__": None}]  # noqa: RUF012  # bait
    data: Any = []  # noqa: RUF012  # bait
    value = 1


def permitted(ob: Any) -> Iterator[tuple[str, Any]]:
    """Yield every attribute of `ob` that some program text reads."""
    try:
        listed = members_of(ob) if isinstance(ob, FrozenModule) else dir(ob)
    except Exception:  # noqa: BLE001  # attributes may raise anything
        return
    for name in {*listed, *names.READABLE_ATTRIBUTES}:
        if name[:1] == names.HOOK_PREFIX:
            continue
        native = name[:1] != "_" and name not in names.GUARDED_PUBLIC and not names.is_inspection_like(name)
        try:
            value = getattr(ob, name) if native else attributes.read(ob, name)
        except Exception:  # noqa: BLE001  # as above
            continue
        yield name, value


def forbidden(ob: Any) -> str | None:
    """Say why a program may not hold `ob`."""
    if isinstance(ob, _FORBIDDEN):
        return f"a {type(ob).__name__}"
    if isinstance(ob, type) and issubclass(ob, type) and not isinstance(ob, type(exposure.type_stand_in)):
        return f"the metaclass {ob!r}"
    if type(ob) is types.FunctionType and ob.__name__ == "__build_class__":
        return "class building"
    return None


class Walk:
    """One walk from a set of roots."""

    def __init__(self, roots: Mapping[str, Any], *, calls: int) -> None:
        self.found: list[str] = []
        self.visited = 0
        self.called = 0
        self._calls = calls
        self._seen: dict[int, Any] = {}
        self._queue: deque[tuple[str, Any, int]] = deque()
        self._kinds: dict[Any, int] = {}
        for name, value in roots.items():
            self._add(name, value, 0)

    def _add(self, path: str, value: Any, depth: int) -> None:
        if isinstance(value, _ATOMS) or id(value) in self._seen or depth > 6:
            return
        reason = forbidden(value)
        if reason is not None:
            self.found.append(f"{path}: {reason}")
            return
        self._seen[id(value)] = value
        kind = _kind(value)
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] <= _SAMPLES:
            self._queue.append((path, value, depth))

    def run(self) -> None:
        """Walk until nothing new is found."""
        while self._queue:
            path, value, depth = self._queue.popleft()
            self.visited += 1
            for name, attribute in permitted(value):
                self._add(f"{path}.{name}", attribute, depth + 1)
            if isinstance(value, list | tuple | set | frozenset | deque):
                for number, item in enumerate(list(value)[:50]):
                    self._add(f"{path}[{number}]", item, depth + 1)
            elif isinstance(value, dict | types.MappingProxyType):
                for key, item in list(value.items())[:50]:
                    self._add(f"{path}.key", key, depth + 1)
                    self._add(f"{path}[{key!r}]", item, depth + 1)
            if depth < self._calls and callable(value):
                self._call(path, value, depth)

    def _call(self, path: str, function: Any, depth: int) -> None:
        name = getattr(function, "__name__", "")
        if name in _SKIPPED_CALLS:
            return
        for args in (
            (),
            (Item,),
            (int,),
            (Item(),),
            ("ab",),
            (2,),
            ([1, 2],),
            (Item, "X"),
            (Item, Item),
            (lambda *a: None,),
            ("a", []),
        ):
            self.called += 1
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            try:
                with contextlib.suppress(Exception, SystemExit, GeneratorExit, asyncio.CancelledError):
                    result = function(*args)
                    if asyncio.iscoroutine(result):
                        result.close()
                        result = None
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    self._add(f"{path}({', '.join(map(_short, args))})", result, depth + 1)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)


def _short(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__


class TooSlowError(Exception):
    """One call of the walk took too long."""


def _interrupt(signum: int, frame: Any) -> None:
    raise TooSlowError


def walk(roots: Mapping[str, Any], *, calls: int) -> Walk:
    """Walk from `roots` with up to `calls` levels of calls."""
    ownership.mark_class(Item)
    signal.signal(signal.SIGALRM, _interrupt)
    result = Walk(roots, calls=calls)
    result.run()
    return result
