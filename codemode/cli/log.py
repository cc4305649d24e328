"""The event log a command writes when `--events` asks for one.

Knows: opening, closing, and saying what went wrong with it. Does not know: what is recorded.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codemode.cli.console import Console
    from codemode.session_log import SessionLog


@contextlib.contextmanager
def event_log(path: str | None, console: Console) -> Iterator[SessionLog | None]:
    """Open the log at `path`, or give None where there is no path; say at the end what it lacks."""
    if path is None:
        yield None
        return
    # Imported only where a log is written: a short run is mostly imports.
    from codemode.session_log import SessionLog  # noqa: PLC0415

    log = SessionLog.open(path)
    known = len(log.losses)
    if log.repaired:
        console.say(f"codemode: {path!r} had been cut off; {log.repaired} closing events were added")
    try:
        yield log
    finally:
        log.close()
        for loss in log.losses[known:]:
            console.say(f"codemode: the event log {path!r} is incomplete: {loss}")
