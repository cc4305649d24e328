"""Exit statuses of the command, and the error that ends it with one of them.

Knows: numbers and their meaning. Does not know: how an error is shown.
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""The program, or the one tool that was called, failed."""
USAGE: Final = 2
"""An option or an input is wrong; nothing was run."""
ISOLATION: Final = 3
"""This host cannot give the isolation asked for."""
SIGNALLED: Final = 128
"""Added to the number of the signal that stopped the command, as shells do: 130 for Ctrl-C."""


class CommandError(Exception):
    """Ends the command with one line of text.

    Attributes:
        kind: What sort of error, as `--json` names it.
        status: The exit status.
    """

    def __init__(self, message: str, *, kind: str = "usage", status: int = USAGE) -> None:
        self.kind = kind
        self.status = status
        super().__init__(message)
