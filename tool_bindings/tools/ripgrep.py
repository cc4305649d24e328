"""Run the `rg` program of the ripgrep package and collect its output within bounds.

The process never outlives the call: whatever ends the wait, it is killed and reaped first.

Knows: where the program is, its exit statuses, its environment, and its bounds.
Does not know: globs, matches, or paths.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from tool_bindings.errors import HarnessError, ToolTimeoutError
from tool_bindings.tools.errors import SearchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tool_bindings.abort import AbortSignal

__all__ = ["RipgrepLimits", "child_environment", "find_ripgrep", "run_ripgrep"]

_INHERITED = ("PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR")
_EXCERPT_CHARACTERS = 2000  # Of the program's own diagnostics, in a message. Arbitrary.
_INVALID_PATTERN_MARKS = ("regex parse error", "error parsing glob", "not allowed in a regex")
_PIECE_BYTES = 65_536  # One pipe's worth.


class RipgrepLimits(NamedTuple):
    """Bounds of one run.

    Attributes:
        output_bytes: Most bytes it may print.
        diagnostics_bytes: How many bytes of its last error output are kept.
        timeout_seconds: How long it may take.
        grace_seconds: Time between SIGTERM and SIGKILL.
    """

    output_bytes: int = 20_000_000
    diagnostics_bytes: int = 65_536
    timeout_seconds: float = 30.0
    grace_seconds: float = 3.0


@cache
def find_ripgrep() -> str | None:
    """Find the program: the installed package's own, one beside the interpreter, or one on PATH."""
    # Slow to import, and needed by a first search only.
    import importlib.metadata  # noqa: PLC0415

    try:
        files = importlib.metadata.files("ripgrep") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    owned = [Path(str(file.locate())) for file in files if file.name in ("rg", "rg.exe")]
    for candidate in (*owned, Path(sys.executable).parent / "rg"):
        if os.access(candidate, os.X_OK):
            return str(candidate)
    return shutil.which("rg")


def child_environment() -> dict[str, str]:
    """Return what a search program may know of this process's environment."""
    return {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}


class _Run:
    """What one process has printed, and why it was stopped early."""

    def __init__(self, limits: RipgrepLimits) -> None:
        self._limits = limits
        self.output = bytearray()
        self.diagnostics = bytearray()
        self.stopped: HarnessError | None = None
        self.scope = trio.CancelScope()

    def stop(self, error: SearchError) -> None:
        self.stopped = error
        self.scope.cancel()

    async def collect_output(self, stream: trio.abc.ReceiveStream) -> None:
        while piece := await stream.receive_some(_PIECE_BYTES):
            if len(self.output) + len(piece) > self._limits.output_bytes:
                self.stop(
                    SearchError(
                        "SEARCH_RAW_OUTPUT_OVERFLOW",
                        f"the search printed more than {self._limits.output_bytes} bytes; "
                        "use a narrower pattern or path",
                    )
                )
                return
            self.output += piece

    async def collect_diagnostics(self, stream: trio.abc.ReceiveStream) -> None:
        while piece := await stream.receive_some(_PIECE_BYTES):
            self.diagnostics += piece
            del self.diagnostics[: -self._limits.diagnostics_bytes]

    async def watch(self, abort: AbortSignal) -> None:
        await abort.wait()
        self.stop(_aborted())


def _aborted() -> SearchError:
    return SearchError("SEARCH_ABORTED", "the search was aborted before it finished")


async def run_ripgrep(
    arguments: Sequence[str],
    *,
    directory_fd: int,
    stdin_fd: int | None,
    abort: AbortSignal,
    limits: RipgrepLimits,
) -> bytes:
    """Run the program to its end and return what it printed.

    Args:
        arguments: Its arguments; nothing is interpreted by a shell.
        directory_fd: The directory it starts in, entered by descriptor.
        stdin_fd: What it reads as standard input; None gives it nothing.
        abort: Stops it.
        limits: Its bounds.

    Returns:
        Everything it printed. Nothing found is success with empty or matchless output.

    Raises:
        SearchError: It could not be started, refused the pattern, failed, printed too much, or was aborted.
        ToolTimeoutError: It took too long.
    """
    program = find_ripgrep()
    if program is None:
        raise SearchError(
            "SEARCH_FAILED", 'the search program rg is not installed; install the Python package "ripgrep"'
        )
    try:
        process = await trio.lowlevel.open_process(
            [program, *arguments],
            stdin=subprocess.DEVNULL if stdin_fd is None else stdin_fd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=f"/proc/self/fd/{directory_fd}",  # A path could lead elsewhere by now.
            env=child_environment(),
        )
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "the operating system refused"
        raise SearchError("SEARCH_FAILED", f"the search program could not be started: {reason}") from None
    run = _Run(limits)
    try:
        await _communicate(process, run, abort, limits)
    except BaseException as error:
        # A dispatch also cancels the body when its signal fires; the signal's own error says more.
        if abort.aborted and _only_cancelled(error):
            raise _aborted() from None
        raise
    finally:
        await _end(process, limits.grace_seconds)
    if run.stopped is not None:
        raise run.stopped
    if process.returncode not in (0, 1):
        raise _failure(process.returncode, bytes(run.diagnostics))
    return bytes(run.output)


def _only_cancelled(error: BaseException) -> bool:
    """Tell a cancellation, alone or as nurseries gather it, from a failure."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


async def _communicate(process: trio.Process, run: _Run, abort: AbortSignal, limits: RipgrepLimits) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    with trio.move_on_after(limits.timeout_seconds) as deadline, run.scope:
        async with trio.open_nursery() as watcher:
            watcher.start_soon(run.watch, abort)
            async with trio.open_nursery() as readers:
                readers.start_soon(run.collect_output, process.stdout)
                readers.start_soon(run.collect_diagnostics, process.stderr)
            await process.wait()
            watcher.cancel_scope.cancel()
    if deadline.cancelled_caught:
        # The error of the timeout policy, since it is the same fact whoever keeps the time.
        run.stopped = ToolTimeoutError(
            f"tool call timed out after {limits.timeout_seconds * 1000:.0f}ms; use a narrower pattern or path"
        )


async def _end(process: trio.Process, grace_seconds: float) -> None:
    """Leave no process and no descriptor behind."""
    with trio.CancelScope(shield=True):
        if process.returncode is None:
            process.terminate()
            with trio.move_on_after(grace_seconds):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                await stream.aclose()


def _failure(status: int | None, diagnostics: bytes) -> SearchError:
    text = diagnostics.decode("utf-8", "replace").strip()
    text = "\n".join(line.removeprefix("rg: ") for line in text.splitlines())
    excerpt = text if len(text) <= _EXCERPT_CHARACTERS else f"{text[:_EXCERPT_CHARACTERS]} …"
    if any(mark in text for mark in _INVALID_PATTERN_MARKS):
        return SearchError("SEARCH_INVALID_PATTERN", f"the pattern is not valid: {excerpt}")
    if status is not None and status < 0:
        return SearchError("SEARCH_FAILED", f"the search program was ended by signal {-status}")
    return SearchError(
        "SEARCH_FAILED", f"the search failed with exit code {status}: {excerpt or 'no diagnostics'}"
    )
