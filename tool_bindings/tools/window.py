"""Find a window of lines in a file of any size, and count all its lines.

Only the lines of the window are kept, and of each no more than what is shown, so memory does not grow with
the file or with the length of a line.

Knows: lines, UTF-8, and the caps of a window.
Does not know: where the bytes come from, or how a window is shown.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Line", "NotTextError", "ReadLimits", "Window", "scan"]

_SNIFFED_BYTES = 8192  # A NUL among the first bytes tells a binary file, as git and grep decide.
_UTF8_WIDTH = 4  # The most bytes one character takes.


class NotTextError(ValueError):
    """The bytes are not text; the message says why. Translated by the tool that reads them."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Caps of one window.

    Attributes:
        lines: Most lines in a window, and how many are given when nobody asks for fewer.
        line_characters: A longer line is cut here. Characters are code points.
        window_bytes: Most UTF-8 bytes of all lines together, with one byte per line break between them.
        stream_bytes: A file of this size or larger is read piece by piece.
    """

    lines: int = 2000
    line_characters: int = 2000
    window_bytes: int = 51_200
    stream_bytes: int = 10_485_760

    def __post_init__(self) -> None:
        for name in ("lines", "line_characters", "window_bytes", "stream_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        longest = self.line_characters * _UTF8_WIDTH + len(_cut_suffix(self.line_characters))
        if self.window_bytes < longest:
            raise ValueError(
                f"window_bytes is {self.window_bytes}, but one line of {self.line_characters} characters can "
                f"take {longest} bytes; raise window_bytes or lower line_characters"
            )


Line = tuple[int, str]
"""One line of a window: its number, from 1, and its text."""


class Window(NamedTuple):
    """The lines found, and how many lines the whole file has."""

    lines: list[Line]
    total_lines: int


def _cut_suffix(characters: int) -> str:
    return f"... (line truncated to {characters} chars)"


class _WindowScanner:
    """Takes a file piece by piece."""

    def __init__(self, offset: int, count: int, limits: ReadLimits) -> None:
        self._first = offset
        self._last = offset + count - 1
        self._limits = limits
        # One character more than is shown tells a cut line from one that just fits, also before a "\r".
        self._keep_bytes = (limits.line_characters + 1) * _UTF8_WIDTH
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._sniffed = 0
        self._number = 1  # The line the next byte belongs to.
        self._partial = bytearray()  # What is kept of that line, when it is in the window.
        self._partial_size = 0  # Its real size so far.
        self._budget = limits.window_bytes
        self._full = False
        self.lines: list[Line] = []

    def feed(self, piece: bytes) -> None:
        if self._sniffed < _SNIFFED_BYTES:
            if b"\0" in piece[: _SNIFFED_BYTES - self._sniffed]:
                raise NotTextError("it is a binary file (it has a NUL byte near its start)")
            self._sniffed += len(piece)
        try:
            self._decoder.decode(piece)
        except UnicodeDecodeError:
            raise NotTextError("it is not valid UTF-8") from None
        self._take_lines(piece)

    def finish(self) -> Window:
        try:
            self._decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise NotTextError("it is not valid UTF-8 (its last character is incomplete)") from None
        if not self._partial_size:
            return Window(self.lines, self._number - 1)
        if self._in_window():
            self._keep(self._text(bytes(self._partial), whole=self._partial_size == len(self._partial)))
        return Window(self.lines, self._number)

    def _in_window(self) -> bool:
        return not self._full and self._first <= self._number <= self._last

    def _take_lines(self, piece: bytes) -> None:
        position = 0
        if self._number < self._first:
            missing = self._first - self._number
            parts = piece.split(b"\n", missing)
            if len(parts) > missing:
                position = len(piece) - len(parts[-1])
                self._number = self._first
                self._partial_size = 0
        if self._in_window():
            position = self._take_window(piece, position)
        self._skip(piece, position)

    def _take_window(self, piece: bytes, position: int) -> int:
        """Keep the lines of the window that end in this piece; returns where the rest of the piece starts."""
        parts = piece[position:].split(b"\n", self._last - self._number + 1)
        tail = parts.pop()
        if self._keep_at_once(piece, position, parts):
            position += sum(map(len, parts)) + len(parts)
            parts = []
        for part in parts:
            if self._partial_size:
                self._extend(part)
                text = self._text(bytes(self._partial), whole=self._partial_size == len(self._partial))
                self._partial.clear()
                self._partial_size = 0
            else:
                text = self._text(part, whole=True)
            position += len(part) + 1
            kept = self._keep(text)
            self._number += 1
            if not kept:
                return position
        if self._number <= self._last:
            self._extend(tail)
            return len(piece)
        return position

    def _keep_at_once(self, piece: bytes, position: int, parts: list[bytes]) -> bool:
        """Keep all of `parts` if none needs a closer look: the usual case, several times faster."""
        size = sum(map(len, parts)) + len(parts)
        if not parts or self._partial_size or size > self._budget:
            return False
        if max(map(len, parts)) > self._limits.line_characters:
            return False
        texts = piece[position : position + size - 1].decode().split("\n")
        if b"\r" in piece:
            texts = [text.removesuffix("\r") for text in texts]
            size = sum(len(text.encode()) for text in texts) + len(texts)
        self._budget -= size if self.lines else size - 1
        self.lines.extend(enumerate(texts, self._number))
        self._number += len(texts)
        return True

    def _skip(self, piece: bytes, position: int) -> None:
        """Count the lines of the rest of a piece."""
        if position == len(piece):
            return
        breaks = piece.count(b"\n", position)
        if breaks:
            self._number += breaks
            self._partial_size = len(piece) - piece.rindex(b"\n") - 1
        else:
            self._partial_size += len(piece) - position

    def _extend(self, part: bytes) -> None:
        self._partial_size += len(part)
        room = self._keep_bytes - len(self._partial)
        if room > 0:
            self._partial += part[:room]

    def _text(self, raw: bytes, *, whole: bool) -> str:
        cap = self._limits.line_characters
        # An incomplete character can only be at the end, where the kept bytes were cut.
        text = raw.decode("utf-8", "strict" if whole else "ignore")
        if whole:
            text = text.removesuffix("\r")
            if len(text) <= cap:
                return text
        return text[:cap] + _cut_suffix(cap)

    def _keep(self, text: str) -> bool:
        cost = (len(text) if text.isascii() else len(text.encode())) + (1 if self.lines else 0)
        if cost > self._budget:
            self._full = True
            return False
        self._budget -= cost
        self.lines.append((self._number, text))
        return True


def scan(pieces: Iterable[bytes], *, offset: int, count: int, limits: ReadLimits) -> Window:
    r"""Read a whole file and keep one window of it.

    Lines end at `\n`; one `\r` before it is not part of the line; a final line break adds no empty line. The
    first line that would exceed the byte budget ends the window.

    Args:
        pieces: The file's bytes, in order, cut anywhere.
        offset: Number of the first line wanted, from 1.
        count: Most lines wanted.
        limits: The caps.

    Returns:
        The window; it has no lines when the file has fewer than `offset`.

    Raises:
        NotTextError: A NUL among the first 8192 bytes, or invalid UTF-8 anywhere.
    """
    scanner = _WindowScanner(offset, count, limits)
    for piece in pieces:
        scanner.feed(piece)
    return scanner.finish()
