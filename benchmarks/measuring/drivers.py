"""Starts drivers and asks them for samples."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring.protocol import PACKET_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

BENCHMARKS = Path(__file__).resolve().parents[1]
START_SECONDS = 120.0
"""A driver that has said nothing by then is reported as failed. Arbitrary; slow peers take some seconds."""
SAMPLE_SECONDS = 180.0
"""The same for one sample."""


@dataclasses.dataclass(frozen=True)
class DriverSpec:
    """How one driver is started.

    Attributes:
        name: What its rows are called in front.
        command: The command; the descriptor of the channel is added as its last argument.
        note: What a reader should know of it.
    """

    name: str
    command: tuple[str, ...]
    note: str = ""


class DriverError(Exception):
    """A driver did not start, ended, or could not measure what it was asked for."""


class Driver:
    """A running driver. Made by `open_driver`."""

    def __init__(self, spec: DriverSpec, process: subprocess.Popen[bytes], wire: socket.socket) -> None:
        self.spec = spec
        self._process = process
        self._wire = wire
        self.cases: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, Any] = {}

    def greeted(self, errors: IO[bytes]) -> None:
        """Wait until it is ready."""
        try:
            message = self._receive(START_SECONDS)
        except DriverError as error:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise DriverError(f"{error}; {lines[-1] if lines else 'it printed nothing'}") from None
        self.cases, self.facts = message["cases"], message["facts"]

    def sample(self, case: str) -> list[float]:
        """Have one sample taken, or the several of a case that takes several at a time."""
        try:
            self._wire.send(json.dumps({"case": case}).encode())
        except OSError as error:
            raise DriverError(f"the driver is gone ({error.strerror})") from error
        message = self._receive(SAMPLE_SECONDS)
        if "error" in message:
            raise DriverError(message["error"])
        return [float(value) for value in message["values"]]

    def _receive(self, seconds: float) -> dict[str, Any]:
        ready, _, _ = select.select([self._wire], [], [], seconds)
        if not ready:
            self._process.kill()
            raise DriverError(f"no answer within {seconds:g} seconds")
        try:
            packet = self._wire.recv(PACKET_BYTES)
        except ConnectionResetError:
            packet = b""
        if not packet:
            raise DriverError(f"the driver ended (status {self._process.wait()})")
        return dict(json.loads(packet))


@contextlib.contextmanager
def open_driver(spec: DriverSpec) -> Iterator[Driver]:
    """Start a driver and end it afterwards.

    Raises:
        DriverError: It did not come up.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS), "PYTHONDONTWRITEBYTECODE": ""}
    with tempfile.TemporaryFile() as errors, ours:
        process = subprocess.Popen(
            [*spec.command, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )
        theirs.close()
        try:
            driver = Driver(spec, process, ours)
            driver.greeted(errors)
            yield driver
        finally:
            # Closed, our end tells it to leave; one that does not is made to.
            ours.close()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
