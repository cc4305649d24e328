"""A first run before the first run: touches the pages that a program's run will touch.

A forked process pays a page fault for each page of the interpreter it writes to, some four
hundred of them for the simplest program; a parked worker pays them before anybody waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sandbox import values, wire
from sandbox.worker.program import forget_loop, run_program

if TYPE_CHECKING:
    from types import ModuleType

_SAMPLE: Final = """
import asyncio, json, re

class Point:
    def __init__(self, x, y=2):
        self.x = x
        self._y = y

    def __repr__(self):
        return f"Point({self.x}, {self._y})"

async def one(n, *rest, key=None, **more):
    await asyncio.sleep(0)
    return [i * n for i in range(3) if i % 2] + [f"{n:>3}{key}"]

found = {"a": 1, "b": [1.5, None, True]}
try:
    found["missing"]
except KeyError as error:
    found["c"] = str(error)
for key, value in sorted(found.items(), key=lambda item: str(item[0])):
    found[key] = value
print(json.dumps(found), Point(1), re.findall(r"[0-9]+", "a1b22"))
return {"parts": await asyncio.gather(one(1), one(2, key="k")), "found": found}
"""


class _Nowhere:
    """A channel without a supervisor."""

    def post(self, message: bytes) -> None:
        """Drop the message."""

    def flush(self) -> None:
        """Have nothing to send."""

    def receive(self, timeout_seconds: float | None) -> list[Any]:
        """Hear nothing."""
        return []


def warm_up(language: ModuleType) -> None:
    """Run a sample program whose output goes nowhere, and forget it."""
    request: dict[str, Any] = {
        "source": _SAMPLE,
        "checkOnly": False,
        "maxOutputBytes": 1 << 20,
        "maxCallBytes": 1 << 20,
        "memoryMb": 64,
        "hints": {},
        "namespaces": [
            {
                "name": "tools",
                "members": {},
                "noun": "tool",
                "importable": False,
                "errorClass": None,
                "positional": {},
                "eager": [],
                "batches": None,
                "aliases": {},
                "parameters": {},
            }
        ],
    }
    done = run_program(_Nowhere(), request, language)
    values.decode(wire.pack([done])[wire.HEADER_BYTES :], frozen=True)
    forget_loop()
