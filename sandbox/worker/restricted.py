"""The language behind its wall: policy, guards and facades, as a run needs them.

Knows: how the three are put together. Does not know: their rules.
"""

from __future__ import annotations

import asyncio
import functools
from collections import ChainMap
from typing import TYPE_CHECKING, Any

from sandbox import advice, diagnostics, guards, policy
from sandbox.advice import Surroundings
from sandbox.facades import asyncio_facade, catalogue
from sandbox.guards.readonly import FrozenModule
from sandbox.preflight import finder
from sandbox.values import FrozenDict, FrozenList
from sandbox.worker.namespaces import as_coroutine, start_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType

    from sandbox.preflight.finder import CertainError
    from sandbox.preflight.spaces import Space
    from sandbox.worker.loop import WireLoop

PROGRAM_FILE = policy.PROGRAM_FILE

# The fork server imports this module while it still has a file system:
# modules and time zones are loaded now or never.
guards.prepare()

_Gathering: type = asyncio.tasks._GatheringFuture  # type: ignore[attr-defined]  # noqa: SLF001  # what gather gives

# A program knows these as what they are to it; the names of the classes would puzzle its author.
for _kind, _shown in (
    (FrozenDict, "dict"),
    (FrozenList, "list"),
    (FrozenModule, "module"),
    (_Gathering, "Future"),
):
    _kind.__name__ = _kind.__qualname__ = _shown


def compile_program(source: str, provided: frozenset[str]) -> tuple[CodeType, str]:
    """Compile a program under the policy; return its code and the name of its coroutine function.

    Raises:
        ProgramRefusedError: It is not Python, or not the language.
    """
    compiled = policy.compile_program(source, provided=provided)
    return compiled.code, compiled.entry_name


def prepare_programs(count: int) -> None:
    """Do ahead, for so many programs, what does not depend on them."""
    guards.prepare_blanks(count)


def build_globals(
    bindings: Mapping[str, object],
    write: Callable[[str, str], None],
    modules: Mapping[str, object],
    hints: Mapping[str, str],
    loop: WireLoop,
) -> dict[str, Any]:
    """Return the globals a program starts with."""
    asyncio_facade.install(run=loop.run_nested, awaitable_adapter=as_coroutine, start_together=start_together)
    messages = {name: f"{name}() is not available in programs: {advice}" for name, advice in hints.items()}
    return guards.build_globals(
        bindings=bindings, stdout_write=write, modules=modules, hints=messages, substitutes=hints
    )


def surroundings(
    names: Mapping[str, Any],
    spaces: Mapping[str, Space],
    modules: Mapping[str, object],
    hints: Mapping[str, str],
) -> Surroundings:
    """Return what a program finds when it starts."""
    # Tables side by side, and not one of everything: making that would write to every name in it.
    return Surroundings(
        names=ChainMap(dict.fromkeys(names), names["__builtins__"]),
        spaces=spaces,
        modules=ChainMap(dict.fromkeys(modules), _facade_names()),
        absent=catalogue.HINTS,
        substitutes=hints,
    )


def certain_errors(
    source: str, around: Surroundings, judges_imports: Mapping[str, Any] | None
) -> list[CertainError]:
    """Return what in a program must fail.

    Args:
        source: The program.
        around: What it finds when it starts.
        judges_imports: Its globals, for judging its imports as well; None leaves those to the run.
    """

    def advise(name: str, bound: frozenset[str], is_key: bool) -> str | None:
        return advice.unknown_name(name, bound, around, is_key=is_key)

    def why_not_importable(module: str, wanted: tuple[str, ...], level: int) -> str | None:
        assert judges_imports is not None, "it is not asked otherwise"
        try:
            # The program's own import, which gives nothing but our facades.
            judges_imports["__builtins__"]["__import__"](module, None, None, wanted, level)
        except ImportError as error:
            return str(error)
        return None

    judge = None if judges_imports is None else why_not_importable
    return finder.certain_errors(source, around.names, around.spaces, advise, judge)


@functools.cache
def _facade_names() -> dict[str, None]:
    return dict.fromkeys(catalogue.module_names())


def describe(error: BaseException, source: str, around: Surroundings | None) -> dict[str, Any]:
    """Return the wire form of what a program raised."""
    description = diagnostics.describe_exception(error, source)
    message = description.message
    leaf, count = _first_of_group(error)
    if leaf is not error:
        # The group itself says only that something in it failed.
        inside = diagnostics.describe_exception(leaf, source)
        message = f"{message}: {inside.error_type}: {inside.message}"
        message += f"; and {count - 1} more" if count > 1 else ""
        if inside.frames:
            description = inside._replace(error_type=description.error_type)
    hint = None if around is None else advice.advise(leaf, source, PROGRAM_FILE, around)
    return {
        "message": f"{description.error_type}: {message}" if message else description.error_type,
        "errorType": description.error_type,
        "line": description.line,
        "hint": hint,
        "traceback": [list(frame) for frame in description.frames],
    }


def _first_of_group(error: BaseException) -> tuple[BaseException, int]:
    """Return the first exception that is no group, and how many there are."""
    leaves: list[BaseException] = []
    todo = [error]
    while todo:
        each = todo.pop()
        if isinstance(each, BaseExceptionGroup):
            todo.extend(reversed(each.exceptions))
        else:
            leaves.append(each)
    return (leaves[0], len(leaves)) if leaves else (error, 1)
