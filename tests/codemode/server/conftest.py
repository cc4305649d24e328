"""`codemode serve` in a real process, spoken to in lines or over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

import processes
import psutil
import pytest

PROJECT = Path(__file__).resolve().parents[3]
NOISY_TOOLS = str(PROJECT / "tests" / "support" / "mcp_noisy_tools.py")
TIMEOUT_SECONDS = 300
"""For a test that hangs; none of them takes a tenth of it, whatever else the machine does."""

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}


def start_server(*arguments, **options):
    """Start the command with pipes at all three ends."""
    return subprocess.Popen(
        [sys.executable, "-m", "codemode", "serve", *arguments],
        **{
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            "env": {name: value for name, value in os.environ.items() if name != "CODEMODE_TOKEN"},
            **options,
        },
    )


def end(process):
    """Make sure that a process is gone and its pipes are closed."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Peer:
    """A client that writes lines and reads lines, and checks that every line is a message."""

    def __init__(self, process):
        self.process = process
        self.notifications = []
        self._lines = queue.Queue()
        self._answers = {}
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self._reader.join()
        end(self.process)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method, params=None, *, number=None):
        """Send a request, or with number=0 a notification, and return its number."""
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if number is None:
            self._number += 1
            number = self._number
        if number:
            message["id"] = number
        self.write(json.dumps(message).encode() + b"\n")
        return number

    def receive(self):
        """Return the next message, whatever it is."""
        line = self._lines.get(timeout=TIMEOUT_SECONDS)
        if line is None:
            return None
        message = json.loads(line)
        assert "2.0" == message["jsonrpc"]
        return message

    def answer(self, number):
        """Return the answer to a request; others are kept."""
        while number not in self._answers:
            message = self.receive()
            assert message is not None, self.process.stderr.read()
            if "method" in message:
                self.notifications.append(message)
            else:
                self._answers[message["id"]] = message
        return self._answers.pop(number)

    def ask(self, method, params=None):
        return self.answer(self.send(method, params))

    def shake_hands(self):
        result = self.ask("initialize", INITIALIZE)["result"]
        self.send("notifications/initialized", number=0)
        return result

    def call(self, name, arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]

    def run(self, code, **more):
        return self.call("run_code", {"code": code, "description": "a test", **more})


@contextlib.contextmanager
def open_peer(*arguments):
    peer = Peer(start_server(*arguments))
    try:
        peer.shake_hands()
        yield peer
    finally:
        peer.close()


NOISY = ("--tools", "none", "--tools", f"{NOISY_TOOLS}:registry")


@pytest.fixture(scope="module")
def peer():
    """Give a client of a server that offers the noisy tools one by one, too; made once per file."""
    with open_peer(*NOISY, "--present", "both") as peer:
        yield peer


def wait_until(condition):
    """Wait for something another process does in its own time."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def eventually():
    return wait_until


@pytest.fixture
def fresh_peer():
    return open_peer


@pytest.fixture
def descendants():
    """Give a function that lists the living processes below one."""

    def alive(process):
        try:
            found = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [child for child in found if processes.is_alive(child)]

    return alive


@pytest.fixture(scope="module")
def launch():
    """Give a function that starts the command and kills it at the end if it is still there."""

    @contextlib.contextmanager
    def launch(*arguments):
        process = start_server(*arguments)
        try:
            yield process
        finally:
            end(process)

    return launch


@pytest.fixture(scope="module")
def noisy_arguments():
    return NOISY


@pytest.fixture
def codemode_serve():
    """Give a function that runs the command to its end, for options that are wrong."""

    def run(*arguments):
        process = start_server(*arguments)
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        return process.returncode, out, err

    return run
