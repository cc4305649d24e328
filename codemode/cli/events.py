"""`codemode events`: an event log as a timeline.

Knows: where it is printed. Does not know: how it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codemode.cli import status
from codemode.session_file import read_lines
from codemode.timeline import Timeline

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the log while reading it."""
    timeline = Timeline(console.out_paint, console.width)
    for line in timeline.render(read_lines(Path(options.file))):
        console.print(line)
        if console.closed:
            break
    return status.OK
