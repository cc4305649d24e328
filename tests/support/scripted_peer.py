"""The worker's end of a wire, scripted byte by byte, and a run that is settled against it."""

from __future__ import annotations

import json
import socket
import struct

import trio

from sandbox.limits import Limits
from sandbox.run import Run
from sandbox.stop import Stop
from sandbox.stuck_calls import StuckCalls
from sandbox.vocabulary import Namespace, Program

LIMITS = Limits(wall_seconds=200, compute_seconds=5, max_output_bytes=10_000, max_call_bytes=10_000)
BROKEN = ("worker-exit", "the worker broke its protocol and was ended")


class Anywhere:
    """A placement that places nothing."""

    def let_go(self):
        pass

    def settle(self):
        pass

    def step_aside(self):
        return False

    def wait_here(self, wait):
        wait()


class Peer:
    """The worker's end of a wire, and what a run asks of a worker process."""

    def __init__(self):
        self.socket, self.end = socket.socketpair()
        self.socket.setblocking(False)
        self.end.setblocking(False)
        self.killed = trio.Event()
        self.placement = Anywhere()

    def kill(self):
        self.killed.set()

    def compute_seconds(self):
        return 0.0

    async def wait_metered(self):
        pass

    async def wait_exit_status(self):
        return 0

    async def send(self, data):
        view = memoryview(data)
        while view:
            try:
                view = view[self.end.send(view) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.end)

    async def say(self, *messages):
        await self.send(frame(json.dumps(messages).encode()))

    async def hear(self):
        """Return the messages of the next frame."""
        header = await self._exactly(4)
        return json.loads(await self._exactly(struct.unpack("<I", header)[0]))

    async def _exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                data += self.end.recv(count - len(data))
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.end)
        return data

    def close(self):
        self.socket.close()
        self.end.close()


def frame(payload):
    return struct.pack("<I", len(payload)) + payload


async def echo(call):
    return call.arguments


SPACE = Namespace("host", {"echo": "echo()"}, echo)


def run_with(peer, namespaces=(SPACE,), limits=LIMITS, *, unsent=b"", stop=None, on_log=None, is_alone=False):
    return Run(
        peer,
        Program("", namespaces),
        limits,
        unsent=memoryview(unsent),
        stop=stop or Stop(),
        on_log=on_log,
        stuck_calls=StuckCalls(print, 1),
        is_alone=lambda: is_alone,
    )


async def settled(run):
    await run.hear(None)
    return await run.settle()


async def outcome_of(script, *, namespaces=(SPACE,), limits=LIMITS, stop=None):
    """Settle a run against a peer that follows a script; the script is cancelled when the run has ended."""
    peer = Peer()
    run = run_with(peer, namespaces, limits, unsent=frame(b"[]"), stop=stop)
    async with trio.open_nursery() as nursery:

        async def follow():
            await peer.hear()
            try:
                await script(peer)
            except (BrokenPipeError, ConnectionResetError):
                pass  # The host has had enough.

        nursery.start_soon(follow)
        with trio.fail_after(300):
            outcome = await settled(run)
        nursery.cancel_scope.cancel()
    assert peer.killed.is_set()
    peer.close()
    return outcome


def end_of(outcome):
    return (
        (None, outcome.value) if outcome.failure is None else (outcome.failure.kind, outcome.failure.message)
    )


def says(*messages):
    async def script(peer):
        await peer.say(*messages)
        await trio.sleep_forever()

    return script


def sends(data):
    async def script(peer):
        await peer.send(data)
        await trio.sleep_forever()

    return script
