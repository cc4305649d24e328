"""The kernel wall: every isolation step, in the order they are applied.

This list is the security design. Steps of the fork server are inherited by its workers;
steps of the worker are applied in each of them, before it sees a program. Each step can stop
the launch when it is mandatory and `isolation="require"` was asked for.

The order works the same for root and for an ordinary user:
uid first (a user namespace made by root would keep kernel uid 0), then the namespaces, in which
an ordinary user may mount; capabilities go when the root is in place; in the worker, the death
signal follows the last uid change, no_new_privs precedes Landlock and seccomp, and seccomp is last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, Literal

from sandbox.isolation import capabilities, landlock, namespaces, privileges, rlimits, root, seccomp, user

Place = Literal["fork server", "worker"]


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """What the limits step needs to know; see `rlimits.apply`."""

    address_space_bytes: int
    cpu_seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One mechanism of the kernel."""

    name: str
    place: Place
    mandatory: bool
    """Whether `isolation="require"` refuses to start without it."""
    prevents: str
    apply: Callable[[Budget], None]
    needs: str | None = None
    """Name of the step without which this one is not tried."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepReport:
    """What became of a step on this machine."""

    name: str
    active: bool
    detail: str = ""


STEPS: Final[tuple[Step, ...]] = (
    Step("user", "fork server", False, "acting as root, or as root's files' owner", lambda _: user.apply()),
    Step(
        "namespaces",
        "fork server",
        False,
        "seeing the host's network, processes, mounts, IPC objects and host name",
        lambda _: namespaces.apply(),
    ),
    Step(
        "root",
        "fork server",
        False,
        "reaching any file of the host",
        lambda _: root.apply(),
        needs="namespaces",
    ),
    Step("capabilities", "fork server", False, "using or regaining any privilege", lambda _: capabilities.apply()),
    Step(
        "parent-death",
        "worker",
        False,
        "outliving the fork server",
        lambda _: privileges.die_with_parent(),
    ),
    Step(
        "no-new-privileges",
        "worker",
        True,
        "gaining privileges from a file",
        lambda _: privileges.forbid_new_privileges(),
    ),
    Step(
        "not-dumpable",
        "worker",
        False,
        "being traced or read by other processes of the same user",
        lambda _: privileges.forbid_dumping(),
    ),
    Step("priority", "worker", False, "starving the host of CPU", lambda _: privileges.lower_priority()),
    Step(
        "rlimits",
        "worker",
        True,
        "using more memory, CPU, processes, files or descriptors than granted",
        lambda budget: rlimits.apply(
            address_space_bytes=budget.address_space_bytes, cpu_seconds=budget.cpu_seconds
        ),
    ),
    Step("landlock", "worker", False, "opening files, TCP ports, foreign sockets", lambda _: landlock.apply()),
    Step(
        "seccomp",
        "worker",
        True,
        "making any system call but those of computation and of the one open socket",
        lambda _: seccomp.apply(),
    ),
)


def apply_steps(place: Place, budget: Budget, done: tuple[StepReport, ...] = ()) -> tuple[StepReport, ...]:
    """Apply the steps of one place in order; never raises, says what became of each."""
    reports = list(done)
    active = {report.name for report in reports if report.active}
    for step in STEPS:
        if step.place != place:
            continue
        if step.needs is not None and step.needs not in active:
            reports.append(StepReport(step.name, False, f"needs the step {step.needs!r}"))
            continue
        try:
            step.apply(budget)
        except (OSError, ValueError) as error:
            reports.append(StepReport(step.name, False, str(error)))
        else:
            active.add(step.name)
            reports.append(StepReport(step.name, True))
    return tuple(reports)


def missing_mandatory(reports: tuple[StepReport, ...]) -> tuple[StepReport, ...]:
    """Return the reports of mandatory steps that are not active."""
    mandatory = {step.name for step in STEPS if step.mandatory}
    return tuple(report for report in reports if report.name in mandatory and not report.active)
