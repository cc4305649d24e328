"""What a parked worker does with what it is told before its program."""

from __future__ import annotations

import pytest

from sandbox import wire
from sandbox.worker import main, plain
from sandbox.worker.program import forget_loop

PREPARE = [wire.PREPARE, {"namespaces": [], "hints": {}}]
ROUSE = [wire.ROUSE, None]
RUN = [
    wire.RUN,
    {
        "source": "return 1",
        "checkOnly": False,
        "maxOutputBytes": 1000,
        "maxCallBytes": 1000,
        "memoryMb": 64,
        "signatures": {},
        "parameters": {},
    },
]


class Told:
    """A channel that hears these frames, one after the other."""

    def __init__(self, *frames):
        self.frames = list(frames)
        self.looked = []

    def receive(self, timeout_seconds):
        return self.frames.pop(0)

    def has_heard(self):
        return False

    def look(self, seconds):
        self.looked.append(seconds)
        return False

    def post(self, message):
        raise AssertionError("the program neither calls nor prints")


@pytest.mark.parametrize(
    ("frames", "rehearsals"),
    [
        ([[PREPARE, RUN]], 0),
        ([[PREPARE], [ROUSE], [RUN]], 1),
        ([[ROUSE], [PREPARE, RUN]], 1),
        ([[PREPARE, ROUSE], [ROUSE], [RUN]], 2),
        ([[PREPARE], [ROUSE, ROUSE, RUN]], 0),
        ([[PREPARE], [ROUSE, ROUSE], [RUN]], 1),
    ],
    ids=["no word", "a word", "before what is offered", "twice", "with the program", "two words at once"],
)
def test_a_worker_rehearses_only_while_its_program_is_not_there(monkeypatch, frames, rehearsals):
    rehearsed = []
    monkeypatch.setattr(main, "rehearse", lambda *arguments: rehearsed.append(arguments))
    channel = Told(*frames)
    assert b'["done",{"value":1}]' == main._serve_program(channel, plain)
    forget_loop()
    assert (rehearsals, rehearsals) == (len(rehearsed), len(channel.looked))
