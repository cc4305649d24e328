"""Run one program: compile, bind, drive, and put the end into one message.

Knows: the rules of a program's result and of its end. Does not know: sockets, processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandbox import values, wire
from sandbox.values import NotJsonError
from sandbox.worker.channel import Channel
from sandbox.worker.loop import WireLoop
from sandbox.worker.namespaces import HostNamespace, make_error_class, never_awaited
from sandbox.worker.plain import ENTRY_NAME, compile_plain, plain_globals

PROGRAM_FILE = "<program>"


def run_program(channel: Channel, request: dict[str, Any], *, language_wall: bool) -> bytes:
    """Run the requested program to its end and return the encoded `done` message."""
    loop = WireLoop(channel)
    spaces = {}
    bindings: dict[str, object] = {}
    for space in request["namespaces"]:
        error = space["errorClass"] or {"name": "HostCallError", "attributes": []}
        error_class = make_error_class(error["name"], tuple(error["attributes"]))
        spaces[space["name"]] = bindings[space["name"]] = HostNamespace(
            space["name"], space["members"], noun=space["noun"], error_class=error_class, loop=loop, program_file=PROGRAM_FILE
        )
        if space["errorClass"]:
            bindings[error["name"]] = error_class

    def write(stream: str, text: str) -> None:
        channel.post(values.encode([wire.LOG, text]))
        channel.flush()

    names = plain_globals(bindings, write)
    exec(compile_plain(request["source"], PROGRAM_FILE), names)
    value = loop.run(names[ENTRY_NAME]())
    return values.encode([wire.DONE, {"value": values.from_program(value)}])
