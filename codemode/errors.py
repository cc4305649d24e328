"""What the service raises to its caller, told apart by whose fault it is.

    CodeModeError
    ├ SettingsError             a setting or an argument has no valid value (you)
    ├ ServiceClosedError        the service was closed before or during the call (you)
    ├ ServiceBusyError          more runs wait for a worker than the settings allow (you, or your users)
    ├ SandboxUnavailableError   this machine cannot give workers, or not with the isolation asked for (host)
    └ InternalError             a bug of ours (us)

What a *program* does wrong is never raised: it is `RunOutcome.failure`.
"""

from __future__ import annotations

from typing import Final

from sandbox.errors import (
    BrokenWorkerError,
    ClosedSandboxError,
    IsolationUnavailableError,
    SandboxBusyError,
    SandboxError,
    UnsupportedPlatformError,
    WireProtocolError,
    WorkerStartError,
)
from sandbox.limits import LimitError


class CodeModeError(Exception):
    """Base of every error this package raises; `code` is a stable slug."""

    code = "codemode"


class SettingsError(CodeModeError):
    """A setting, a limit or an argument of a call has no valid value; nothing was started."""

    code = "settings"


class ServiceClosedError(CodeModeError):
    """The service was closed by its owner. For a worker that died, see the outcome's `worker-exit`."""

    code = "service-closed"


class ServiceBusyError(CodeModeError):
    """More runs wait for a worker than `max_queued_runs` allows; try again later."""

    code = "service-busy"


class SandboxUnavailableError(CodeModeError):
    """This machine cannot run programs, or not behind the walls that were asked for.

    Attributes:
        missing: Names of mandatory isolation steps that are not available; empty for other causes.
    """

    code = "sandbox-unavailable"

    def __init__(self, message: str, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        super().__init__(message)


class InternalError(CodeModeError):
    """Something that cannot happen did; please report it."""

    code = "internal"


_TRANSLATIONS: Final[dict[type[SandboxError], type[CodeModeError]]] = {
    LimitError: SettingsError,
    UnsupportedPlatformError: SandboxUnavailableError,
    IsolationUnavailableError: SandboxUnavailableError,
    WorkerStartError: SandboxUnavailableError,
    SandboxBusyError: ServiceBusyError,
    ClosedSandboxError: ServiceClosedError,
    BrokenWorkerError: InternalError,
    WireProtocolError: InternalError,
    SandboxError: InternalError,
}
"""Every error of the sandbox and what our caller gets; a test fails on a class that is not listed."""


def translate(error: SandboxError) -> CodeModeError:
    """Return our error for one of the sandbox's."""
    if isinstance(error, IsolationUnavailableError):
        return SandboxUnavailableError(
            f"{error}. Run with isolation='best-effort' (--isolation best-effort) to go on without it.",
            error.missing,
        )
    return _TRANSLATIONS[type(error)](str(error))
