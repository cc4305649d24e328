"""What is said of a `--tools` SPEC whose code raises: the error, the user's own line, what to write.

Knows: exceptions, frames, whose file is whose. Does not know: how a SPEC is loaded. Imported only when one
has failed.
"""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import codemode
import sandbox
import tool_bindings
from tool_bindings import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

_OURS: Final = tuple(Path(str(package.__file__)).parent for package in (codemode, sandbox, tool_bindings))
_SITE: Final = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
_STANDARD: Final = (Path(sysconfig.get_path("stdlib")),)


def raised_text(error: BaseException, function: object = None) -> str:
    """Return what was raised, where in the user's files, and what to write if that is known; on one line.

    Args:
        error: What foreign code raised, SystemExit included.
        function: The function that was called, for an error that is raised before its first line.
    """
    message, place = str(error), _last_place(error) or _beginning(function)
    if isinstance(error, SyntaxError) and error.filename is not None:
        # It was raised for a place, not at one.
        message, place = error.msg, (error.filename, error.lineno)
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    text = " ".join(text.split())
    if place is not None:
        text += f" ({_shown(Path(place[0]))}, line {place[1]})"
    advice = _advice(error)
    return f"{text}; {advice}" if advice else text


def _last_place(error: BaseException) -> tuple[str, int | None] | None:
    """Return file and line of the innermost frame that is the user's: not ours, and not a library's."""
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and not _is_under(frame.filename, _OURS)
    ]
    own = [frame for frame in frames if not _is_under(frame[0], (*_SITE, *_STANDARD))]
    # A SPEC may name an installed module, and then there is no place of the user's.
    installed = [frame for frame in frames if _is_under(frame[0], _SITE)]
    return next(reversed(own or installed), None)


def _beginning(function: object) -> tuple[str, int] | None:
    code = getattr(function, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


def _is_under(name: str, folders: Iterable[Path]) -> bool:
    return any(Path(name).is_relative_to(folder) for folder in folders)


def _shown(path: Path) -> str:
    """Return a path as a person in the current directory would write it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name


def _advice(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        name = error.name.partition(".")[0]
        return f"install {name!r} in the environment of codemode, or leave the import out"
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "name it as module:attribute from the directory its package lies in, or import by full names"
    return None


def registries_of(module: ModuleType) -> list[str]:
    """Return the names under which a module has registries, for a SPEC that names something else."""
    return [name for name, value in vars(module).items() if isinstance(value, ToolRegistry)]
