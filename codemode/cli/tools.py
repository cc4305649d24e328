"""`codemode tools`: what there is to call.

Knows: how a list of tools is shown. Does not know: what they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemode.cli import status
from codemode.cli.servers import connected_toolset
from codemode.terminal import one_line
from tool_bindings.registry import RUN_CODE

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console
    from tool_bindings import ToolDefinition


def run(options: argparse.Namespace, console: Console) -> int:
    """Print one line per tool."""
    toolset = connected_toolset(options, console)
    rows = []
    for definition in toolset.registry.definitions():
        on = definition.name in toolset.allowed
        if on or options.all:
            rows.append((definition.name, "on" if on else "off", _mode(definition), definition.description))
    if options.all:
        rows.append((RUN_CODE, "on", "exclusive", "Runs a program that calls the others; none can call it."))
    paint = console.out_paint
    width = max((len(one_line(row[0], 40)) for row in rows), default=0)
    for name, state, mode, description in rows:
        shown_state = paint.good("on ") if state == "on" else paint.dim("off")
        summary = one_line(description.strip().partition("\n")[0], max(20, console.width - width - 24))
        console.print(f"{one_line(name, 40):<{width}}  {shown_state}  {mode:<9}  {paint.dim(summary)}")
    if not rows:
        console.say("no tools; add some with --tools, or leave out `--tools none`")
    return status.OK


def _mode(definition: ToolDefinition) -> str:
    if callable(definition.concurrency_safe):
        return "either"  # Its arguments decide, call by call.
    return "parallel" if definition.concurrency_safe else "exclusive"
