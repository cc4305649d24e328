"""`codemode run`: one program, its output, its receipt.

Knows: how an outcome is shown. Does not know: how a program is run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from codemode.cli import status
from codemode.cli.failures import say_failure
from codemode.cli.interrupt import Interrupt, stoppable
from codemode.cli.log import event_log
from codemode.cli.program import read_program
from codemode.cli.servers import mcp_files, with_mcp_servers
from codemode.cli.status import CommandError
from codemode.cli.toolset import Toolset, load_toolset
from codemode.depth import MAX_DEPTH, depth_of
from codemode.service import DEFAULT_DESCRIPTION, open_service
from codemode.settings import Settings
from codemode.terminal import ProgressLine, escape
from sandbox.vocabulary import ABSENT
from tool_bindings.content import render_value

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console
    from codemode.cli.live import LiveView
    from codemode.outcome import RunOutcome
    from codemode.session_log import SessionLog


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the program and print what came of it."""
    settings = _settings(options)
    source = read_program(options.file, options.code, max_bytes=settings.max_source_bytes)
    description = DEFAULT_DESCRIPTION if options.description is None else options.description
    if not description.strip():
        raise CommandError("--description is blank; say in a few words what the program is for")
    protected = [*mcp_files(options), *([] if options.events is None else [Path(options.events)])]
    toolset = load_toolset(options, protected=protected)
    progress = live = None
    if console.shows_output and not options.json:
        # Imported only for a person: a short run is mostly imports.
        from codemode.cli.live import LiveView  # noqa: PLC0415

        progress = ProgressLine(console.err, time.monotonic) if console.watched else None
        live = LiveView(console, progress)
    interrupt = Interrupt(console.tell if live is None else live.tell)
    with event_log(options.events, console) as log:
        outcome = trio.run(
            _run, options, console, source, description, toolset, settings, log, interrupt, progress, live
        )
    return _show(outcome, interrupt, console, as_json=options.json, shown=0 if live is None else live.lines)


def _settings(options: argparse.Namespace) -> Settings:
    given = {
        "wall_seconds": options.wall_seconds,
        "compute_seconds": options.compute_seconds,
        "memory_mb": options.memory_mb,
        "max_output_bytes": options.max_output_bytes,
        "isolation": options.isolation,
    }
    # One program needs one worker: the first, which there is in any case.
    return Settings(parked_workers=0, **{name: value for name, value in given.items() if value is not None})


async def _run(
    options: argparse.Namespace,
    console: Console,
    source: str,
    description: str,
    toolset: Toolset,
    settings: Settings,
    log: SessionLog | None,
    interrupt: Interrupt,
    progress: ProgressLine | None,
    live: LiveView | None,
) -> RunOutcome | None:
    """Run the program; None when a second signal cut it short."""
    on_event = None if progress is None else progress.on_event
    try:
        async with (
            stoppable(interrupt) as nursery,
            with_mcp_servers(options, toolset, console) as offered,
            open_service(
                toolset.registry, settings=settings, session_log=log, on_event=on_event, spill=toolset.spill
            ) as service,
        ):
            if live is not None:
                nursery.start_soon(live.redraw)
            with interrupt.account_kept():
                return await service.run_code(
                    source,
                    description=description,
                    tools=offered.allowed,
                    abort=interrupt.abort,
                    on_log=None if live is None else live.on_log,
                    on_progress=None if progress is None else progress.on_progress,
                )
    finally:
        if live is not None:
            live.close()
    return None


def _show(
    outcome: RunOutcome | None, interrupt: Interrupt, console: Console, *, as_json: bool, shown: int
) -> int:
    if outcome is None:
        raise CommandError(interrupt.words, kind="abort", status=interrupt.status)
    if as_json:
        record = _bounded(outcome.to_json())
        console.print_json(record)
        ok = bool(record["ok"])
    else:
        _show_text(outcome, console, shown)
        ok = outcome.ok
    if ok:
        return status.OK
    return status.FAILED if interrupt.number is None else interrupt.status


def _bounded(record: dict[str, Any]) -> dict[str, Any]:
    """Refuse a result that common JSON readers cannot take in."""
    depth = depth_of(record.get("result"))
    if depth <= MAX_DEPTH:
        return record
    del record["result"]
    message = f"the result is nested {depth} levels deep; --json gives at most {MAX_DEPTH}"
    error = {
        "kind": "invalid-output",
        "message": message,
        "hint": "return lists and dicts that are less deep",
    }
    return {**record, "ok": False, "error": error}


def _show_text(outcome: RunOutcome, console: Console, shown: int) -> None:
    for line in outcome.logs[shown:]:
        console.print_foreign(line)
    if outcome.failure is not None:
        say_failure(outcome.failure, outcome.calls, console)
        return
    if outcome.result is not ABSENT:
        console.print_foreign(render_value(outcome.result))
    if outcome.hint is not None:
        console.say(f"hint: {escape(outcome.hint)}")
    if console.interactive:
        took = f"{outcome.duration_ms / 1000:.2f} s"
        console.say(console.err_paint.dim(f"ok, {took}, {_plural(len(outcome.calls), 'tool call')}"))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
