"""`codemode init`: a small beginning, one file of tools and a program that calls them.

Knows: the two files and the command that runs them. Does not know: tools, programs.
"""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codemode.cli import status
from codemode.cli.status import CommandError
from codemode.private_file import reason

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console

TOOLS_NAME: Final = "my_tools.py"
PROGRAM_NAME: Final = "example.py"

_TOOLS: Final = '''\
"""Tools of your own. Programs call them as `await tools.price(item="apple")`."""

from tool_bindings import ToolRegistry

registry = ToolRegistry()

PRICES = {"apple": 0.5, "pear": 0.75, "quince": 2.0}


# The annotations become the schema that arguments and results are checked against, and the docstring is what
# a model reads. Calls of a tool may overlap only where it says so.
@registry.tool(concurrency_safe=True)
async def price(item: str) -> float:
    """Look up the price of one item, in euros."""
    if item not in PRICES:
        # The program gets this as a ToolCallError, with this text.
        raise ValueError(f"there is no item {item!r}; the items are: {', '.join(PRICES)}")
    return PRICES[item]


# A plain `def` runs in a thread. Without concurrency_safe each call waits until no other one runs, which is
# right for whatever changes something.
@registry.tool
def order(item: str, count: int = 1) -> dict[str, str | int]:
    """Order so many of one item."""
    return {"item": item, "ordered": count}
'''

_PROGRAM: Final = """\
# A program is the body of an async function: `await` and `return` stand at its top level.
# `codemode tools --tools my_tools.py:registry` lists what it can call.
import asyncio

basket = ["apple", "pear", "quince", "pear"]

# Calls that may overlap do.
prices = await asyncio.gather(*[tools.price(item=item) for item in basket])
for item, price in zip(basket, prices):
    print(f"{item:<7} {price:.2f}")

# A failing call can be caught; its text says what to do.
try:
    await tools.price(item="plum")
except ToolCallError as error:
    print("not sold:", error)

ordered = await tools.order(item="apple", count=3)
return {"total": sum(prices), "ordered": ordered}
"""


def run(options: argparse.Namespace, console: Console) -> int:
    """Write the files and say what to do next."""
    folder = Path(options.directory)
    files = {folder / TOOLS_NAME: _TOOLS, folder / PROGRAM_NAME: _PROGRAM}
    made: list[Path] = []
    written: list[Path] = []
    try:
        for path in files:
            if path.exists() or path.is_symlink():
                raise CommandError(
                    f"{str(path)!r} is there already; nothing was written. Name another directory"
                )
        made = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            # Exclusive: what appeared there a moment ago is not written over either.
            with path.open("x", encoding="utf-8") as stream:
                written.append(path)
                stream.write(text)
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()
        raise CommandError(f"cannot write to {str(folder)!r}: {reason(error)}") from error
    tools, program = files
    for path in files:
        console.print_foreign(f"wrote {path}")
    command = shlex.join(["codemode", "run", "--tools", f"{tools}:registry", str(program)])
    console.print_foreign(f"\nNext:\n  {command}")
    return status.OK
