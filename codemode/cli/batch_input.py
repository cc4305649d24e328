"""Where the lines of a batch come from: a file or standard input, a chunk at a time.

Knows: reading without holding up anything else, what a file is recognised by. Does not know: lines.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

import trio

from codemode.cli.status import CommandError
from codemode.private_file import reason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tool_bindings import AbortSignal

_CHUNK_BYTES: Final = 262_144
"""Bytes read at a time. Arbitrary: each read is a change of threads."""


@dataclasses.dataclass(frozen=True, slots=True)
class BatchInput:
    """An open input.

    Attributes:
        descriptor: What is read from.
        name: What it is called in messages.
        lines: How many lines there are, where that can be known before.
        fingerprint: What the file is recognised by when a batch goes on; None for a stream.
    """

    descriptor: int
    name: str
    lines: int | None
    fingerprint: dict[str, Any] | None

    async def chunks(self, abort: AbortSignal) -> AsyncGenerator[bytes]:
        """Yield the input as it comes, up to its end or the signal.

        Raises:
            CommandError: It cannot be read.
        """
        # What is appended to a file meanwhile does not belong to this batch.
        left = None if self.fingerprint is None else self.fingerprint["bytes"]
        while left != 0 and not abort.aborted:
            size = _CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES)
            # A terminal or pipe may keep silent for ever.
            with trio.CancelScope() as scope:
                remove = abort.add_callback(scope.cancel)
                try:
                    chunk = await trio.to_thread.run_sync(
                        os.read, self.descriptor, size, abandon_on_cancel=True
                    )
                except OSError as error:
                    raise CommandError(f"cannot read {self.name}: {reason(error)}") from error
                finally:
                    remove()
            if scope.cancelled_caught or not chunk:
                return
            if left is not None:
                left -= len(chunk)
            yield chunk


def open_input(file: str) -> BatchInput:
    """Open the input; a regular file is read once before, to recognise it by.

    Args:
        file: A path, or `-` for standard input.

    Raises:
        CommandError: There is none.
    """
    if file == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed, so there are no calls to read")
        return BatchInput(sys.stdin.fileno(), "standard input", None, None)
    name = repr(file)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise CommandError(f"{name} is a directory, not a file of calls")
        if not stat.S_ISREG(mode):
            return BatchInput(descriptor, name, None, None)
        return BatchInput(descriptor, name, *_fingerprint(descriptor))
    except FileNotFoundError:
        raise CommandError(f"no such file: {name}") from None
    except OSError as error:
        raise CommandError(f"cannot read {name}: {reason(error)}") from error
    except ValueError:
        raise CommandError(f"cannot read {name}: no path holds a zero byte") from None


def _fingerprint(descriptor: int) -> tuple[int, dict[str, Any]]:
    digest, size, lines, last = hashlib.sha256(), 0, 0, b""
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
        lines += chunk.count(b"\n")
        last = chunk
    os.lseek(descriptor, 0, os.SEEK_SET)
    if last and not last.endswith(b"\n"):
        lines += 1
    return lines, {"bytes": size, "sha256": digest.hexdigest()}
