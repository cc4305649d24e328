"""The `codemode` command.

Knows: what must happen before anything else is imported. Does not know: the command line.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "script"]

_HELP: Final = frozenset({"-h", "--help"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    from codemode.cli import entry  # noqa: PLC0415  # see script()

    return entry.main(argv)


def _take_standard_descriptors() -> None:
    """Keep 0, 1 and 2 from standing for the next file or socket, where they were closed before the start."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # standard error's number
        pass
    os.close(descriptor)


def script() -> NoReturn:
    """Run the command line of this process and end the process."""
    # Imports leave no garbage worth collecting, and a short run is mostly imports.
    gc.disable()
    _take_standard_descriptors()
    if sys.argv[1:2] == ["run"] and _HELP.isdisjoint(sys.argv):
        # It takes as long to come up as we take to import everything else, so it starts before that.
        from sandbox import launch  # noqa: PLC0415  # see above

        launch.launch_early()
    from codemode.cli import entry  # noqa: PLC0415  # see above

    entry.script()
