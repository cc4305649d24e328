"""Standard library state that a program could change through an object it may hold: sealed.

Knows: which tables, caches and outputs those are. Does not know: programs.

Some functions that programs call keep their state where a program reaches it: in a cache that trusts the
`__eq__` of a key, in a table handed to a method of the argument, in a list on a class. This changes the
modules of this process, which exists to run programs; what the functions do stays the same.
"""

from __future__ import annotations

import calendar
import csv
import dataclasses
import fractions
import functools
import importlib
import re
import textwrap
import types
import typing
from typing import TYPE_CHECKING, Any

from sandbox.facades import console, futures
from sandbox.facades.exact import exact, on_exact
from sandbox.frozen import frozen_dict, frozen_list

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Iterable, Iterator

_DEBUG = int(re.DEBUG)
_LruCache: Any = functools._lru_cache_wrapper  # noqa: SLF001  # the class has no other name


@functools.cache
def seal() -> None:
    """Seal everything, once per process; before the facades are built from the same modules."""
    _seal_regular_expressions()
    # Not before: importing it makes the C code of `re` look up, once for all, what is replaced there.
    _strptime: Any = importlib.import_module("_strptime")

    _seal_tables()
    _seal_typing()
    _replace(_strptime, "_strptime", on_exact)
    if hasattr(fractions, "_hash_algorithm"):
        # Its cache takes the parts of a fraction for keys, and they may be objects of a subclass of int.
        _replace(fractions, "_hash_algorithm", lambda cached: cached.__wrapped__)
    _replace(csv, "reader", _not_reentered)
    # `prmonth` and its like print to what the process calls its output.
    calendar.__dict__["print"] = console.print_now
    futures.hide_internals()


def _replace(module: Any, name: str, change: Callable[[Any], Any]) -> None:
    setattr(module, name, change(getattr(module, name)))


# ---------------------------------------------------------------------- regular expressions


def _seal_regular_expressions() -> None:
    _replace(re, "_compile", _with_exact_key)
    # The C code of `sub` looks these up by name: 3.11 the first, later versions the second.
    for name in ("_subx", "_compile_template"):
        if hasattr(re, name):
            _replace(re, name, on_exact)
    _replace(re, "_special_chars_map", frozen_dict)
    flag: type[enum.Flag] = re.RegexFlag
    make = flag._missing_

    def missing(cls: type, value: object) -> Any:
        del cls
        return make(exact(value))

    type.__setattr__(flag, "_missing_", classmethod(missing))


def _with_exact_key(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return `re._compile` for exact keys, without the flag that prints to the process's own output."""

    def compile_pattern(pattern: Any, flags: Any) -> Any:
        if type(pattern) is not str:
            pattern = exact(pattern)
        if flags:
            flags = exact(flags) & ~_DEBUG
        elif type(flags) is not int:
            flags = 0
        return original(pattern, flags)

    return compile_pattern


# ---------------------------------------------------------------------- tables


def _seal_tables() -> None:
    wrapper: Any = textwrap.TextWrapper
    wrapper.unicode_whitespace_trans = frozen_dict(wrapper.unicode_whitespace_trans)
    html: Any = calendar.HTMLCalendar
    html.cssclasses = html.cssclasses_weekday_head = frozen_list(html.cssclasses)
    # A mapping proxy hands what is behind it to the reflected operators of the other operand.
    vars(dataclasses)["_EMPTY_METADATA"] = types.MappingProxyType(frozen_dict({}))


# ---------------------------------------------------------------------- typing


def _seal_typing() -> None:
    """Let the caches behind `List[...]` and its like answer only for keys that cannot lie."""
    known = vars(typing).get("_caches", {})
    for function, cached in list(known.items()):
        known[function] = _for_plain_keys(cached)
    for function in _subscript_functions():
        for cell in function.__closure__ or ():
            if isinstance(cell.cell_contents, _LruCache):
                cell.cell_contents = _for_plain_keys(cell.cell_contents)


def _subscript_functions() -> Iterator[types.FunctionType]:
    for holder in list(vars(typing).values()):
        if isinstance(holder, type):
            members = list(vars(holder).values())
        elif isinstance(holder, typing._SpecialForm):  # noqa: SLF001  # the class has no other name
            members = [getattr(holder, "_getitem", None)]
        else:
            members = [holder]
        for member in members:
            function = getattr(member, "__func__", member)
            if isinstance(function, types.FunctionType):
                yield function


def _for_plain_keys(cached: Any) -> Callable[..., Any]:
    original = cached.__wrapped__

    def subscript(*args: Any, **kwargs: Any) -> Any:
        return (cached if not kwargs and _all_plain(args) else original)(*args, **kwargs)

    return subscript


_PLAIN_KEYS = {
    str, int, bool, bytes, type(None), type(...), typing.TypeVar, typing.ParamSpec,
    *(type(form) for form in (typing.Union, typing.List, typing.Tuple, typing.Callable, typing.Literal)),  # noqa: UP006  # the aliases themselves are meant
}  # fmt: skip


def _all_plain(keys: Iterable[Any]) -> bool:
    return all(
        isinstance(key, type) or type(key) in _PLAIN_KEYS or (type(key) is tuple and _all_plain(key))
        for key in keys
    )


# ---------------------------------------------------------------------- csv


def _not_reentered(reader: Callable[..., Any]) -> Callable[..., Any]:
    """Return `csv.reader` for lines that cannot ask the same reader for its next row.

    Its C code keeps the row it is reading where an inner call takes it away. A generator refuses to be
    resumed while it runs.
    """

    @functools.wraps(reader)
    def read_rows(csvfile: Iterable[str], /, *args: Any, **kwargs: Any) -> Any:
        return reader(_lines(iter(csvfile)), *args, **kwargs)

    return read_rows


def _lines(source: Iterator[str]) -> Iterator[str]:
    yield from source
