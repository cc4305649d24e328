"""The two streams of the command: results on standard output, everything about them on standard error.

A reader that goes away is not an error: what is left to print is dropped and the command's own status
stands. Text of programs and tools is escaped where a terminal would act on it.

Knows: streams, terminals. Does not know: what is printed.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from codemode.cli.status import FAILED, CommandError
from codemode.terminal import CLEAR_LINE, Paint, escape, wants_color, width_of
from sandbox.values import encode

if TYPE_CHECKING:
    from sandbox.values import JsonValue


class Console:
    """Where one command prints.

    Attributes:
        closed: Whether nobody reads standard output any more, so that long output can stop.
    """

    def __init__(self, out: TextIO | None, err: TextIO | None) -> None:
        # A stream is None when its descriptor was closed before the start (`codemode ... >&-`).
        self._out = out if out is not None else io.StringIO()
        self._err = err if err is not None else io.StringIO()
        for stream in (self._out, self._err):
            if isinstance(stream, io.TextIOWrapper):
                # Lone surrogates are data here, and not every terminal speaks UTF-8.
                stream.reconfigure(errors="backslashreplace")
        self.closed = False

    @property
    def interactive(self) -> bool:
        """Whether a person watches both streams."""
        return self._out.isatty() and self._err.isatty()

    @property
    def shows_output(self) -> bool:
        """Whether a person watches standard output."""
        return self._out.isatty()

    @property
    def watched(self) -> bool:
        """Whether a person watches standard error, on a terminal where lines can be drawn again."""
        return self._err.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def out_paint(self) -> Paint:
        """Colours for standard output."""
        return Paint(wants_color(self._out))

    @property
    def err_paint(self) -> Paint:
        """Colours for standard error."""
        return Paint(wants_color(self._err))

    @property
    def width(self) -> int:
        """Columns of standard output."""
        return width_of(self._out)

    @property
    def err(self) -> TextIO:
        """Standard error itself, for a progress line."""
        return self._err

    def print(self, line: str, *, at_once: bool = False) -> None:
        """Print one line of our own making on standard output.

        Args:
            line: The line, without its end.
            at_once: Hand it to the reader now, because more may be long in coming.
        """
        self._write(line + "\n", flush=at_once)

    def print_foreign(self, text: str) -> None:
        """Print text of a program or tool: as it is into a pipe or file, escaped on a terminal."""
        self.print(escape(text, keep="\n\t") if self._out.isatty() else text)

    def show_foreign(self, text: str) -> None:
        """Show a piece of a program's text now, which need not end a line; escaped on a terminal."""
        self._write(escape(text, keep="\n\t") if self._out.isatty() else text, flush=True)

    def print_json(self, value: JsonValue, *, at_once: bool = False) -> None:
        """Print one JSON value on one line, as `print` does."""
        self.print(encode(value).decode("ascii"), at_once=at_once)

    def say(self, text: str) -> None:
        """Print something about the command on standard error; dropped when that is closed."""
        try:
            self._err.write(text + "\n")
            self._err.flush()
        except OSError:
            pass  # There is nowhere left to say it.

    def tell(self, text: str, *, below: bool = False) -> None:
        """Say something to a person who waits; nothing where nobody watches.

        Args:
            text: What to say.
            below: Whether the cursor's line is to stay; otherwise it is one of progress, which gives way.
        """
        if self._err.isatty():
            before = "\n" if below else CLEAR_LINE if self.watched else ""
            self.say(before + text)

    def finish(self) -> None:
        """Hand everything printed to the operating system.

        Raises:
            CommandError: It cannot be written, for example because the disk is full.
        """
        self._write("", flush=True)

    def _write(self, text: str, *, flush: bool = False) -> None:
        if self.closed:
            return
        try:
            self._out.write(text)
            if flush or self._out.isatty():
                self._out.flush()
        except BrokenPipeError:
            self._give_up()
        except OSError as error:
            self._give_up()
            raise CommandError(
                f"cannot write to standard output: {error.strerror}", kind="output", status=FAILED
            ) from error

    def _give_up(self) -> None:
        """Drop what follows, and what Python would still flush at exit and complain about."""
        self.closed = True
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._out.fileno())
            os.close(null)
        except (OSError, ValueError):
            pass  # Not a real file, so nothing is flushed into it at exit.


def standard() -> Console:
    """Return the console of this process."""
    streams: tuple[Any, Any] = (sys.stdout, sys.stderr)
    return Console(*streams)
