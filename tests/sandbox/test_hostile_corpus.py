"""The whole hostile corpus with the kernel wall alone: plain CPython, no policy, in the locked worker.

What the language would have refused is not judged here. An item holds when the host survives, the next run
works, nothing crosses from one run to the next, and no canary was read, reached or changed.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess

import corpus
import processes
import pytest
import trio

from sandbox import values
from sandbox.limits import Limits
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import ABSENT, ErrorClass, HostFunctionError, Namespace, Program, SandboxSettings

CANARY = "canary-9b41c7"
LIMITS = Limits(
    wall_seconds=200, compute_seconds=20, memory_mb=128, max_output_bytes=1_000_000, max_run_bytes=20_000_000
)
"""Of the run that comes next, which has to end well on the busiest machine."""
HOSTILE = LIMITS.tightened(wall_seconds=2, compute_seconds=0.3)
AT_ONCE = 6

NEXT_RUN = """
import builtins, json, sys, asyncio, collections, enum, re
state = [
    sorted(vars(builtins)), sorted(vars(json)), sorted(sys.modules), len(re._cache),
    sys.getrecursionlimit(),
    json.dumps([1.5, None]), sorted(vars(collections)), str(asyncio.get_running_loop())[:20],
]
total = 0
for letter in str(state):
    total = (total * 31 + ord(letter)) % (2 ** 61 - 1)
return [await tools.add(a=1, b=2), str(total)]
"""
"""Uses a tool, and says everything about the interpreter that an earlier run could have changed: in a sum of
its own, since `hash` differs between fork servers."""


class Canaries:
    """What no program may read, reach or change."""

    def __init__(self, folder):
        self.file = folder / "canary"
        self.file.write_text(CANARY)
        os.environ["CANARY"] = CANARY
        self.descriptor = os.memfd_create("canary")
        os.write(self.descriptor, CANARY.encode())
        os.set_inheritable(self.descriptor, True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.sibling = subprocess.Popen(["sleep", "36000"])

    def touched(self):
        found = []
        if self.file.read_text() != CANARY:
            found.append("file")
        if os.environ["CANARY"] != CANARY:
            found.append("environment")
        if os.pread(self.descriptor, 100, 0) != CANARY.encode():
            found.append("descriptor")
        if self.sibling.poll() is not None:
            found.append("process")
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            pass
        else:
            found.append("listening socket")
        return found

    def close(self):
        self.sibling.kill()
        self.sibling.wait()
        self.listener.close()
        os.close(self.descriptor)
        del os.environ["CANARY"]


def shows_a_secret(outcome):
    """Return whether a run's outcome contains a canary, or the host's password file."""
    value = "" if outcome.value is ABSENT else values.encode(outcome.value).decode()
    said = "\n".join([*outcome.logs, value, repr(outcome.failure)])
    return CANARY in said or "root:x:0" in said


def tools():
    registry = corpus.fixture_registry()
    numbers = itertools.count()

    async def dispatch(call):
        result = await registry.dispatch(call.member, call.arguments, call_id=f"call-{next(numbers)}")
        if result.is_error:
            raise HostFunctionError(result.error.message)
        return result.value

    members = {name: name for name in registry.names()}
    return Namespace("tools", members, dispatch, ErrorClass("ToolCallError", ("tool_name", "toolName")))


@pytest.mark.needs_linux
async def test_every_hostile_program_is_held_by_the_kernel_wall_alone(tmp_path):
    items = corpus.load("hostile.jsonl")
    faults = {}
    canaries = Canaries(tmp_path)
    settings = SandboxSettings(limits=LIMITS, parked_workers=4, max_concurrent_runs=AT_ONCE)
    descriptors = processes.descriptors()
    async with open_test_sandbox(settings, language_wall=False) as sandbox:
        fresh = (await sandbox.run(Program(NEXT_RUN, (tools(),)))).value
        assert 3 == fresh[0]

        async def hold(item):
            namespaces = (tools(),)
            for source in (item["program"], *item.get("followups", ())):
                if shows_a_secret(await sandbox.run(Program(source, namespaces), limits=HOSTILE)):
                    faults[item["id"]] = "showed a secret"
            after = await sandbox.run(Program(NEXT_RUN, namespaces))
            if after.value != fresh:
                faults[item["id"]] = f"the next run gave {after}"

        at_once = trio.CapacityLimiter(AT_ONCE)
        async with trio.open_nursery() as nursery:

            async def one(item):
                async with at_once:
                    await hold(item)

            for item in items:
                nursery.start_soon(one, item)
        # The fork server waits for its children in its own time.
        with trio.fail_after(60):
            while processes.zombies() - {canaries.sibling.pid}:  # noqa: ASYNC110  # nobody tells us
                await trio.sleep(0.01)
    touched = canaries.touched()
    left = processes.ours() - {canaries.sibling.pid}
    held = processes.descriptors()
    canaries.close()
    assert {} == faults
    assert [] == touched
    assert set() == left
    assert descriptors == held
    assert len(items) >= 299
