"""A run as it happens, on a terminal: what the program prints, and below it the line of progress.

Knows: how the two take turns on one screen. Does not know: programs, events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from codemode.cli.status import CommandError

if TYPE_CHECKING:
    from codemode.cli.console import Console
    from codemode.terminal import ProgressLine

REDRAW_SECONDS = 0.1
"""Time between two pictures of the progress line."""


class LiveView:
    """Shows printed text at once.

    Args:
        console: A console whose standard output is a terminal.
        progress: The line to show between the program's own; None where standard error is no terminal.

    Attributes:
        lines: How many lines of the program have been shown.
    """

    def __init__(self, console: Console, progress: ProgressLine | None) -> None:
        self._console = console
        self._progress = progress
        self._ended = 0
        self._open = False
        self._error: CommandError | None = None

    @property
    def lines(self) -> int:
        """How many of the program's lines have been shown, an unfinished one included."""
        return self._ended + self._open

    def on_log(self, text: str) -> None:
        """Show a piece of what the program printed."""
        if not text or self._error is not None:
            return
        self._clear()
        try:
            self._console.show_foreign(text)
        except CommandError as error:
            # A terminal that is gone is no reason to end the run, which may be changing things.
            self._error = error
            return
        self._ended += text.count("\n")
        self._open = not text.endswith("\n")

    def tell(self, text: str) -> None:
        """Show a person who watches a line about the command, on a line of its own."""
        self._clear()
        self._console.tell(text, below=self._open)

    async def redraw(self) -> None:
        """Keep the progress line up to date, for ever."""
        while self._progress is not None:
            # While the program is within a line, that line has the cursor.
            if not self._open:
                self._progress.draw()
            await trio.sleep(REDRAW_SECONDS)

    def close(self) -> None:
        """Leave the cursor at the beginning of a line, with nothing else on it.

        Raises:
            CommandError: The terminal could not be written to.
        """
        self._clear()
        if self._error is not None:
            raise self._error
        if self._open:
            self._console.show_foreign("\n")

    def _clear(self) -> None:
        if self._progress is not None:
            self._progress.clear()
