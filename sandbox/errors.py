"""What can go wrong around a run, told apart by whose fault it is.

    SandboxError
    ├ UnsupportedPlatformError    the host is no Linux
    ├ IsolationUnavailableError   the host cannot give the isolation asked for
    ├ WorkerStartError            the host could not start a worker
    ├ SandboxBusyError            the caller has more runs waiting than it allowed
    ├ ClosedSandboxError          the caller closed the sandbox before or during the call
    └ BrokenWorkerError           the worker's side failed
      └ WireProtocolError         ... by sending what no worker of ours sends

What a *program* does wrong is never raised: it is a `Failure` in the `Outcome`.
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base of every error this package raises; `code` is a stable slug."""

    code = "sandbox"


class UnsupportedPlatformError(SandboxError):
    """The operating system cannot have workers at all; the message names the way out."""

    code = "unsupported-platform"


class IsolationUnavailableError(SandboxError):
    """This machine lacks a mandatory wall and `isolation="require"` was asked for.

    Attributes:
        missing: Names of the isolation steps that are mandatory and not available.
    """

    code = "isolation-unavailable"

    def __init__(self, missing: tuple[str, ...], detail: str) -> None:
        self.missing = missing
        super().__init__(detail)


class WorkerStartError(SandboxError):
    """The fork server or a worker did not come up; see `__cause__` and the message."""

    code = "worker-start"


class SandboxBusyError(SandboxError):
    """More runs are waiting for a worker than `max_queued_runs` allows."""

    code = "sandbox-busy"


class ClosedSandboxError(SandboxError):
    """The sandbox was closed by its owner; for a worker that died, see `BrokenWorkerError`."""

    code = "sandbox-closed"


class BrokenWorkerError(SandboxError):
    """The worker died or misbehaved; the run that used it settles as `worker-exit`."""

    code = "broken-worker"


class WireProtocolError(BrokenWorkerError):
    """Bytes arrived that no worker of ours sends: treat the peer as hostile and end it."""

    code = "wire-protocol"
