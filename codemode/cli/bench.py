"""`codemode bench`: what calls cost on this machine.

Knows: options, the tool called when none is named, how the figures are shown. Does not know: measuring.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from codemode.benchmark import RATIOS, BenchmarkError, Subject, measure_subject
from codemode.cli.call import read_arguments
from codemode.cli.interrupt import Interrupt, stoppable
from codemode.cli.servers import mcp_files, with_mcp_servers
from codemode.cli.status import FAILED, OK, CommandError
from codemode.cli.toolset import Toolset, load_toolset, unknown_tool
from codemode.measurement import Samples, write_quantity
from codemode.service import open_service
from codemode.session_log import SessionLog
from codemode.settings import Settings
from codemode.terminal import one_line
from tool_bindings import Output, ToolDefinition

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console
    from sandbox.values import JsonValue

OWN_TOOL: Final = "bench_add"
OWN_ARGUMENTS: Final = {"a": 1, "b": 2}
_INTEGER: Final = {"type": "integer"}


def run(options: argparse.Namespace, console: Console) -> int:
    """Measure, and print one line per row and per ratio."""
    if options.tool is None and options.arguments is not None:
        raise CommandError("--arguments are those of a tool: name it with --tool")
    toolset = load_toolset(options, protected=mcp_files(options))
    name: str = OWN_TOOL if options.tool is None else options.tool
    if options.tool is None:
        arguments: dict[str, JsonValue] = dict(OWN_ARGUMENTS)
        if OWN_TOOL in toolset.registry.names():
            raise CommandError(f"there is a tool {OWN_TOOL!r} already; name the one to call with --tool")
        toolset.registry.register(_own_tool())
    else:
        arguments = {} if options.arguments is None else read_arguments(options.arguments)
    subject = Subject(name, arguments, options.calls)
    interrupt = Interrupt(console.tell)
    rows = trio.run(_measure, options, console, subject, toolset, interrupt)
    if rows is None:
        raise CommandError(interrupt.words, kind="abort", status=interrupt.status)
    if options.json:
        console.print_json(_record(subject, options.rounds, rows))
    else:
        _show(subject, options.rounds, rows, console)
    return OK


def _own_tool() -> ToolDefinition:
    async def add(arguments: Any, _context: object) -> int:
        return int(arguments["a"] + arguments["b"])

    schema = {
        "type": "object",
        "properties": {"a": _INTEGER, "b": _INTEGER},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    return ToolDefinition(OWN_TOOL, "Add two integers.", schema, Output(_INTEGER), add, concurrency_safe=True)


async def _measure(
    options: argparse.Namespace, console: Console, subject: Subject, toolset: Toolset, interrupt: Interrupt
) -> dict[str, Samples] | None:
    """Measure; None when a signal cut it short."""
    async with stoppable(interrupt), with_mcp_servers(options, toolset, console) as offered:
        names = sorted(offered.registry.names())
        if subject.tool not in names:
            raise CommandError(f"--tool {subject.tool!r}: {unknown_tool(subject.tool, names)}")
        # Recorded as a service records it: that is part of what a call costs.
        with (
            _progress(console) as progress,
            tempfile.TemporaryDirectory() as folder,
            SessionLog.open(Path(folder) / "events.jsonl") as log,
        ):
            async with open_service(offered.registry, settings=Settings(), session_log=log) as service:
                try:
                    return await measure_subject(
                        service, subject, options.rounds, abort=interrupt.abort, progress=progress
                    )
                except BenchmarkError as error:
                    if interrupt.number is not None:
                        return None
                    raise CommandError(str(error), kind="tool", status=FAILED) from error
    return None


@contextlib.contextmanager
def _progress(console: Console) -> Any:
    """Give what shows how far it is: rewritten on a terminal, otherwise not at all."""
    terminal = console.err.isatty()

    def show(text: str) -> None:
        if terminal:
            console.err.write(f"\r\x1b[K{text}")
            console.err.flush()

    try:
        yield show
    finally:
        show("\r\x1b[K")


def _show(subject: Subject, rounds: int, rows: dict[str, Samples], console: Console) -> None:
    what = f"{subject.calls} calls per program, {rounds} rounds; medians and quartiles"
    console.print(f"{one_line(subject.tool, 40)}: {what}")
    width = max(map(len, rows))
    for name, samples in rows.items():
        low, high = (write_quantity(value, "s") for value in samples.quartiles)
        median = write_quantity(samples.median, "s")
        console.print(f"{name:<{width}}  {median:>10}  {console.out_paint.dim(f'{low} .. {high}')}")
    console.print("")
    pairs = [(f"{row} / {against}", rows[row].median / rows[against].median) for row, against in RATIOS]
    width = max(len(text) for text, _ in pairs)
    for text, ratio in pairs:
        console.print(f"{text:<{width}}  {ratio:>8.2f}x")


def _record(subject: Subject, rounds: int, rows: dict[str, Samples]) -> dict[str, JsonValue]:
    return {
        "tool": subject.tool,
        "arguments": dict(subject.arguments),
        "calls": subject.calls,
        "rounds": rounds,
        "rows": {
            name: {"unit": "s", "median": samples.median, "quartiles": list(samples.quartiles)}
            for name, samples in rows.items()
        },
        "ratios": [
            {"row": row, "against": against, "ratio": rows[row].median / rows[against].median}
            for row, against in RATIOS
        ],
    }
