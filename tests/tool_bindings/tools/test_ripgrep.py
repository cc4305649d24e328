"""Running the search program: bounds, failures, and never a process left behind."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys

import pytest
import trio

from tool_bindings.abort import AbortSignal
from tool_bindings.errors import ToolTimeoutError
from tool_bindings.tools import SearchError, ripgrep
from tool_bindings.tools.ripgrep import RipgrepLimits, child_environment, find_ripgrep, run_ripgrep


@pytest.fixture
def directory(root):
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def run(directory):
    async def run(*arguments, abort=None, **limits):
        return await run_ripgrep(
            arguments,
            directory_fd=directory,
            stdin_fd=None,
            abort=abort or AbortSignal(),
            limits=RipgrepLimits(**limits),
        )

    return run


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a shell script in the place of the search program."""

    def install(text):
        path = tmp_path / "rg"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(path))

    return install


class Started:
    """Sees each process as it is started."""

    def __init__(self):
        self.processes = []
        self.event = trio.Event()

    def nothing_is_left(self):
        assert self.processes, "no process was started; the test proves nothing"
        for process in self.processes:
            assert process.returncode is not None
            with pytest.raises(ProcessLookupError):
                os.kill(process.pid, 0)
        return True


@pytest.fixture
def started(monkeypatch):
    seen = Started()
    real = trio.lowlevel.open_process

    async def open_process(*arguments, **options):
        process = await real(*arguments, **options)
        seen.processes.append(process)
        seen.event.set()
        return process

    monkeypatch.setattr(trio.lowlevel, "open_process", open_process)
    return seen


def test_program_of_the_installed_package_is_found_without_path(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    find_ripgrep.cache_clear()
    try:
        found = find_ripgrep()
    finally:
        find_ripgrep.cache_clear()
    assert found is not None
    assert os.access(found, os.X_OK)


def test_program_beside_the_interpreter_is_found_without_the_package(monkeypatch, tmp_path):
    def missing(_name):
        raise importlib.metadata.PackageNotFoundError

    (tmp_path / "rg").touch(mode=0o755)
    monkeypatch.setattr(importlib.metadata, "files", missing)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_ripgrep.__wrapped__() == str(tmp_path / "rg")


def test_program_on_path_is_the_last_resort(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.metadata, "files", lambda _name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/somewhere/{name}")
    assert find_ripgrep.__wrapped__() == "/somewhere/rg"


async def test_missing_program_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: None)
    with pytest.raises(SearchError, match='install the Python package "ripgrep"') as caught:
        await run("--version")
    assert caught.value.code == "SEARCH_FAILED"


async def test_program_that_cannot_be_started_fails_without_host_paths(run, program, tmp_path):
    program("exit 0")
    (tmp_path / "rg").write_text("not a program")
    with pytest.raises(SearchError) as caught:
        await run("--version")
    assert (caught.value.code, str(caught.value)) == (
        "SEARCH_FAILED",
        "the search program could not be started: exec format error",
    )


def test_environment_is_an_allow_list(monkeypatch):
    for name in ("API_KEY", "RIPGREP_CONFIG_PATH", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("HOME", "/home/x")
    environment = child_environment()
    assert environment["LC_ALL"] == "C.UTF-8"
    assert environment["HOME"] == "/home/x"
    assert "secret" not in environment.values()


async def test_child_sees_only_the_allow_list(run, program, monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    program("env")
    assert b"secret" not in await run()


async def test_child_gets_no_other_descriptor_and_starts_in_the_directory(run, program, root):
    program("ls /proc/self/fd | wc -l; pwd -P")
    count, where = (await run()).split()
    assert int(count) <= 4  # Three standard streams, and the one that ls reads the directory with.
    assert where.decode() == str(root)


@pytest.mark.parametrize("status", [0, 1])
async def test_exit_codes_zero_and_one_are_success(run, program, status):
    """spec/tests 142."""
    program(f"echo found; exit {status}")
    assert await run() == b"found\n"


async def test_other_exit_code_fails_with_an_excerpt(run, program):
    program("echo 'rg: ./secret: Permission denied' >&2; exit 2")
    with pytest.raises(SearchError) as caught:
        await run()
    assert (caught.value.code, str(caught.value)) == (
        "SEARCH_FAILED",
        "the search failed with exit code 2: ./secret: Permission denied",
    )


@pytest.mark.parametrize("text", ["regex parse error:", "error parsing glob 'a{'"])
async def test_refused_pattern_has_its_own_code(run, program, text):
    """spec/tests 142."""
    program(f'echo "rg: {text}" >&2; exit 2')
    with pytest.raises(SearchError) as caught:
        await run()
    assert caught.value.code == "SEARCH_INVALID_PATTERN"


async def test_end_by_a_signal_fails_with_its_number(run, program):
    program("kill -9 $$")
    with pytest.raises(SearchError, match="ended by signal 9") as caught:
        await run()
    assert caught.value.code == "SEARCH_FAILED"


async def test_long_diagnostics_are_cut_to_their_end(run, program):
    program("yes 'noise noise noise' | head -c 1000000 >&2; echo 'THE END' >&2; exit 2")
    with pytest.raises(SearchError) as caught:
        await run(diagnostics_bytes=100)
    assert "THE END" in str(caught.value)
    assert len(str(caught.value)) < 300


async def test_too_much_output_is_an_overflow_and_ends_the_process(run, program, started):
    """spec/tests 142."""
    program("yes")
    with pytest.raises(SearchError, match="more than 1000 bytes") as caught:
        await run(output_bytes=1000)
    assert caught.value.code == "SEARCH_RAW_OUTPUT_OVERFLOW"
    assert started.nothing_is_left()


async def test_output_of_exactly_the_cap_is_kept(run, program):
    program("head -c 1000 /dev/zero")
    assert await run(output_bytes=1000) == bytes(1000)


async def test_abort_ends_the_process(run, program, started):
    program("exec sleep 1000")
    abort = AbortSignal()

    async def abort_when_started():
        await started.event.wait()
        abort.abort()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(abort_when_started)
        with pytest.raises(SearchError) as caught:
            await run(abort=abort)
    assert caught.value.code == "SEARCH_ABORTED"
    assert started.nothing_is_left()


async def test_cancellation_ends_the_process_and_is_not_swallowed(run, program, started):
    program("exec sleep 1000")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await started.event.wait()
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    assert started.nothing_is_left()


async def test_process_that_ignores_the_first_signal_is_killed(run, program, started):
    program("trap '' TERM; echo ready; while :; do :; done")
    with pytest.raises(SearchError) as caught:
        await run(output_bytes=1, grace_seconds=0.05)
    assert caught.value.code == "SEARCH_RAW_OUTPUT_OVERFLOW"
    assert started.processes[0].returncode == -9
    assert started.nothing_is_left()


async def test_too_long_run_times_out_and_ends_the_process(run, program, started, autojump_clock):
    program("exec sleep 1000")
    with pytest.raises(ToolTimeoutError, match="timed out after 30000ms") as caught:
        await run()
    assert (caught.value.recorded_name, caught.value.code) == ("ToolTimeoutError", "TOOL_TIMEOUT")
    assert started.nothing_is_left()


async def test_process_that_closes_its_output_and_stays_is_bounded_too(run, program, started, autojump_clock):
    program("exec sleep 1000 >/dev/null 2>&1")
    with pytest.raises(ToolTimeoutError):
        await run()
    assert started.nothing_is_left()
