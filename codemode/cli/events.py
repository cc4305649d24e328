"""`codemode events`: an event log as a timeline, on the terminal or as a page.

Knows: where it goes. Does not know: how it is read.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from codemode.cli import status
from codemode.cli.status import CommandError
from codemode.private_file import reason
from codemode.session_events import SessionFormatError
from codemode.session_file import older_files, read_lines
from codemode.timeline import Timeline

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from codemode.cli.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the log, or write the page, while reading it."""
    log = Path(options.file)
    if options.html is not None:
        return _write_page(log, options.html, console)
    timeline = Timeline(console.out_paint, console.width)
    try:
        _print(timeline.render(read_lines(log)), console)
    except SessionFormatError as error:
        raise _no_log(options.file, error) from error
    return status.OK


def _print(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.print(line)
        if console.closed:
            break


def _no_log(name: str, error: SessionFormatError) -> CommandError:
    return CommandError(f"{name!r}: {error}")


def _write_page(log: Path, target: str, console: Console) -> int:
    # Imported only where a page is wanted.
    from codemode.timeline_page import TimelinePage  # noqa: PLC0415

    lines = TimelinePage().render(read_lines(log))
    path = Path(target)
    for source in (log, *older_files(log)):
        with contextlib.suppress(OSError):
            if path.samefile(source):
                raise CommandError(f"--html {target!r} is the event log itself; name another file")
    try:
        if target == "-":
            _print(lines, console)
        else:
            _replace(path, lines)
    except SessionFormatError as error:
        raise _no_log(str(log), error) from error
    except OSError as error:
        raise CommandError(f"cannot write to {target!r}: {reason(error)}") from error
    return status.OK


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Write a file that is complete or not there: it takes its place when the last line is written."""
    if path.exists() and not path.is_file():
        raise CommandError(f"cannot write to {str(path)!r}: it is not a regular file")
    # Readable by its owner only, as the log is whose text it holds.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.writelines(line + "\n" for line in lines)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
