"""A worker holds nothing of the host's side: what it has not loaded, no escape can use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import Program

HOST_SIDE = {
    "trio",
    "psutil",
    "cattrs",
    "jsonschema",
    "attr",
    "attrs",
    "tool_bindings",
    "codemode",
}


def host_side(modules):
    return sorted({module.partition(".")[0] for module in modules} & HOST_SIDE)


@pytest.mark.needs_linux
async def test_a_running_worker_has_loaded_nothing_of_the_hosts_side():
    # Without the language wall, since with it no program sees what is loaded.
    async with open_test_sandbox(language_wall=False) as sandbox:
        outcome = await sandbox.run(Program("import sys\nreturn sorted(sys.modules)"))
    assert outcome.failure is None
    assert "sandbox.worker.main" in outcome.value
    assert "sandbox.supervisor" not in outcome.value
    assert [] == host_side(outcome.value)


def test_what_the_fork_server_loads_for_the_language_is_nothing_of_the_hosts_side():
    program = "import sys, sandbox.zygote, sandbox.worker.restricted; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "sandbox.policy" in modules
    assert "sandbox.supervisor" not in modules
    assert [] == host_side(modules)
