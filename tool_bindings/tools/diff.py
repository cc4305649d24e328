"""Describe a change of text as hunks with context.

Linear in the usual case and never worse than a bounded amount of work per hunk: a pathological pair of files
gives a coarser diff, not a long wait.

Knows: lines and hunks.
Does not know: files, tools, or how a diff is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Hunk", "hunks"]

_CONTEXT_LINES = 3
# Product of line counts up to which difflib compares two blocks; it can take quadratic time, and more.
# Arbitrary: 300 by 300 lines take some milliseconds.
_FINE_COMPARISON = 90_000


class Hunk(NamedTuple):
    """One changed place with its context lines on both sides.

    `old_text` is None when there was nothing: text put into an empty file.
    """

    old_text: str | None
    new_text: str


@dataclass(slots=True)
class _Change:
    """Lines `old_start:old_end` became lines `new_start:new_end`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def hunks(before: str, after: str) -> list[Hunk]:
    """Compare two texts line by line.

    Args:
        before: The old text, LF line ends.
        after: The new text, LF line ends.

    Returns:
        One hunk per changed place, in order; places closer than twice the context are one. Empty when the
        texts are equal.
    """
    old = _lines(before)
    new = _lines(after)
    result = []
    for group in _grouped(_changes(old, new)):
        first, last = group[0], group[-1]
        old_part = old[max(first.old_start - _CONTEXT_LINES, 0) : last.old_end + _CONTEXT_LINES]
        new_part = new[max(first.new_start - _CONTEXT_LINES, 0) : last.new_end + _CONTEXT_LINES]
        result.append(Hunk(_text(old_part) if old_part else None, _text(new_part)))
    return result


def _lines(text: str) -> list[str]:
    """Split at LF only, keeping it: a missing final line break is a difference."""
    pieces = text.split("\n")
    lines = [f"{piece}\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _text(lines: Sequence[str]) -> str:
    return "\n".join(line.removesuffix("\n") for line in lines)


def _grouped(changes: Iterator[_Change]) -> Iterator[list[_Change]]:
    group: list[_Change] = []
    for change in changes:
        if group and change.old_start - group[-1].old_end > 2 * _CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    start, old_end, new_end = _trim(old, new, _Change(0, len(old), 0, len(new)))
    previous_old, previous_new = start, start
    anchors = _anchors(old[start:old_end], new[start:new_end])
    for old_at, new_at in [*((start + a, start + b) for a, b in anchors), (old_end, new_end)]:
        yield from _block_changes(old, new, _Change(previous_old, old_at, previous_new, new_at))
        previous_old, previous_new = old_at + 1, new_at + 1


def _trim(old: Sequence[str], new: Sequence[str], block: _Change) -> tuple[int, int, int]:
    """Leave out equal lines at both ends; returns the common start and the two ends."""
    start = block.old_start
    shift = block.new_start - block.old_start
    old_end, new_end = block.old_end, block.new_end
    while start < old_end and start + shift < new_end and old[start] == new[start + shift]:
        start += 1
    while old_end > start and new_end > start + shift and old[old_end - 1] == new[new_end - 1]:
        old_end -= 1
        new_end -= 1
    return start, old_end, new_end


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the lines that occur once on each side, as many as keep their order ("patience diff")."""
    old_counts, new_counts = Counter(old), Counter(new)
    places = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [
        (index, places[line]) for index, line in enumerate(old) if old_counts[line] == 1 and line in places
    ]
    # The longest increasing run of new places: `tails` holds the smallest end of a run of each length.
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(place)
            ends.append(number)
        else:
            tails[length] = place
            ends[length] = number
    chosen = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _block_changes(old: Sequence[str], new: Sequence[str], block: _Change) -> Iterator[_Change]:
    start, old_end, new_end = _trim(old, new, block)
    shift = block.new_start - block.old_start
    rest = _Change(start, old_end, start + shift, new_end)
    old_size, new_size = rest.old_end - rest.old_start, rest.new_end - rest.new_start
    if not old_size and not new_size:
        return
    if not old_size or not new_size:
        yield rest
    elif old_size * new_size <= _FINE_COMPARISON:
        yield from _compared(old, new, rest)
    elif old_size == new_size:
        yield from _in_place(old, new, rest)
    else:
        yield rest


def _compared(old: Sequence[str], new: Sequence[str], rest: _Change) -> Iterator[_Change]:
    """Compare two small blocks as well as can be done."""
    matcher = SequenceMatcher(
        None, old[rest.old_start : rest.old_end], new[rest.new_start : rest.new_end], autojunk=False
    )
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield _Change(rest.old_start + i1, rest.old_start + i2, rest.new_start + j1, rest.new_start + j2)


def _in_place(old: Sequence[str], new: Sequence[str], rest: _Change) -> Iterator[_Change]:
    """Compare two large blocks of equal length line by line, as a replacement within lines leaves them."""
    shift = rest.new_start - rest.old_start
    start: int | None = None
    for index in range(rest.old_start, rest.old_end + 1):
        differs = index < rest.old_end and old[index] != new[index + shift]
        if differs and start is None:
            start = index
        elif not differs and start is not None:
            yield _Change(start, index, start + shift, index + shift)
            start = None
