"""Everything an operator can set, in one record that is checked once.

Knows: names, units, defaults, validity. Does not know: what enforces them.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Literal, get_args

from codemode.errors import SettingsError, translate
from sandbox.limits import LimitError, Limits
from sandbox.vocabulary import SandboxSettings

Isolation = Literal["require", "best-effort"]

_LIMIT_NAMES = tuple(field.name for field in dataclasses.fields(Limits))


def _default_parked_workers() -> int:
    return max(2, os.cpu_count() or 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a service runs programs. The limits are ceilings: one run may tighten them, never loosen.

    Raises:
        SettingsError: A value is not valid; the message names it, its unit and its bound.
    """

    wall_seconds: float = 600.0
    """Elapsed time of a run, in seconds."""
    compute_seconds: float = 60.0
    """CPU time of a run's worker, in seconds; waiting for tools is free."""
    memory_mb: int = 512
    """Memory of a run beyond the idle interpreter, in MiB."""
    max_output_bytes: int = 67_108_864
    """JSON bytes of the logs plus the result, or the failure message."""
    max_log_entries: int = 100_000
    """Lines of output."""
    max_calls: int = 10_000
    """Tool calls of one run."""
    max_pending_calls: int = 1_000
    """Tool calls of one run not yet answered; one more fails in the program."""
    max_call_bytes: int = 16_777_216
    """JSON bytes of one call's arguments, or of its result; a larger one fails in the program."""
    max_run_bytes: int = 536_870_912
    """Bytes of all calls and results of one run."""
    max_source_bytes: int = 1_048_576
    """UTF-8 bytes of a program."""
    max_parallel_sub_calls: int = 10
    """Parallel-safe tool calls of one run that execute at the same time."""
    max_concurrent_runs: int = 16
    """Runs that have a worker at the same time."""
    max_queued_runs: int = 1000
    """Runs that may wait for a worker; one more is refused."""
    parked_workers: int = dataclasses.field(default_factory=_default_parked_workers)
    """Locked-down workers kept waiting for a run; by default one per core, at least 2. With 0 there is one
    for the first run, and every later run waits for its own."""
    grace_seconds: float = 5.0
    """How long a tool's thread may go on after its run has ended before it is abandoned, in seconds."""
    max_inline_bytes: int = 50_000
    """UTF-8 bytes of text a direct call or run shows when there is a spill store for the rest."""
    isolation: Isolation = "require"
    """`require` refuses to start when a mandatory wall is missing; `best-effort` goes on without it."""

    def __post_init__(self) -> None:
        try:
            self.limits()
        except LimitError as error:
            raise translate(error) from None
        for name in ("max_parallel_sub_calls", "max_concurrent_runs"):
            self._whole(name, 1)
        for name in ("max_queued_runs", "parked_workers", "max_inline_bytes"):
            self._whole(name, 0)
        if type(self.grace_seconds) not in (int, float) or not 0 <= self.grace_seconds < float("inf"):
            raise SettingsError(
                f"grace_seconds must be a number of seconds, 0 or more, not {self.grace_seconds!r}"
            )
        if self.isolation not in get_args(Isolation):
            raise SettingsError(f"isolation must be 'require' or 'best-effort', not {self.isolation!r}")

    def limits(self) -> Limits:
        """Return the bounds of a run under these settings."""
        return Limits(**{name: getattr(self, name) for name in _LIMIT_NAMES})

    def sandbox_settings(self) -> SandboxSettings:
        """Return what the sandbox needs of these settings."""
        return SandboxSettings(
            limits=self.limits(),
            isolation=self.isolation,
            parked_workers=self.parked_workers,
            max_concurrent_runs=self.max_concurrent_runs,
            max_queued_runs=self.max_queued_runs,
            grace_seconds=self.grace_seconds,
        )

    def _whole(self, name: str, minimum: int) -> None:
        value = getattr(self, name)
        if type(value) is not int or value < minimum:
            raise SettingsError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
