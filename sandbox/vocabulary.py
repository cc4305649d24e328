"""The words of the seam between a sandbox and whoever uses it.

A sandbox takes a `Program` with `Namespace`s of host functions and gives back an `Outcome`.
Knows: the shapes. Does not know: processes, frames, tools.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

from sandbox.limits import Limits
from sandbox.values import JsonValue

FailureKind = Literal[
    "policy",
    "exception",
    "timeout",
    "memory-limit",
    "output-limit",
    "call-limit",
    "invalid-output",
    "abort",
    "worker-exit",
]
"""The closed set of ways a run can fail. Told apart by what ended it, not by how bad it is."""


class _Absent:
    """Type of `ABSENT`; there is one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()
"""The program returned nothing. `None` is the JSON value null, which is a result."""


@dataclasses.dataclass(frozen=True, slots=True)
class HostCall:
    """One request from a program, already rebuilt from checked bytes."""

    id: int
    namespace: str
    member: str
    arguments: JsonValue
    line: int | None
    """Program line that made the call, as the worker claims it: a hint, not a fact."""


class HostFunctionError(Exception):
    """Raised by a host function to fail one call inside the program.

    The program sees the namespace's error class with this message and nothing else.
    """


HostFunction = Callable[[HostCall], Awaitable[JsonValue]]
"""Answers one call with a lossless JSON value, or raises `HostFunctionError`."""


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorClass:
    """The exception class a namespace's failed calls raise inside the program."""

    name: str
    member_attributes: tuple[str, ...] = ()
    """Attributes of the exception that hold the member's name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Namespace:
    """One global of the program whose members are host functions."""

    name: str
    members: Mapping[str, str]
    """Member name to its one-line signature, shown when a call has the wrong form."""
    function: HostFunction
    """Answers calls of every member."""
    error_class: ErrorClass | None = None
    importable: bool = False
    """Whether `import <name>` in the program gives the same object."""
    noun: str = "function"
    """What error texts call a member, e.g. "tool"."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """Source text one run executes, and what it may call."""

    source: str
    namespaces: tuple[Namespace, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What to write instead of something that is not there, by its name (`open`, `requests`, ...)."""


@dataclasses.dataclass(frozen=True, slots=True)
class TraceFrame:
    """One frame of the program's own code."""

    line: int
    function: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why a run did not end well."""

    kind: FailureKind
    message: str
    error_type: str | None = None
    line: int | None = None
    hint: str | None = None
    traceback: tuple[TraceFrame, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """What a run used, as the host measured it."""

    wall_seconds: float
    compute_seconds: float
    calls: int
    output_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended."""

    logs: tuple[str, ...]
    usage: Usage
    value: JsonValue | _Absent = ABSENT
    failure: Failure | None = None
    hint: str | None = None
    """Advice about a run that succeeded, e.g. that its last value was not JSON."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """How a sandbox keeps its workers; the bounds of runs are in `limits`."""

    limits: Limits = dataclasses.field(default_factory=Limits)
    isolation: Literal["require", "best-effort"] = "require"
    parked_workers: int = 2
    """Locked-down workers kept waiting for a run."""
    max_concurrent_runs: int = 16
    """Runs that have a worker at the same time. Arbitrary; each idle worker costs a few MiB."""
    max_queued_runs: int = 1000
    """Runs that may wait for a worker; one more raises `SandboxBusyError`."""
