"""What a refused program is told.

Knows: positions, messages, hints. Does not know: rules.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_REFUSALS = 10
"""Refusals reported for one program. Arbitrary; more is noise to a reader who fixes one kind at a time."""


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """One construct that is not part of the language, and where it stands."""

    line: int
    """1-based line of the program."""
    column: int
    """1-based column, counted in characters."""
    message: str
    """What was refused, in plain words."""
    hint: str | None = None
    """What to write instead."""

    def __str__(self) -> str:
        text = f"line {self.line}, column {self.column}: {self.message}"
        return f"{text}; {self.hint}" if self.hint else text


class ProgramRefusedError(Exception):
    """The program is not started: it is not Python, or not the language of this sandbox.

    Attributes:
        refusals: At least one, at most `MAX_REFUSALS`, in source order.
        error_type: `SyntaxError` (or a subclass's name) when Python itself refuses the text, else
        `PolicyError`.
    """

    def __init__(self, refusals: tuple[Refusal, ...], error_type: str) -> None:
        self.refusals = refusals
        self.error_type = error_type
        super().__init__("\n".join(str(refusal) for refusal in refusals))
