"""The garbage collector stands still while many containers are made at once.

It would go through the new ones again and again, and now and then through everything there is, to find
cycles that JSON values cannot have. In this interpreter as a whole, so only for what does not wait.

Knows: the collector. Does not know: what is made.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_A = TypeVar("_A")
_T = TypeVar("_T")

__all__ = ["MANY_CONTAINERS", "uncollected"]

MANY_CONTAINERS: Final = 500
"""From so many on it is worth it. Arbitrary: a few more wake the collector."""


def uncollected(function: Callable[[_A], _T], argument: _A) -> _T:
    """Call a function, meanwhile without the collector, which goes on afterwards if it was on before."""
    if not gc.isenabled():
        return function(argument)
    gc.disable()
    try:
        return function(argument)
    finally:
        gc.enable()
