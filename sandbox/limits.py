"""The bounds of one run, each with its unit and the setting that changes it.

Knows: names, defaults and validation of limits.
Does not know: who measures or enforces them (supervisor, worker, ledger).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final, NamedTuple

from sandbox.errors import SandboxError

MIB: Final = 1024 * 1024
_MIN_OUTPUT_BYTES: Final = 4
_MOST: Final = 2**40
"""Above this no number is a bound any more, and what the kernel is told of it would not fit."""
_SECONDS: Final = frozenset({"wall_seconds", "compute_seconds"})
"""Limits that need not be whole numbers."""


class LimitError(SandboxError, ValueError):
    """A limit is not a positive number of its unit, or a run asked for a looser one.

    Attributes:
        setting: Name of the limit as the caller writes it.
    """

    code = "limit"

    def __init__(self, setting: str, message: str) -> None:
        self.setting = setting
        super().__init__(message)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use. Every value is a ceiling; reaching it exactly is allowed."""

    wall_seconds: float = 600.0
    """Elapsed time from taking the worker, in seconds. Ends in `timeout`."""
    compute_seconds: float = 60.0
    """CPU time of the worker, in seconds; waiting for host calls is free. Ends in `timeout`."""
    memory_mb: int = 512
    """Address space beyond the idle worker's own, in MiB. A MemoryError, or `memory-limit`."""
    max_output_bytes: int = 64 * MIB
    """JSON bytes of the logs plus the result or the failure message. Ends in `output-limit`."""
    max_log_entries: int = 100_000
    """Lines of output. Ends in `output-limit`. Arbitrary."""
    max_calls: int = 10_000
    """Host calls started in one run. Ends in `call-limit`."""
    max_pending_calls: int = 1_000
    """Host calls not yet answered; one more is refused to the program. Arbitrary."""
    max_call_bytes: int = 16 * MIB
    """JSON bytes of one call's arguments, or of one result; a larger one is refused to the program."""
    max_run_bytes: int = 512 * MIB
    """Bytes of all frames a run's worker sends and receives. Ends in `call-limit`. Arbitrary."""
    max_source_bytes: int = MIB
    """UTF-8 bytes of the program's source. Ends in `policy`, before a worker is used."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            _check(field.name, value, whole=field.name not in _SECONDS)

    def tightened(self, **overrides: float | None) -> Limits:
        """Return these limits with some of them lowered for one run.

        Args:
            **overrides: New values by name; None keeps the present one.

        Raises:
            LimitError: An unknown name, a bad value, or a looser bound than the present one.
        """
        if not overrides:
            return self
        changes: dict[str, float] = {}
        names = {field.name for field in dataclasses.fields(self)}
        for name, value in overrides.items():
            if name not in names:
                raise LimitError(name, f"unknown limit {name!r}; the limits are: {', '.join(sorted(names))}")
            if value is None:
                continue
            _check(name, value, whole=name not in _SECONDS)
            present = getattr(self, name)
            if value > present:
                raise LimitError(
                    name,
                    f"{name}={value} is looser than the service's {name}={present}: a run can only tighten",
                )
            changes[name] = value
        return dataclasses.replace(self, **changes) if changes else self  # type: ignore[arg-type]  # checked above


class WorkerBudget(NamedTuple):
    """Bounds a worker is born with, because it cannot change them once locked down."""

    memory_bytes: int
    cpu_seconds: int

    @classmethod
    def of(cls, limits: Limits) -> WorkerBudget:
        """Return the birth bounds for runs under these limits."""
        return cls(limits.memory_mb * MIB, math.ceil(limits.compute_seconds))


def _check(name: str, value: Any, *, whole: bool) -> None:
    if whole:
        if type(value) is not int or not 1 <= value <= _MOST:
            raise LimitError(name, f"{name} must be a whole number from 1 to {_MOST}, not {value!r}")
    elif type(value) not in (int, float) or not 0 < value <= _MOST:
        raise LimitError(
            name, f"{name} must be a number of seconds above 0 and at most {_MOST}, not {value!r}"
        )
    if name == "max_output_bytes" and value < _MIN_OUTPUT_BYTES:
        raise LimitError(
            name,
            f"max_output_bytes must be at least {_MIN_OUTPUT_BYTES}, the size of `null`, not {value!r}",
        )
