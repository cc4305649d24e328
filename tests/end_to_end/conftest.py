"""Running the real command in a real process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import psutil
import pytest

TIMEOUT_SECONDS = 300
"""For a command that hangs; none of them takes a tenth of it, whatever else the machine does."""

_PR_SET_CHILD_SUBREAPER = 36


def _default_signals():
    # A background job of a shell ignores SIGINT, and so would everything it starts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    """Give an empty working directory, and a cache directory elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start():
    """Give a function that starts the command; what still runs at the end is killed."""
    running = []

    def start(*arguments, **options):
        environ = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        process = subprocess.Popen(
            [sys.executable, "-m", "codemode", *arguments],
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "env": environ,
                "preexec_fn": _default_signals,
                "start_new_session": True,
                **options,
            },
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def codemode(start):
    """Give a function that runs the command to its end and returns status, output and errors."""

    def run(*arguments, typed=None, **options):
        if typed is not None:
            options["stdin"] = subprocess.PIPE
        process = start(*arguments, **options)
        out, err = process.communicate(typed, timeout=TIMEOUT_SECONDS)
        return process.returncode, out, err

    return run


@pytest.fixture
def orphans():
    """Give a function that returns the processes that outlived the commands of this test."""
    libc = ctypes.CDLL(None, use_errno=True)
    # What loses its parent becomes our child, however it detached itself.
    assert 0 == libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = set(psutil.Process().children(recursive=True))

    def left():
        found = [child for child in psutil.Process().children(recursive=True) if child not in before]
        _, alive = psutil.wait_procs(found, timeout=60)
        return alive

    yield left
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
