"""Text on a terminal: made harmless, fitted to the width, coloured where that is wanted; a progress line.

Programs and tools may print anything. Shown to a person, their text must not move the cursor, retitle the
window, hide or reorder what stands beside it.

Knows: streams, character classes, ANSI colour. Does not know: events' order, commands.
"""

from __future__ import annotations

import abc
import os
import shutil
import unicodedata
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that are escaped: controls, format characters (bidi overrides among them), lone
surrogates, line and paragraph separators."""

_JOINERS: Final = "\u200c\u200d"
"""Format characters that stay: scripts and emoji need them, and they reorder nothing."""

_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\x1b"}

ELLIPSIS: Final = "…"


def escape(text: str, *, keep: str = "") -> str:
    r"""Return `text` with every character that could act on a terminal written as an escape.

    Args:
        text: Anything.
        keep: Control characters to leave, for example "\n\t" where several lines are shown.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _HARMFUL:
        return character
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cells(text: str) -> int:
    """Return how many columns printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_character_cells(character) for character in text)


def _character_cells(character: str) -> int:
    if unicodedata.combining(character) or character in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def one_line(text: str, width: int) -> str:
    """Return `text` escaped, on one line, cut to `width` columns with an ellipsis."""
    # No character becomes narrower than a column when escaped, joiners and combining marks aside; a text
    # of nothing but those is cut early, which is fine.
    shown = escape(text[: 4 * width + 1])
    if cells(shown) <= width and len(text) <= 4 * width + 1:
        return shown
    taken, kept = 0, []
    for character in shown:
        taken += _character_cells(character)
        if taken > width - 1:
            break
        kept.append(character)
    return "".join(kept) + ELLIPSIS


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Say whether colour is welcome: a terminal that understands it, and no NO_COLOR.

    Source:
        https://no-color.org
    """
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int:
    """Return the columns of the terminal behind `stream`; 100 where there is none."""
    if not stream.isatty():
        return 100
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return shutil.get_terminal_size().columns


class Paint(NamedTuple):
    """Colours text, or leaves it as it is."""

    enabled: bool

    def bold(self, text: str) -> str:
        """Return `text` in bold."""
        return self._code("1", text)

    def dim(self, text: str) -> str:
        """Return `text` in grey."""
        return self._code("2", text)

    def good(self, text: str) -> str:
        """Return `text` in green."""
        return self._code("32", text)

    def bad(self, text: str) -> str:
        """Return `text` in red."""
        return self._code("31", text)

    def warning(self, text: str) -> str:
        """Return `text` in yellow."""
        return self._code("33", text)

    def _code(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and text else text


_BAR_CELLS: Final = 20
"""Columns of a bar. Arbitrary."""
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CLEAR_LINE: Final = "\r\x1b[K"
"""Takes the cursor to the beginning of its line and wipes that."""


_SAID_COLUMNS: Final = 40
"""Columns for the program's own words on its progress. Arbitrary: the calls need the rest."""


class StatusLine(abc.ABC):
    """One line at the bottom of a terminal that says what is going on.

    Drawing is the caller's to schedule: `draw` now and then, `clear` before anything else is printed.

    Args:
        stream: The terminal.
        clock: Gives seconds; only differences matter.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._running: dict[str, tuple[str, str, float]] = {}
        self._frame = 0
        self._drawn = False

    @abc.abstractmethod
    def parts(self) -> list[str]:
        """Return what there is to say, the most important first."""

    def text(self, width: int) -> str:
        """Return what the line says now, in at most `width` columns."""
        now = self._clock()
        parts = [f"{now - self._began:.1f} s", *self.parts()]
        if self._running:
            # The call that has run longest is the one a person waits for.
            name, hint, since = min(self._running.values(), key=lambda call: call[2])
            parts.append(f"{len(self._running)} running: {name} {hint}".rstrip() + f" ({now - since:.1f} s)")
        return one_line(f"{_SPINNER[self._frame]} {', '.join(parts)}", width)

    def draw(self) -> None:
        """Show the line, over what it said before."""
        self._frame = (self._frame + 1) % len(_SPINNER)
        # The last column stays free: some terminals wrap as soon as it is filled.
        self._stream.write(CLEAR_LINE + self.text(width_of(self._stream) - 1))
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Remove the line."""
        if self._drawn:
            self._stream.write(CLEAR_LINE)
            self._stream.flush()
            self._drawn = False

    def _started(self, call_id: str, name: str, hint: str) -> None:
        self._running[call_id] = (name, hint, self._clock())

    def _ended(self, call_id: str) -> None:
        self._running.pop(call_id, None)


class ProgressLine(StatusLine):
    """Says how far a run is. Fed with its session events and its own words."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        super().__init__(stream, clock)
        self._done = 0
        self._failed = 0
        self._said = ""

    def on_progress(self, done: float, total: float | None, note: str | None) -> None:
        """Take note of what the program itself says of its progress."""
        count = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        self._said = one_line(f"{note} {count}" if note else count, _SAID_COLUMNS)

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take note of one session event."""
        data = event["data"]
        if event["type"] == "tool/code-dispatch-start":
            self._started(data["subCallId"], data["name"], argument_hint(data["arguments"]))
        elif event["type"] == "tool/code-dispatch":
            self._ended(data["subCallId"])
            self._done += 1
            self._failed += bool(data["isError"])

    def parts(self) -> list[str]:
        """Return counts, and what the program says."""
        parts = [f"{self._done} calls done"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if self._said:
            parts.append(self._said)
        return parts


class BatchBar(StatusLine):
    """Says how far a batch is. Fed with its session events and its results.

    Args:
        stream: The terminal.
        clock: Gives seconds; only differences matter.
        total: Lines of the input, or None where that is not known.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float], total: int | None) -> None:
        super().__init__(stream, clock)
        self._total = total
        self._line = 0
        self._failed = 0

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take note of one session event."""
        data = event["data"]
        if event["type"] == "tool/call":
            self._started(data["callId"], data["name"], "")
        elif event["type"] == "tool/result":
            self._ended(data["message"]["source"]["callId"])

    def advance(self, line: int, *, failed: bool) -> None:
        """Take note that every line of the input up to this one has its record."""
        self._line = line
        self._failed += failed

    def parts(self) -> list[str]:
        """Return the bar, the share that is done, and what went wrong."""
        if self._total is None:
            parts = [f"{self._line} lines done"]
        else:
            filled = _BAR_CELLS * self._line // max(self._total, 1)
            bar = "█" * filled + "░" * (_BAR_CELLS - filled)
            parts = [f"{bar} {self._line}/{self._total}"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        return parts


def argument_hint(arguments: object) -> str:
    """Return the one argument that tells a call apart from its like: the first that is short text."""
    if isinstance(arguments, dict):
        for value in arguments.values():
            if isinstance(value, str) and value:
                return one_line(value, 60)
    return ""
