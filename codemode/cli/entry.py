"""Entry point: parse, run one command, turn what it raises into one line and a status.

Knows: which command is which, how errors end. Does not know: what a command does; its module is imported
when it is asked for, so that `--version` and `--help` need nothing heavy.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Final, NoReturn

from codemode.cli import status
from codemode.cli.arguments import parse
from codemode.cli.console import Console, standard
from codemode.cli.status import CommandError
from codemode.terminal import escape
from sandbox import launch

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_DEBUG_HINT: Final = "this is a bug in codemode, please report it with the lines above"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    console = standard()
    as_json = _wants_json(arguments)
    try:
        try:
            result = _run(arguments, console)
        except CommandError as error:
            result = _report(error, console, arguments, as_json=as_json)
        console.finish()
    except CommandError as error:
        # Standard output itself failed, so only the other stream is left to say so.
        return _report(error, console, arguments, as_json=False)
    except KeyboardInterrupt:
        # Before or after a run; during one, the run itself is stopped in order (see `interrupt`).
        console.say("codemode: interrupted")
        return status.SIGNALLED + signal.SIGINT
    return result


def script() -> NoReturn:
    """Run the command line of this process and end the process.

    Without the interpreter's teardown, which takes a twentieth of a second to free what the kernel frees
    at once. Everything that has an effect outside has ended by now.
    """
    result = main()
    launch.discard_early()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # None when its descriptor was closed before the start (`codemode ... >&-`).
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    os._exit(result)


def _run(arguments: list[str], console: Console) -> int:
    try:
        options = parse(arguments)
    except SystemExit as stop:
        # argparse has printed a help text or the version.
        return int(stop.code or 0)
    # What tools print is not our output: it would end up inside the JSON object.
    with contextlib.redirect_stdout(console.err):
        return _dispatch(options, console)


def _dispatch(options: argparse.Namespace, console: Console) -> int:
    if options.command == "run":
        _order_worker(options)
    try:
        # Imports leave no garbage worth collecting, and a short run is mostly imports.
        gc.disable()
        try:
            module = importlib.import_module(options.module)
        finally:
            gc.enable()
        # All of it lives to the end: no collection need look at it again.
        gc.freeze()
        return int(module.run(options, console))
    except (Exception, BaseExceptionGroup) as raised:
        error = _only(raised)
        if isinstance(error, KeyboardInterrupt):
            raise error from raised
        known = _as_command_error(error)
        if known is None:
            console.say(escape("".join(traceback.format_exception(raised)), keep="\n\t").rstrip())
            text = f"{type(error).__name__}: {error}; {_DEBUG_HINT}"
            known = CommandError(text, kind="internal", status=status.FAILED)
        raise known from raised


def _order_worker(options: argparse.Namespace) -> None:
    """Have the worker of the run made while we import what runs it."""
    from sandbox.limits import LimitError, Limits, WorkerBudget  # noqa: PLC0415  # only a run needs them

    given = {"memory_mb": options.memory_mb, "compute_seconds": options.compute_seconds}
    try:
        limits = Limits(**{name: value for name, value in given.items() if value is not None})
    except LimitError:
        return  # The run says so, in its place.
    launch.order_worker(WorkerBudget.of(limits))


def _as_command_error(error: BaseException) -> CommandError | None:
    """Return how an error ends the command, or None for one that nobody expected."""
    # Imported here: by now the command has loaded all of it anyway.
    from codemode.errors import SandboxUnavailableError, SettingsError  # noqa: PLC0415
    from codemode.session_events import SessionLogError  # noqa: PLC0415

    if isinstance(error, CommandError):
        return error
    if isinstance(error, (SettingsError, SessionLogError)):
        return CommandError(str(error))
    if isinstance(error, SandboxUnavailableError):
        return CommandError(str(error), kind="isolation", status=status.ISOLATION)
    return None


def _only(error: BaseException) -> BaseException:
    """Return the one exception inside a group, or what was given."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _report(error: CommandError, console: Console, arguments: list[str], *, as_json: bool) -> int:
    if as_json:
        record: dict[str, object] = {"ok": False, "error": {"kind": error.kind, "message": str(error)}}
        if arguments[:1] == ["run"]:
            record |= {"logs": [], "calls": []}
        console.print_json(record)  # type: ignore[arg-type]  # strings and lists
    else:
        command = f" {arguments[0]}" if arguments and arguments[0].isalpha() else ""
        console.say(f"codemode{command}: {escape(str(error))}")
    return error.status


def _wants_json(arguments: list[str]) -> bool:
    """Say whether the caller expects JSON, also when the rest of the line does not parse."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]
