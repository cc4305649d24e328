"""One worker's life: report, wait for a program, run it, say how it ended.

Knows: the order of things. Does not know: the policy, the modules, the isolation steps.
"""

from __future__ import annotations

import os
import random
import traceback
from typing import TYPE_CHECKING, Final

from sandbox import values, wire
from sandbox.worker.channel import Channel, SupervisorGoneError
from sandbox.worker.program import Stage
from sandbox.worker.warmup import rehearse, touch_pages

if TYPE_CHECKING:
    import socket
    from types import ModuleType

    from sandbox.isolation.report import StepReport

_OUT_OF_MEMORY: Final = wire.pack(
    [
        values.encode(
            [
                wire.DONE,
                {
                    "failure": {
                        "kind": "memory-limit",
                        "message": "MemoryError: the program used all its memory",
                    }
                },
            ]
        )
    ]
)
"""Ready before it is needed: when it is needed there may be no memory to build it."""
_ROUSED_SECONDS: Final = 0.0005
"""How long to look for a program that was announced before sleeping again. Arbitrary: what comes before it is
sent takes 0.3 ms."""


def serve(
    wire_socket: socket.socket, steps: tuple[StepReport, ...], language: ModuleType, *, warm: bool
) -> int:
    """Park until a program arrives, run it, report; returns the exit status of the process.

    Args:
        wire_socket: The wire.
        steps: What became of the isolation steps.
        language: `sandbox.worker.restricted`, or in some tests `sandbox.worker.plain`.
        warm: Whether to warm up at once. The supervisor may ask for it later, when nobody waits.
    """
    if warm:
        touch_pages(language)
    # Every worker is a copy of one process: without this they would all draw the same numbers.
    random.seed()
    channel = Channel(wire_socket)
    try:
        channel.post(values.encode([wire.READY, [[step.name, step.active, step.detail] for step in steps]]))
        channel.flush()
        try:
            channel.post(_serve_program(channel, language))
            channel.flush()
        except MemoryError:
            wire_socket.sendall(_OUT_OF_MEMORY)
    except (SupervisorGoneError, BrokenPipeError):
        return 0
    return 0


def _serve_program(channel: Channel, language: ModuleType) -> bytes:
    """Hear what the program will find, then the program; run it, and return the `done` message.

    Before that a worker may be asked to warm up, or be told that the program will come within a moment.
    """
    stage: Stage | None = None
    while True:
        # All at once, or the program long after the rest.
        messages = channel.receive(None)
        for number, (name, body) in enumerate(messages, 1):
            if name == wire.WARM:
                touch_pages(language)
            elif name == wire.PREPARE:
                stage = Stage(channel, body, language)
            elif name == wire.ROUSE:
                if number == len(messages):
                    rehearse(language, stage, channel.has_heard)
                    if not channel.has_heard():
                        channel.look(_ROUSED_SECONDS)
            else:
                assert stage is not None, "the supervisor prepares first"
                return stage.run(body)


def report_broken_start(descriptor: int) -> None:
    """Tell the supervisor, in place of `ready`, why this worker never got there."""
    text = traceback.format_exc(limit=-4)
    try:
        os.write(descriptor, wire.pack([values.encode([wire.READY, [[wire.BROKEN_START, False, text]]])]))
    except OSError:
        pass  # The supervisor sees the end of the wire instead.
