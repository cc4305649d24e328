"""Tools that do everything that would break the framing of a protocol on standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trio

from tool_bindings import ToolRegistry

registry = ToolRegistry()

print("printed while being imported")


@registry.tool
def noisy(word: str) -> str:
    """Print the word on every way to standard output, and return it."""
    print(word)
    sys.__stdout__.write(word + "\n")
    sys.__stdout__.flush()
    os.write(1, word.encode() + b"\n")
    subprocess.run(["sh", "-c", f"echo {word}; cat"], check=True)
    return word


def _touch(name):
    Path(name).touch()


@registry.tool(concurrency_safe=True)
async def hold(mark: str) -> None:
    """Leave one file when begun and another when stopped, and never end by itself."""
    await trio.Path(mark + ".began").write_text("")
    try:
        await trio.sleep_forever()
    finally:
        # Nothing may be awaited here any more.
        _touch(mark + ".stopped")


@registry.tool(concurrency_safe=True)
async def wait_for(mark: str) -> None:
    """Wait until there is such a file."""
    while not await trio.Path(mark).exists():  # noqa: ASYNC110  # there is no event across processes
        await trio.sleep(0.01)


@registry.tool
def refuse() -> int:
    """Fail."""
    raise ValueError("it cannot be done")
