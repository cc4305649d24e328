"""`codemode call`: one tool, directly.

Knows: how a result is shown. Does not know: dispatching.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from codemode.cli import status
from codemode.cli.interrupt import Interrupt, stoppable
from codemode.cli.log import event_log
from codemode.cli.servers import mcp_files, with_mcp_servers
from codemode.cli.status import CommandError
from codemode.cli.toolset import Toolset, load_toolset, unknown_tool
from codemode.depth import MAX_DEPTH, depth_of
from codemode.receipts import bounded_arguments
from codemode.service import open_service
from codemode.settings import Settings
from codemode.terminal import escape
from sandbox.values import decode
from tool_bindings.content import blocks_text
from tool_bindings.repeated_keys import repeated_key_problem

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console
    from codemode.session_log import SessionLog
    from sandbox.values import JsonValue
    from tool_bindings.results import ToolResult


def run(options: argparse.Namespace, console: Console) -> int:
    """Call the tool and print what it gave."""
    arguments = read_arguments(options.arguments)
    protected = [*mcp_files(options), *([] if options.events is None else [Path(options.events)])]
    toolset = load_toolset(options, protected=protected)
    interrupt = Interrupt(console.tell)
    with event_log(options.events, console) as log:
        called = trio.run(_call, options, console, arguments, toolset, log, interrupt)
    if called is None:
        raise CommandError(interrupt.words, kind="abort", status=interrupt.status)
    result, times = called
    if options.json:
        console.print_json(_record(options.name, arguments, result, times))
    elif result.is_error:
        console.say(console.err_paint.bad(escape(blocks_text(result.content), keep="\n\t")))
    else:
        console.print_foreign(blocks_text(result.content))
    if not result.is_error:
        return status.OK
    return status.FAILED if interrupt.number is None else interrupt.status


def read_arguments(text: str) -> dict[str, JsonValue]:
    """Return the arguments a command line gives: a JSON object, or - for standard input.

    Raises:
        CommandError: It is not one.
    """
    if text == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed, so there are no arguments to read")
        text = sys.stdin.read()
    try:
        value = decode(text)
    except ValueError as error:
        raise CommandError(f"the arguments are not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CommandError('the arguments must be a JSON object, for example \'{"file_path": "README.md"}\'')
    depth = depth_of(value)
    if depth > MAX_DEPTH:
        raise CommandError(f"the arguments are nested {depth} levels deep; at most {MAX_DEPTH} are taken")
    twice = repeated_key_problem(text)
    if twice is not None:
        raise CommandError(f"the arguments: {twice}")
    return value


async def _call(
    options: argparse.Namespace,
    console: Console,
    arguments: dict[str, JsonValue],
    toolset: Toolset,
    log: SessionLog | None,
    interrupt: Interrupt,
) -> tuple[ToolResult, dict[str, Any]] | None:
    """Call the tool; None when a second signal cut it short. Also gives the call's id and its times."""
    seen: dict[str, Any] = {}

    def note(event: dict[str, Any]) -> None:
        if event["type"] == "tool/call":
            seen.update(id=event["data"]["callId"], began=event["time"])
        elif event["type"] == "tool/result":
            seen.update(ended=event["time"])

    async with (
        stoppable(interrupt),
        with_mcp_servers(options, toolset, console) as offered,
        open_service(
            toolset.registry,
            settings=Settings(parked_workers=0),
            session_log=log,
            on_event=note,
            spill=toolset.spill,
        ) as service,
    ):
        name: str = options.name
        if name not in offered.allowed:
            raise CommandError(f"{name!r}: {unknown_tool(name, offered.allowed)}")
        with interrupt.account_kept():
            return await service.call(name, arguments, abort=interrupt.abort), seen
    return None


def _record(
    name: str, arguments: dict[str, JsonValue], result: ToolResult, times: dict[str, Any]
) -> dict[str, JsonValue]:
    record: dict[str, JsonValue] = {
        "id": times["id"],
        "tool": name,
        "arguments": bounded_arguments(arguments),
        "status": "failed" if result.is_error else "succeeded",
        "durationMs": times["ended"] - times["began"],
    }
    if not result.is_error:
        depth = depth_of(result.value)
        if depth <= MAX_DEPTH:
            return {"ok": True, "value": result.value, "record": record}
        message = f"the value is nested {depth} levels deep; --json gives at most {MAX_DEPTH}"
        return {"ok": False, "error": {"kind": "invalid-output", "message": message}, "record": record}
    error: dict[str, JsonValue] = {"kind": "tool", "message": result.error.message}
    if result.error.info is not None:
        error["code"] = result.error.info.code
    return {"ok": False, "error": error, "record": record}
