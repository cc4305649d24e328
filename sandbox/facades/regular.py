"""`re`, without the flag that writes to the process's own standard output.

Knows: the module `re`. Does not know: the guards.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_DEBUG = int(re.DEBUG)


def _without_debug(function: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Return `function` with the DEBUG bit of its flags argument (at `position`, or by keyword) cleared."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > position and args[position]:
            args = (*args[:position], args[position] & ~_DEBUG, *args[position + 1 :])
        elif "flags" in kwargs:
            kwargs["flags"] &= ~_DEBUG
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__
    return call


def re_members() -> dict[str, object]:
    """Return what `import re` offers."""
    flags = "A ASCII I IGNORECASE L LOCALE M MULTILINE S DOTALL U UNICODE X VERBOSE NOFLAG"
    members: dict[str, object] = {name: getattr(re, name) for name in flags.split() if hasattr(re, name)}
    for name, position in (
        ("compile", 1),
        ("match", 2),
        ("fullmatch", 2),
        ("search", 2),
        ("findall", 2),
        ("finditer", 2),
        ("split", 3),
        ("sub", 4),
        ("subn", 4),
    ):
        members[name] = _without_debug(getattr(re, name), position)
    return {
        **members, "Match": re.Match, "Pattern": re.Pattern, "RegexFlag": re.RegexFlag, "error": re.error,
        "PatternError": re.error, "escape": re.escape, "purge": re.purge,
    }  # fmt: skip
