"""Nothing a program can reach, by attributes or by calls, is an object it must not hold."""

from __future__ import annotations

import json
import os
import warnings

import harness
import probe
import pytest

from sandbox.facades import catalogue
from sandbox.facades.console import Console
from sandbox.guards import build_globals


def roots():
    bindings = {"tools": harness._Tools(harness._Host()), "ToolCallError": harness.ToolCallError}
    names = build_globals(bindings=bindings, stdout_write=lambda stream, text: None)
    found = {
        name: value
        for name, value in names["__builtins__"].items()
        if name not in ("__import__", "__build_class__", "super")
    }
    found.update({name: value for name, value in names.items() if name[:1] not in ("_", ":")})
    modules = {**catalogue.shared_modules(), **catalogue.program_modules(Console(lambda stream, text: None))}
    return {**found, **{f"import {name}": module for name, module in modules.items()}}


def walk_in_child(calls):
    """Walk in a child process: some calls of the walk would disturb this one."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            found = probe.walk(roots(), calls=calls)
            os.write(writer, json.dumps([found.visited, found.called, found.found[:50]]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as result:
        data = result.read()
    os.waitpid(child, 0)
    return json.loads(data)


@pytest.mark.parametrize(
    ("calls", "least"), [(0, 3000), (2, 10_000)], ids=["attributes", "attributes and calls"]
)
def test_no_module_frame_code_loader_metaclass_or_loop_is_reachable(calls, least):
    visited, _, found = walk_in_child(calls)
    assert [] == found
    assert visited >= least


def test_the_walk_finds_what_a_leaky_facade_would_leak():
    class Leaky:
        def __init__(self):
            self.inner = [os]

        def kind(self, value):
            return type(value)

    found = probe.walk({"leaky": Leaky()}, calls=2).found
    assert any("a module" in line for line in found)
    assert any("metaclass" in line for line in found)
