"""The import statement of a program.

Knows: how an import is executed. Does not know: what the modules hold.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from sandbox.facades import catalogue
from sandbox.facades.inner import InnerModule
from sandbox.guards.readonly import FrozenModule, members_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_INTERNAL = frozenset(
    {
        "_strptime",
        "_pylong",
        "unicodedata",
        "warnings",
        "_io",
        "time",
        "copyreg",
        "collections.abc",
        "decimal",
        "_decimal",
    }
)
"""Modules that C code imports on the program's stack (`datetime.strptime` needs `_strptime`). The import
machinery takes the real module from its own table afterwards and throws our answer away, so the answer
need not be a module."""


class RefusedImportError(ModuleNotFoundError):
    """There is no such module here; called `ImportError`, and caught as `ModuleNotFoundError` too."""


RefusedImportError.__name__ = RefusedImportError.__qualname__ = "ImportError"
RefusedImportError.__module__ = "builtins"

_INERT = FrozenModule("internal", {})


def make_import(
    modules: dict[str, Any],
    substitutes: Mapping[str, str] | None = None,
    bound: Collection[str] = (),
) -> Callable[..., Any]:
    """Return the `__import__` of one program.

    Args:
        modules: Every importable module by its full name; values need not be facades.
        substitutes: For modules that are not there, what this run has instead.
        bound: Names that are there without an import.
    """

    def import_module(
        name: Any, _globals: Any = None, _locals: Any = None, fromlist: Any = None, level: int = 0
    ) -> Any:
        if type(name) is not str or level:
            raise ImportError("relative imports have nothing to refer to; import a module by its full name")
        module = modules.get(name)
        if module is None:
            if name in _INTERNAL and not fromlist:
                return _INERT
            raise RefusedImportError(refusal(name, modules, substitutes or {}, bound), name=name)
        if not fromlist:
            name = name.partition(".")[0]
            module = modules[name]
        if type(module) is InnerModule:
            module = modules[name] = module.load()
        if not fromlist:
            return module
        for wanted in fromlist:
            _check_member(module, name, wanted)
        return module

    return import_module


def refusal(
    name: str,
    modules: Mapping[str, Any],
    substitutes: Mapping[str, str] | None = None,
    bound: Collection[str] = (),
) -> str:
    """Say that there is no module `name`, what to use instead, and what there is."""
    keys = (name, name.partition(".")[0])
    hint = next((catalogue.HINTS[key] for key in keys if key in catalogue.HINTS), None)
    substitute = next((substitutes[key] for key in keys if substitutes and key in substitutes), None)
    if substitute is not None:
        hint = substitute if hint is None else f"{hint}; {substitute}"
    if hint is None and name not in bound:
        close = difflib.get_close_matches(name, modules, 1)
        hint = f"did you mean {close[0]!r}?" if close else None
    listed = ", ".join(sorted(modules))
    return (
        f"No module named {name!r} here" + (f": {hint}" if hint else "") + f". Importable modules: {listed}"
    )


def _check_member(module: Any, name: str, wanted: str) -> None:
    if not isinstance(module, FrozenModule):
        try:
            getattr(module, wanted)
        except AttributeError as error:
            raise ImportError(f"cannot import name {wanted!r} from {name!r}: {error}", name=name) from None
        return
    offered = members_of(module)
    if wanted in offered:
        return
    try:
        getattr(module, wanted)
    except AttributeError as error:
        reason = str(error).partition("; ")[2]
        text = f"cannot import name {wanted!r} from {name!r}"
        raise ImportError(
            f"{text}; {reason}" if reason else f"{text}; it offers: {', '.join(offered)}", name=name
        ) from None
