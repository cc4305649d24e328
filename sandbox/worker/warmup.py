"""Runs before the run: what a program's run would find cold, somebody has been through already.

The fork server runs a program of many kinds, once, so that everything made at first use is made, and
shared by all workers. A forked process then still pays a page fault for each page it writes to, some
seven hundred of them for the simplest program; a parked worker pays them before anybody waits, with a
program that does little but goes all the way a program goes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from sandbox import values, wire
from sandbox.worker.program import Stage, forget_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_RICH: Final = """
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
try:
    await host.refuse(n=1)
except HostCallError as error:
    found["d"] = str(error)
return {"parts": await asyncio.gather(one(1), one(2, key="k"), host.echo(n=2)), "found": found}
"""
_SHORT: Final = "print(1)\nreturn 1"
"""Each further feature here saves its users some page faults, and costs every parked worker as many pages of
its own: a print 0.13 MB, a call 0.1 MB more, where 4 MB is the bound."""
_ROUNDS: Final = 2
"""Times the rich program is run. From the second on the interpreter adapts code to what it is used for."""


class _Mirror:
    """A channel to a supervisor that answers each call with its own arguments, or refuses it."""

    def __init__(self) -> None:
        self._answers: list[Any] = []

    def post(self, message: bytes) -> None:
        """Answer a call; drop everything else."""
        said = values.decode(message, frozen=True)
        assert isinstance(said, list)
        if said[0] == wire.CALL:
            _, call_id, _, member, arguments, _ = said
            refused = member == "refuse"
            self._answers.append(
                [wire.ERROR, call_id, "no"] if refused else [wire.RESULT, call_id, arguments]
            )

    def flush(self) -> None:
        """Have nothing to send."""

    def receive(self, timeout_seconds: float | None) -> list[Any]:
        """Hear the answers so far."""
        answers, self._answers = self._answers, []
        return answers


def warm_up(language: ModuleType) -> None:
    """Have everything made that is made at first use. For the fork server, before it forks."""
    for _ in range(_ROUNDS):
        _run(_RICH, language)
    # One for `touch_pages`, one for the program.
    language.prepare_programs(2)


def touch_pages(language: ModuleType) -> None:
    """Write to the pages that every run writes to. For each worker, before it is parked."""
    _run(_SHORT, language)


def rehearse(language: ModuleType, stage: Stage | None, is_awaited: Callable[[], bool]) -> None:
    """Go the way to a program's first statement, in a worker that was just woken for one.

    What was long not executed takes several times as long; so the program itself comes to find it warm.

    Args:
        language: As for `touch_pages`.
        stage: What the program will find, if that is known.
        is_awaited: Whether the program has come; then the rest is left out.
    """
    steps: tuple[Callable[[], object], ...] = (
        lambda: ast.parse(_SHORT),
        lambda: language.compile_program(_SHORT, frozenset()),
        lambda: stage and stage.foresee(_SHORT),
    )
    for step in steps:
        if is_awaited():
            return
        step()


def _run(source: str, language: ModuleType) -> None:
    """Run a program whose output goes nowhere, and forget it."""
    offer: dict[str, Any] = {
        "namespaces": [
            {
                "name": "host",
                "members": {"echo": "echo(*, n)", "refuse": "refuse(*, n)"},
                "noun": "function",
                "importable": True,
                "errorClass": {"name": "HostCallError", "attributes": ["member"]},
                "positional": {},
                "eager": [],
                "batches": None,
                "aliases": {},
            }
        ],
        "hints": {},
    }
    request: dict[str, Any] = {
        "source": source,
        "checkOnly": False,
        "maxOutputBytes": 1 << 20,
        "maxCallBytes": 1 << 20,
        "memoryMb": 64,
        "signatures": {},
        "parameters": {
            "host": {
                "echo": {
                    "names": ["n"],
                    "required": ["n"],
                    "isClosed": True,
                    "types": {"n": ["integer"]},
                    "choices": {},
                }
            }
        },
    }
    # As it would come over the wire.
    buffer = wire.FrameBuffer(1 << 20)
    buffer.feed(wire.pack([values.encode([wire.PREPARE, offer]), values.encode([wire.RUN, request])]))
    payload = buffer.next_payload()
    assert payload is not None
    messages: Any = values.decode(payload)
    stage = Stage(_Mirror(), messages[0][1], language)
    done: Any = values.decode(stage.run(messages[1][1]))
    assert "value" in done[1], done
    forget_loop()
