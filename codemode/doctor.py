"""What protects programs on this machine: every wall, what was found, what is active, and what that means.

`report` asks the kernel about each mechanism, then starts a real worker behind both walls and asks it.

Knows: walls and how to say what they are worth here. Does not know: how a wall works, the command line.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

import trio

from sandbox.errors import SandboxError
from sandbox.isolation import plan
from sandbox.isolation.report import StepReport
from sandbox.limits import Limits
from sandbox.supervisor import open_sandbox
from sandbox.vocabulary import Program, SandboxSettings

if TYPE_CHECKING:
    from sandbox.vocabulary import Outcome

ISOLATION_MISSING: Final = 3
"""Exit status of a command that cannot give the isolation asked for."""
_LANGUAGE: Final = "language"
_REFUSED_PROGRAM: Final = "return ().__class__"
"""The first step of nearly every escape: the language wall has to refuse it."""
_LIMITS: Final = Limits(wall_seconds=30, compute_seconds=10, memory_mb=64)


def report() -> dict[str, Any]:
    """Examine this machine and return what was found, as `codemode doctor --json` prints it.

    Starts and ends a worker, which takes about half a second.
    """
    probed = {step.name: step for step in _probe()}
    active: dict[str, StepReport] = {}
    error: str | None = None
    language = False
    try:
        active, language = trio.run(_ask_worker)
    except SandboxError as failure:
        error = str(failure)
    walls = [_language_row(stands=language)]
    walls += [_kernel_row(step, probed[step.name], active.get(step.name)) for step in plan.STEPS]
    return {
        "system": {
            "platform": sys.platform,
            "kernel": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        "worker": {"started": error is None, "error": error},
        "walls": walls,
        "require": _verdict([row for row in walls if row["mandatory"] and not row["active"]], error),
        "bestEffort": _verdict([], error),
        "notActive": [row["name"] for row in walls if not row["active"]],
    }


def exit_status(found: dict[str, Any]) -> int:
    """Return 0 when `isolation="require"` starts here, else the status of a missing isolation."""
    return 0 if found["require"]["starts"] else ISOLATION_MISSING


def table(found: dict[str, Any], width: int = 100) -> str:
    """Return a report as text for a person.

    Args:
        found: What `report` returned.
        width: Columns there are.
    """
    system = found["system"]
    lines = [f"{system['platform']} {system['kernel']} {system['machine']}, Python {system['python']}", ""]
    names = max(len(row["name"]) for row in found["walls"])
    header = f"{'WALL':{names}}  {'NEEDED':6}  {'ACTIVE':6}  FOUND AND WHAT IT PREVENTS"
    lines.append(header)
    indent = " " * header.index("FOUND")
    for row in found["walls"]:
        needed = "yes" if row["mandatory"] else "no"
        state = "yes" if row["active"] else "NO"
        text = row["detail"] or row["probed"] or ("available" if row["available"] else "not available")
        start = f"{row['name']:{names}}  {needed:6}  {state:6}  "
        lines += textwrap.wrap(text, width, initial_indent=start, subsequent_indent=indent)
        lines += textwrap.wrap(
            f"against {row['prevents']}", width, initial_indent=indent, subsequent_indent=indent
        )
    lines.append("")
    if found["worker"]["error"] is not None:
        lines += textwrap.wrap(f"no worker could be started: {found['worker']['error']}", width)
    for option, key in (("require", "require"), ("best-effort", "bestEffort")):
        lines += textwrap.wrap(
            f"--isolation {option}: {_sentence(found, key)}", width, subsequent_indent="  "
        )
    return "\n".join(lines)


def _probe() -> tuple[StepReport, ...]:
    if sys.platform == "linux":
        return plan.probe_steps()
    reason = f"this is {sys.platform}"
    return tuple(StepReport(step.name, active=False, detail=reason) for step in plan.STEPS)


async def _ask_worker() -> tuple[dict[str, StepReport], bool]:
    """Return what a worker says of each step, and whether the language wall refused what it must."""
    settings = SandboxSettings(
        limits=_LIMITS, isolation="best-effort", parked_workers=1, max_concurrent_runs=1
    )
    async with open_sandbox(settings) as sandbox:
        outcome: Outcome = await sandbox.run(Program(_REFUSED_PROGRAM))
        refused = outcome.failure is not None and outcome.failure.kind == "policy"
        return {step.name: step for step in sandbox.isolation}, refused


def _language_row(*, stands: bool) -> dict[str, Any]:
    return {
        "name": _LANGUAGE,
        "place": "worker",
        "mandatory": True,
        "prevents": "reaching anything of the interpreter that a program was not given",
        "available": True,
        "probed": f"RestrictedPython {importlib.metadata.version('RestrictedPython')}",
        "active": stands,
        "detail": "" if stands else "a program that must be refused was not, or could not be tried",
        "costUs": None,
    }


def _kernel_row(step: plan.Step, probed: StepReport, active: StepReport | None) -> dict[str, Any]:
    return {
        "name": step.name,
        "place": step.place,
        "mandatory": step.mandatory,
        "prevents": step.prevents,
        "available": probed.active,
        "probed": probed.detail,
        "active": active is not None and active.active,
        "detail": "" if active is None else active.detail,
        "costUs": step.cost_us,
    }


def _verdict(missing: list[dict[str, Any]], error: str | None) -> dict[str, Any]:
    starts = not missing and error is None
    return {
        "starts": starts,
        "exitStatus": 0 if starts else ISOLATION_MISSING,
        "missing": [row["name"] for row in missing],
    }


def _sentence(found: dict[str, Any], key: str) -> str:
    verdict = found[key]
    if verdict["starts"]:
        inactive = found["notActive"]
        return (
            f"programs run, without {', '.join(inactive)}" if inactive else "programs run, behind every wall"
        )
    if found["worker"]["error"] is not None:
        return f"refuses with exit status {verdict['exitStatus']}, because no worker starts"
    return (
        f"refuses with exit status {verdict['exitStatus']}, because of {', '.join(verdict['missing'])};"
        " --isolation best-effort goes on without"
    )
