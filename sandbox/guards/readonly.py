"""Objects a program can use and cannot change: module facades and other named surfaces.

Knows: how to refuse a change. Does not know: which modules there are.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = ":module name"
"""Where a facade keeps its name. Not `__name__`: when a from-import misses, the interpreter would join that
with the missing name and look the result up among the real modules."""


class FrozenModule:
    """A module as a program sees it: exactly the listed names, none of which can be replaced.

    Args:
        name: What the program imports.
        members: Every name it offers.
        missing: Hints for names the real module has and this one leaves out.
    """

    __slots__ = ("__dict__",)

    def __init__(
        self, name: str, members: Mapping[str, Any], missing: Mapping[str, str] | None = None
    ) -> None:
        self.__dict__.update(members)
        self.__dict__[_NAME] = name
        self.__dict__[":missing"] = dict(missing or {})

    def __getattr__(self, name: str) -> NoReturn:
        own = self.__dict__
        text = f"module {own[_NAME]!r} has no attribute {name!r} here"
        hint = own[":missing"].get(name)
        if hint is None:
            close = difflib.get_close_matches(name, members_of(self), 1)
            hint = f"did you mean {close[0]!r}?" if close else None
        raise AttributeError(f"{text}; {hint}" if hint else text)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"module {self.__dict__[_NAME]!r} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"module {self.__dict__[_NAME]!r} is read-only")

    def __repr__(self) -> str:
        return f"<module {self.__dict__[_NAME]!r}>"

    def __dir__(self) -> list[str]:
        return members_of(self)

    def __copy__(self) -> FrozenModule:
        return self

    def __deepcopy__(self, memo: object) -> FrozenModule:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("modules cannot be copied")

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("modules cannot be subclassed")


def module_name(module: FrozenModule) -> str:
    """Return the name a facade is imported by."""
    return object.__getattribute__(module, "__dict__")[_NAME]  # type: ignore[no-any-return]  # always a str


def members_of(module: FrozenModule) -> list[str]:
    """Return the sorted names a facade offers."""
    return sorted(name for name in object.__getattribute__(module, "__dict__") if name[:1] != ":")
