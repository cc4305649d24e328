"""The kernel wall: every isolation step, in the order they are applied.

This list is the security design. Steps of the fork server are inherited by its workers;
steps of the worker are applied in each of them, before it sees a program. Each step can stop
the launch when it is mandatory and `isolation="require"` was asked for.

The order works the same for root and for an ordinary user:
uid first (a user namespace made by root would keep kernel uid 0), then the namespaces, in which
an ordinary user may mount; capabilities go when the root is in place; in the worker, the death
signal follows the last uid change, no_new_privs precedes Landlock and seccomp, and seccomp is last.

A step's `probe` asks the machine and changes nothing; its `apply` does the thing for good. Both return
a few words about what they found ("ABI 7") and raise `OSError` with the reason when it cannot be had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sandbox.isolation import capabilities, landlock, namespaces, privileges, rlimits, root, seccomp, user
from sandbox.isolation.report import StepReport

if TYPE_CHECKING:
    from collections.abc import Callable

Place = Literal["fork server", "worker"]


class Launch(NamedTuple):
    """What steps need to know about the process they are applied to.

    Attributes:
        address_space_bytes: See `rlimits.apply`.
        cpu_seconds: See `rlimits.apply`.
        parent_pid: The process this one must not outlive, as `getppid` names it.
    """

    address_space_bytes: int = 0
    cpu_seconds: float = 0.0
    parent_pid: int = 0


class Step(NamedTuple):
    """One mechanism of the kernel."""

    name: str
    place: Place
    mandatory: bool
    """Whether `isolation="require"` refuses to start without it."""
    prevents: str
    probe: Callable[[], str]
    apply: Callable[[Launch], str]
    cost_us: int
    """Time `apply` takes, once per fork server or once per worker, in microseconds: the median that
    benchmarks/bench_isolation_cost.py printed on the machine named in docs/kernel-wall.md."""
    needs: str | None = None
    """Name of the step without which this one is not tried."""


def _apply_rlimits(launch: Launch) -> str:
    return rlimits.apply(address_space_bytes=launch.address_space_bytes, cpu_seconds=launch.cpu_seconds)


STEPS: Final[tuple[Step, ...]] = (
    Step(
        "user",
        "fork server",
        mandatory=False,
        prevents="acting as root, or as the owner of root's files",
        probe=user.probe,
        apply=lambda _: user.apply(),
        cost_us=160,
    ),
    Step(
        "namespaces",
        "fork server",
        mandatory=False,
        prevents="seeing the host's network, processes, mounts, IPC objects and host name",
        probe=namespaces.probe,
        apply=lambda _: namespaces.apply(),
        cost_us=1200,
    ),
    Step(
        "root",
        "fork server",
        mandatory=False,
        prevents="reaching any file of the host",
        probe=root.probe,
        apply=lambda _: root.apply(),
        cost_us=1500,
        needs="namespaces",
    ),
    Step(
        "capabilities",
        "fork server",
        mandatory=False,
        prevents="using or regaining any privilege",
        probe=capabilities.probe,
        apply=lambda _: capabilities.apply(),
        cost_us=350,
    ),
    Step(
        "parent-death",
        "worker",
        mandatory=False,
        prevents="outliving the fork server",
        probe=privileges.probe_parent_death,
        apply=lambda launch: privileges.die_with_parent(launch.parent_pid),
        cost_us=40,
    ),
    Step(
        "no-new-privileges",
        "worker",
        mandatory=True,
        prevents="gaining privileges from a file",
        probe=privileges.probe_no_new_privileges,
        apply=lambda _: privileges.forbid_new_privileges(),
        cost_us=10,
    ),
    Step(
        "not-dumpable",
        "worker",
        mandatory=False,
        prevents="being traced or read by other processes of the same user",
        probe=privileges.probe_dumpable,
        apply=lambda _: privileges.forbid_dumping(),
        cost_us=10,
    ),
    Step(
        "priority",
        "worker",
        mandatory=False,
        prevents="starving the host of CPU",
        probe=privileges.probe_priority,
        apply=lambda _: privileges.lower_priority(),
        cost_us=25,
    ),
    Step(
        "rlimits",
        "worker",
        mandatory=True,
        prevents="using more memory, CPU, processes, files or descriptors than granted",
        probe=rlimits.probe,
        apply=_apply_rlimits,
        cost_us=130,
    ),
    Step(
        "landlock",
        "worker",
        mandatory=False,
        prevents="opening files, TCP ports, foreign sockets",
        probe=landlock.probe,
        apply=lambda _: landlock.apply(),
        cost_us=80,
    ),
    Step(
        "seccomp",
        "worker",
        mandatory=True,
        prevents="making any system call but those of computation and of the one open socket",
        probe=seccomp.probe,
        apply=lambda _: seccomp.apply(),
        cost_us=570,
    ),
)


def apply_steps(place: Place, launch: Launch, done: tuple[StepReport, ...] = ()) -> tuple[StepReport, ...]:
    """Apply the steps of one place in order; never raises, says what became of each."""
    reports = list(done)
    active = {report.name for report in reports if report.active}
    for step in STEPS:
        if step.place != place:
            continue
        if step.needs is not None and step.needs not in active:
            reports.append(StepReport(step.name, active=False, detail=f"needs the step {step.needs!r}"))
            continue
        try:
            detail = step.apply(launch)
        except (OSError, ValueError) as error:
            reports.append(StepReport(step.name, active=False, detail=_reason(error)))
        else:
            active.add(step.name)
            reports.append(StepReport(step.name, active=True, detail=detail))
    return tuple(reports)


def probe_steps() -> tuple[StepReport, ...]:
    """Ask this machine what each step would find; changes nothing. `active` means available here."""
    reports = []
    for step in STEPS:
        try:
            reports.append(StepReport(step.name, active=True, detail=step.probe()))
        except (OSError, ValueError) as error:
            reports.append(StepReport(step.name, active=False, detail=_reason(error)))
    return tuple(reports)


def missing_mandatory(reports: tuple[StepReport, ...]) -> tuple[StepReport, ...]:
    """Return the reports of mandatory steps that are not active."""
    mandatory = {step.name for step in STEPS if step.mandatory}
    return tuple(report for report in reports if report.name in mandatory and not report.active)


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
