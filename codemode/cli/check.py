"""`codemode check`: is something in this program bound to fail?

Knows: how the answer is shown. Does not know: how a program is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from codemode.cli import status
from codemode.cli.failures import say_verdict
from codemode.cli.program import read_program
from codemode.cli.servers import connected_toolset
from codemode.outcome import failure_json
from codemode.service import open_service
from codemode.settings import Settings

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console
    from codemode.cli.toolset import Toolset
    from sandbox.vocabulary import Failure


def run(options: argparse.Namespace, console: Console) -> int:
    """Judge the program and say what is wrong with it."""
    settings = Settings(parked_workers=0)
    source = read_program(options.file, options.code, max_bytes=settings.max_source_bytes)
    failure = trio.run(_check, source, connected_toolset(options, console), settings)
    if options.json:
        record: dict[str, Any] = {"ok": failure is None}
        if failure is not None:
            record["error"] = failure_json(failure)
        console.print_json(record)
    elif failure is not None:
        say_verdict(failure, console)
    else:
        console.print_foreign("nothing in it is bound to fail")
    return status.OK if failure is None else status.FAILED


async def _check(source: str, toolset: Toolset, settings: Settings) -> Failure | None:
    async with open_service(toolset.registry, settings=settings) as service:
        return await service.check(source, tools=toolset.allowed)
