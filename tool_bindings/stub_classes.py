"""The classes of a stub text: each distinct one is declared once, under a name that fits all who use it.

Until all are known a class is written as a mark, because its name depends on who else uses it.

Knows: names and bodies of classes. Does not know: schemas, tools.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ["Classes"]

_NAME_CHARS: Final = 120
"""Longest class name before a number is appended."""
_MARK: Final = re.compile("\x00([0-9]+)\x00")
"""No text of a stub has a NUL: descriptions and literals have it escaped."""
_WORD: Final = re.compile("[A-Z][^A-Z]*|[^A-Z]+")
_ROLES: Final = ("Args", "Output")
"""What stands in a name between its tool and its fields."""


class Classes:
    """Collects the classes of one text.

    Args:
        taken: Names that classes must not have.
    """

    def __init__(self, taken: Collection[str]) -> None:
        self._taken = frozenset(taken)
        self._claimed = set(taken)
        # By number: the names that its users would give it; then the one body of each that is kept.
        self._names: list[list[str]] = []
        self._bodies: dict[int, str] = {}
        self._number_of: dict[str, int] = {}

    def claim(self, base: str) -> tuple[str, str]:
        """Return a name of its own for a class whose fields are yet to be written, and its mark."""
        name = _numbered(base[:_NAME_CHARS], self._claimed)
        self._claimed.add(name)
        self._names.append([name])
        return name, _mark(len(self._names) - 1)

    def declare(self, mark: str, body: str) -> str:
        """Give a claimed class its body, in which `mark` stands for its name; returns the mark to use.

        A class with the same body is the same class: the two names become one.
        """
        number = int(mark.strip("\x00"))
        known = self._number_of.setdefault(body.replace(mark, "\x00\x00"), number)
        if known == number:
            self._bodies[number] = body
            return mark
        self._names[known] += self._names[number]
        return _mark(known)

    def resolve(self, parts: Iterable[str]) -> list[str]:
        """Return the declarations followed by `parts`, all with names in the place of marks."""
        names = {number: self._names[number][0] for number in self._bodies}
        shared = [number for number in self._bodies if len(self._names[number]) > 1]
        taken = {name for number, name in names.items() if len(self._names[number]) == 1} | self._taken
        for number in shared:
            names[number] = _numbered(_common(self._names[number]), taken)
            taken.add(names[number])
        return [
            _MARK.sub(lambda found: names[int(found.group(1))], text)
            for text in (*self._bodies.values(), *parts)
        ]


def _mark(number: int) -> str:
    return f"\x00{number}\x00"


def _numbered(base: str, taken: Collection[str]) -> str:
    name, number = base, 2
    while name in taken or keyword.iskeyword(name):
        name = f"{base}{number}"
        number += 1
    return name


def _common(names: Sequence[str]) -> str:
    """Return the field that all names end with; else what they begin and end with; else the shortest."""
    words = [_WORD.findall(name) for name in names]
    fields = [_after_role(each) for each in words]
    field = _ending(fields)
    if field:
        return "".join(field)
    start = _shared_start(words)
    return "".join([*words[0][:start], *_ending([each[start:] for each in words])]) or min(names, key=len)


def _after_role(words: Sequence[str]) -> Sequence[str]:
    for index in range(len(words), 0, -1):
        if words[index - 1] in _ROLES:
            return words[index:]
    return words


def _ending(rows: Sequence[Sequence[str]]) -> Sequence[str]:
    count = _shared_start([row[::-1] for row in rows])
    return rows[0][len(rows[0]) - count :]


def _shared_start(rows: Sequence[Sequence[str]]) -> int:
    count = 0
    for column in zip(*rows, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count
