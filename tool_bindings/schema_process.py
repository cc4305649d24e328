"""Checks values against foreign schemas in a process that can be killed.

A schema from elsewhere may hold a regular expression that takes forever on the right string, and
Python's matcher neither stops nor lets other threads run meanwhile. So such checks happen in a
process of their own, one check at a time, each within a time limit.

Knows: running one long-lived child, asking it, and replacing it when it does not answer.
Does not know: what a fault is called (`full_explanation`), or how it is told (`full_schema`).
"""

from __future__ import annotations

import atexit
import json
import select
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from sandbox.values import encode
from tool_bindings.full_explanation import faults_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

    from tool_bindings.full_explanation import Fault

__all__ = ["CheckTimeoutError", "schema_process"]

CHECK_SECONDS: Final = 5.0
"""Seconds one check may take (arbitrary: ten thousand times what an honest one needs, on a busy machine)."""

START_SECONDS: Final = 30.0
"""Seconds the child may take to load jsonschema (arbitrary: it needs half a second)."""

_CACHED_SCHEMAS: Final = 200
"""Schemas the child keeps ready (arbitrary)."""


class CheckTimeoutError(Exception):
    """The check took too long and was stopped."""


class SchemaProcess:
    """One child that checks values; started when first needed, replaced when it hangs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def faults(self, schema: Any, value: Any) -> list[Fault]:
        """Return how a value breaks a valid schema. Blocks; call it from a thread.

        Raises:
            CheckTimeoutError: The check was stopped.
        """
        request = encode({"schema": schema, "value": value}) + b"\n"
        with self._lock:
            child = self._child if self._child is not None and self._child.poll() is None else self._start()
            assert child.stdin is not None
            try:
                child.stdin.write(request)
                child.stdin.flush()
                answer = self._read_line(child, CHECK_SECONDS)
            except (OSError, TimeoutError) as error:
                self._stop()
                msg = f"a regular expression in the schema takes more than {CHECK_SECONDS:g} s on it"
                raise CheckTimeoutError(msg) from error
        faults: list[Fault] = json.loads(answer)
        return faults

    def close(self) -> None:
        """End the child, if there is one; the next check starts another."""
        with self._lock:
            self._stop()

    def _start(self) -> subprocess.Popen[bytes]:
        # The path is handed over because -I ignores whatever made this package importable here.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from tool_bindings.schema_process import serve; serve()"
        )
        self._child = subprocess.Popen(  # noqa: S603  # our own interpreter and our own code
            [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
        )
        self._read_line(self._child, START_SECONDS)
        return self._child

    @staticmethod
    def _read_line(child: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert child.stdout is not None
        # The child writes each answer in one piece once it is complete, so waiting for the first
        # byte is waiting for the check.
        ready, _, _ = select.select([child.stdout], [], [], seconds)
        if not ready:
            raise TimeoutError
        line = child.stdout.readline()
        if not line:
            raise TimeoutError
        return line

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # Unsent bytes for a dead child; nobody misses them.


schema_process: Final = SchemaProcess()
"""The one child of this process."""

atexit.register(schema_process.close)


def serve() -> None:
    """Answer checks on standard input until it ends; the child's whole life."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # only the child needs it here
    from referencing import Registry  # noqa: PLC0415  # likewise

    sys.set_int_max_str_digits(0)  # The child is ours alone; requests hold integers of any size.
    validators: dict[bytes, Draft202012Validator] = {}
    sys.stdout.buffer.write(b"ready\n")
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        key = encode(request["schema"])
        if key not in validators:
            if len(validators) >= _CACHED_SCHEMAS:
                validators.clear()
            empty: Registry[Any] = Registry()
            validators[key] = Draft202012Validator(request["schema"], registry=empty)
        value = request["value"]
        faults = faults_of(validators[key].iter_errors(value), value)
        sys.stdout.buffer.write(encode(faults) + b"\n")  # type: ignore[arg-type]  # faults are JSON
        sys.stdout.buffer.flush()
