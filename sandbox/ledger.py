"""The output ledger: what a run emitted, counted in JSON bytes, and cut where the bound is.

Counted are the logs as a JSON array of lines plus the completion value or the failure message;
field names and frames are not. At the bound is allowed, above it is not.

Knows: counting and cutting. Does not know: where output comes from.

Source:
    spec facts kept in `docs/decisions/0003-output-ledger.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox import values

if TYPE_CHECKING:
    from sandbox.values import JsonValue


class OutputLedger:
    """Lines printed so far and the bytes they cost.

    A piece of text without a line end stays open and is joined to what follows.
    """

    __slots__ = (
        "_closed_bytes",
        "_lines",
        "_max_bytes",
        "_max_entries",
        "_open",
        "_open_bytes",
        "_open_pieces",
    )

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._lines: list[str] = []
        self._closed_bytes = 2  # The brackets of the array.
        self._open = False
        self._open_pieces: list[str] = []
        self._open_bytes = 0

    @property
    def log_bytes(self) -> int:
        """JSON bytes of the logs so far."""
        return self._closed_bytes + (self._entry_bytes(self._open_bytes) if self._open else 0)

    @property
    def lines(self) -> tuple[str, ...]:
        """Every line so far, an unfinished one included."""
        return (*self._lines, "".join(self._open_pieces)) if self._open else tuple(self._lines)

    @property
    def exceeded(self) -> str:
        """The failure message of a run whose output is over the bound."""
        return f"outer output exceeded {self._max_bytes} bytes; the limit is max_output_bytes"

    def add(self, text: str) -> str | None:
        """Take printed text.

        Returns:
            None, or why the run must end: the bound that this text went over. What fits is kept.
        """
        start = 0
        while start < len(text):
            if not self._open:
                if len(self._lines) >= self._max_entries:
                    return f"more than {self._max_entries} lines of output; the limit is max_log_entries"
                self._open = True
                self._open_bytes = 2
                if self.log_bytes > self._max_bytes:
                    self._open = False
                    return self.exceeded
            end = text.find("\n", start)
            piece = text[start:] if end < 0 else text[start:end]
            cost = values.string_size(piece) - 2
            room = self._max_bytes - self.log_bytes
            if cost > room:
                self._keep(_fitting_prefix(piece, room))
                self._close()
                return self.exceeded
            self._open_pieces.append(piece)
            self._open_bytes += cost
            if end < 0:
                break
            self._close()
            start = end + 1
        return None

    def admits(self, value: JsonValue) -> bool:
        """Return whether a completion value fits beside the logs."""
        return self.admits_bytes(values.json_size(value))

    def admits_bytes(self, value_bytes: int) -> bool:
        """Return whether a completion value of so many JSON bytes fits beside the logs."""
        return self.log_bytes + value_bytes <= self._max_bytes

    def admits_message(self, message: str) -> bool:
        """Return whether a failure message fits beside the logs."""
        return self.log_bytes + values.string_size(message) <= self._max_bytes

    def make_room_for_message(self) -> str:
        """Return `exceeded`, having cut the logs so that both fit the bound.

        Lines are dropped from the end, the last kept one is cut, until both fit;
        a bound smaller than the message cuts the message.
        """
        message = self.exceeded
        if self._open:
            self._close()
        room = self._max_bytes - values.string_size(message)
        while self._lines and self._closed_bytes > room:
            line = self._lines.pop()
            separator = 1 if self._lines else 0
            self._closed_bytes -= values.string_size(line) + separator
            spare = room - self._closed_bytes - separator - 2
            if spare >= 0 and (prefix := _fitting_prefix(line, spare)):
                self._lines.append(prefix)
                self._closed_bytes += values.string_size(prefix) + separator
                break
        return _fitting_prefix(message, max(self._max_bytes - self._closed_bytes - 2, 0))

    def _keep(self, piece: str) -> None:
        self._open_pieces.append(piece)
        self._open_bytes += values.string_size(piece) - 2

    def _close(self) -> None:
        self._closed_bytes += self._entry_bytes(self._open_bytes)
        self._lines.append("".join(self._open_pieces))
        self._open_pieces.clear()
        self._open = False
        self._open_bytes = 0

    def _entry_bytes(self, string_bytes: int) -> int:
        return string_bytes + (1 if self._lines else 0)


def _fitting_prefix(text: str, max_bytes: int) -> str:
    """Return the longest prefix whose JSON characters cost at most `max_bytes`, quotes not counted."""
    # A character costs 1 to 6 bytes, so this many characters may fit and no more.
    low, high = 0, min(len(text), max_bytes)
    while low < high:
        middle = (low + high + 1) // 2
        if values.string_size(text[:middle]) - 2 <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return text[:low]
