"""`codemode doctor`: what protects programs on this machine.

Knows: options and streams. Does not know: how a wall is examined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemode import doctor

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the report; the status says whether `--isolation require` starts here."""
    found = doctor.report()
    if options.json:
        console.print_json(found)
    else:
        console.print(doctor.table(found, console.width))
    return doctor.exit_status(found)
