"""How a program's coroutine says what it returned.

Knows: the three outcomes. Does not know: JSON, the worker.
"""

from __future__ import annotations

from typing import final


@final
class ProgramResult:
    """The value of a program that has one; a coroutine that ends with plain `None` has no result.

    Only code the policy wrote at the program's own level builds it, so a program cannot forge one: whatever
    it returns itself arrives wrapped.
    """

    __slots__ = ("implicit", "value")

    def __init__(self, value: object, *, implicit: bool) -> None:
        self.value = value
        """What the program returned."""
        self.implicit = implicit
        """Whether it is the value of the last statement rather than of a `return`."""

    def __repr__(self) -> str:
        return f"ProgramResult(implicit={self.implicit})"


def explicit(value: object) -> ProgramResult:
    """Wrap the value of a `return` statement."""
    return ProgramResult(value, implicit=False)


def implicit(value: object) -> ProgramResult | None:
    """Wrap the value of the last statement; `None` there means no result."""
    return None if value is None else ProgramResult(value, implicit=True)
