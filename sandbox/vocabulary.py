"""The words of the seam between a sandbox and whoever uses it.

A sandbox takes a `Program` with `Namespace`s of host functions and gives back an `Outcome`.
Knows: the shapes. Does not know: processes, frames, tools.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import keyword
import math
import os
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from sandbox.limits import LimitError, Limits
from sandbox.values import JsonValue

if TYPE_CHECKING:
    from sandbox.handover import Begun
    from sandbox.preflight.spaces import Parameters

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


class Cancellable(Protocol):
    """A cancel scope, or what stands for one."""

    def cancel(self) -> object:
        """Cancel it."""


class HostCall:
    """One request from a program, already rebuilt from checked bytes.

    Attributes:
        id: Number of the call in its run, growing.
        namespace: Name of the namespace.
        member: Name of the member, which exists.
        arguments: A lossless JSON value that nobody else holds.
        line: Program line that made the call, as the worker claims it: a hint, not a fact.
        cut_off: Whether `cancel` was called.
        answered: Whether `answer` was called.
        scope: What `cancel` cancels: the scope of whatever task awaits the function.
    """

    __slots__ = (
        "_abandoned",
        "_listener",
        "_on_answer",
        "answered",
        "arguments",
        "cut_off",
        "hold_wall",
        "id",
        "line",
        "member",
        "namespace",
        "scope",
    )

    def __init__(
        self,
        id: int,  # noqa: A002  # the wire's own word
        namespace: str,
        member: str,
        arguments: JsonValue,
        line: int | None,
        scope: Cancellable,
        on_answer: Callable[[HostCall, JsonValue], None],
        hold_wall: Callable[[bool], None] = lambda _held: None,
    ) -> None:
        self.id = id
        self.namespace = namespace
        self.member = member
        self.arguments = arguments
        self.line = line
        self.cut_off = False
        self.answered = False
        self._on_answer = on_answer
        self.scope = scope
        self._abandoned = False
        self._listener: Callable[[], None] | None = None
        self.hold_wall = hold_wall
        """Stops the run's wall clock (True), or lets it go on: while a person is asked, nobody is slow."""

    def answer(self, value: JsonValue) -> None:
        """Give the program its answer now: it goes on while the function does what is left to do.

        What the function returns in the end is not looked at then, and nothing cuts it off any more: the run
        waits for it. Once at most.
        """
        self.answered = True
        self._on_answer(self, value)

    def cancel(self) -> None:
        """Cut off what the function waits for, and all it waits for from then on.

        Nothing else does. A function whose namespace `ends_calls` calls this where its work may be cut off;
        once it has, it shields what it still has to do.
        """
        self.cut_off = True
        self.scope.cancel()

    def on_abandoned(self, listener: Callable[[], None]) -> None:
        """Call `listener` once when nobody waits for the answer any more, or now if that is so.

        For functions that end their work in their own way, see `Namespace.ends_calls`.
        """
        self._listener = listener
        if self._abandoned:
            listener()

    def abandon(self) -> None:
        """Say that nobody waits for the answer any more. For the supervisor."""
        if not self._abandoned:
            self._abandoned = True
            if self._listener is not None:
                self._listener()


class HostFunctionError(Exception):
    """Raised by a host function to fail one call inside the program.

    The program sees the namespace's error class with this message and nothing else.
    """


HostFunction = Callable[[HostCall], Awaitable[JsonValue]]
"""Answers one call with a lossless JSON value, or raises `HostFunctionError`.

Called in the order the calls arrived, so a plain function can keep that order; it must not block.
What it returns is awaited in a task of its own, which is cancelled when nobody waits any more.
"""

Answer: TypeAlias = JsonValue | HostFunctionError
"""What a call is answered: its value, or what failed it."""


class Step(NamedTuple):
    """How far the calls of a batch have come.

    Attributes:
        answers: Calls that are over since the last step.
        waiting: A call that cannot go on at once: what a `HostFunction` returns, or one that has begun and
            waits. It is awaited elsewhere while the others go on.
        is_turn: Whether other tasks should have their turn.
    """

    answers: list[tuple[HostCall, Answer]]
    waiting: tuple[HostCall, Awaitable[JsonValue] | Begun[JsonValue]] | None = None
    is_turn: bool = False


ManyFunction = Callable[[Iterator[HostCall], Callable[[], bool]], Generator[Step, None, None]]
"""Answers the calls of one batch in steps, without waiting for anything in between.

The second argument says whether the run is over; then the next step comes at once. Calls are taken in order,
when they are begun. The next step may be asked for by another task, in whose scope the calls then are. Closed
before it has come to its end, it ends the calls it has begun.
"""


_EXCEPTION_ATTRIBUTES: Final = frozenset({"args", "message", "name", "stack", "with_traceback", "add_note"})
"""Names an exception has already, in Python or where its log is read."""


@functools.cache  # There are few, and the same ones for every program.
def _require_global_name(name: str) -> None:
    """Refuse what a program cannot say, or what already means something to it."""
    is_plain = name.isascii() and name.isidentifier() and not name.startswith("_")
    if not is_plain or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise ValueError(f"{name!r} cannot be a global of a program: it must be a plain ASCII identifier")
    if hasattr(builtins, name):
        raise ValueError(f"{name!r} cannot be a global of a program: Python has one of that name")


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorClass:
    """The exception class a namespace's failed calls raise inside the program."""

    name: str
    member_attributes: tuple[str, ...] = ()
    """Attributes of the exception that hold the member's name."""

    def __post_init__(self) -> None:
        _require_global_name(self.name)
        for attribute in self.member_attributes:
            taken = attribute in _EXCEPTION_ATTRIBUTES or attribute.startswith("_")
            if taken or not attribute.isidentifier() or keyword.iskeyword(attribute):
                raise ValueError(f"error class {self.name!r}: {attribute!r} cannot hold the member's name")


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
    positional: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """Members that take arguments by position too, and the names those stand for."""
    many: ManyFunction | None = None
    """Answers calls that came together, of every member; without it they are answered one by one."""
    ends_calls: bool = False
    """Whether the function itself ends calls that nobody waits for any more, see `HostCall.on_abandoned`.
    Otherwise their scope is cancelled for it."""
    eager: frozenset[str] = frozenset()
    """Members whose call starts when it is made, awaited or not: reports nobody waits for."""
    aliases: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """Other spellings, and the members each may stand for; one with several is refused as ambiguous.
    With a dot between two identifiers it is written as an attribute of an attribute, else as an item."""
    batches: str | None = None
    """Name of a namespace whose members this one calls many at a time through a member `batch`."""
    parameters: Mapping[str, Parameters] = dataclasses.field(default_factory=dict)
    """What is certain about members' arguments, for finding impossible calls before a program starts."""
    signatures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Signatures that take the place of those in `members`. These two are of one program; all else can be
    the same for many, is told a worker ahead, and must not change."""

    def __post_init__(self) -> None:
        _require_global_name(self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """Source text one run executes, and what it may call."""

    source: str
    namespaces: tuple[Namespace, ...] = ()
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What to write instead of something that is not there, by its name (`open`, `requests`, ...)."""
    check_only: bool = False
    """Whether to stop where the first statement would run: the outcome says if the program may start."""

    def __post_init__(self) -> None:
        spaces = [space.name for space in self.namespaces]
        errors = {space.error_class for space in self.namespaces if space.error_class is not None}
        names = [*spaces, *(error.name for error in errors)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two globals of one program are called {twice[0]!r}")


class TraceFrame(NamedTuple):
    """One frame of the program's own code."""

    line: int
    function: str
    text: str


class Failure(NamedTuple):
    """Why a run did not end well."""

    kind: FailureKind
    message: str
    error_type: str | None = None
    line: int | None = None
    hint: str | None = None
    traceback: tuple[TraceFrame, ...] = ()


class Usage(NamedTuple):
    """What a run used, as the host measured it."""

    wall_seconds: float
    compute_seconds: float
    calls: int
    output_bytes: int


class Outcome(NamedTuple):
    """How one run ended."""

    logs: tuple[str, ...]
    usage: Usage
    value: JsonValue | _Absent = ABSENT
    failure: Failure | None = None
    hint: str | None = None
    """Advice about a run that succeeded, e.g. that its last value was not JSON."""


def default_parked_workers() -> int:
    """Return how many workers to keep waiting on this machine: one per core, at least 2."""
    return max(2, os.cpu_count() or 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """How a sandbox keeps its workers; the bounds of runs are in `limits`."""

    limits: Limits = dataclasses.field(default_factory=Limits)
    isolation: Literal["require", "best-effort"] = "require"
    parked_workers: int = dataclasses.field(default_factory=default_parked_workers)
    """Locked-down workers kept waiting for a run; by default one per core, at least 2."""
    max_concurrent_runs: int = 16
    """Runs that have a worker at the same time. Arbitrary; each idle worker costs a few MiB."""
    max_queued_runs: int = 1000
    """Runs that may wait for a worker; one more raises `SandboxBusyError`."""
    grace_seconds: float = 5.0
    """Time between two reports of a host function that goes on after its run has ended, in seconds."""

    def __post_init__(self) -> None:
        for name, minimum in (("parked_workers", 0), ("max_concurrent_runs", 1), ("max_queued_runs", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < minimum:
                raise LimitError(name, f"{name} must be a whole number of at least {minimum}, not {value!r}")
        if type(self.grace_seconds) not in (int, float) or not 0 <= self.grace_seconds < math.inf:
            raise LimitError(
                "grace_seconds",
                f"grace_seconds must be a number of seconds, 0 or more, not {self.grace_seconds!r}",
            )
        if self.isolation not in ("require", "best-effort"):
            raise LimitError(
                "isolation", f"isolation must be 'require' or 'best-effort', not {self.isolation!r}"
            )
