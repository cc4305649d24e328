"""The words for how a run ended, where the program itself did not find them.

Knows: limits, signals, what a worker reports. Does not know: what ends a run.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from sandbox import wire
from sandbox.next_steps import COMPUTE, advised
from sandbox.vocabulary import ABSENT, Failure, Outcome, TraceFrame

if TYPE_CHECKING:
    from sandbox.ledger import OutputLedger
    from sandbox.limits import Limits
    from sandbox.vocabulary import Usage

BROKEN_PROTOCOL = "the worker broke its protocol and was ended"


def wall_message(limits: Limits) -> str:
    """Say that a run took too long."""
    milliseconds = round(limits.wall_seconds * 1000)
    return f"wall-clock ceiling reached ({milliseconds}ms); the limit is wall_seconds={limits.wall_seconds:g}"


def compute_message(limits: Limits) -> str:
    """Say that a worker used too much CPU time."""
    milliseconds = round(limits.compute_seconds * 1000)
    return f"{COMPUTE} ({milliseconds}ms busy); the limit is compute_seconds={limits.compute_seconds:g}"


def run_bytes_message(limits: Limits) -> tuple[str, str]:
    """Say that a program moved too much, and what to do."""
    return (
        f"calls and results of this run passed {limits.max_run_bytes} bytes; the limit is max_run_bytes",
        "move less through the program: ask tools for less at a time",
    )


def calls_message(limits: Limits) -> tuple[str, str]:
    """Say that a program made too many calls, and what to do."""
    return (
        f"the program made more than {limits.max_calls} calls; the limit is max_calls",
        "do more per call, or split the work over several runs",
    )


def digits_message(digits: int) -> str:
    """Say that a program sent integers that would take too long to read."""
    return (
        f"the program sent integers of {digits} digits together; the limit is"
        f" {wire.MAX_LONG_DIGITS} digits: send such a number as text, for example hex(n)"
    )


def exit_failure(status: int | None, limits: Limits) -> Failure:
    """Say why a worker ended without a word."""
    if status is None:
        return Failure(
            "worker-exit", "the worker was lost together with the process that looks after workers"
        )
    if status >= 0:
        return Failure("worker-exit", f"worker exited with code {status} before completing")
    if -status == signal.SIGXCPU:
        return Failure("timeout", compute_message(limits))
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)  # Real-time signals have no names.
    return Failure("worker-exit", f"worker was ended by signal {name} before completing")


def broken_worker_message(ready: wire.Ready) -> str:
    """Return what to say of a worker that reports itself again, which ours does when it fails itself."""
    for name, _, detail in ready.steps:
        if name == wire.BROKEN_START:
            return f"the worker failed outside the program: {detail.strip().rpartition(chr(10))[2]}"
    return BROKEN_PROTOCOL


def reported_failure(failure: wire.DoneFailure, ledger: OutputLedger) -> Failure:
    """Return the failure a worker reports of its own program."""
    return Failure(
        failure.kind,
        # Counted here as there; only here it is written.
        ledger.exceeded if failure.kind == "output-limit" else failure.message,
        failure.error_type,
        failure.line,
        failure.hint,
        tuple(TraceFrame(*frame) for frame in failure.traceback),
    )


def outcome(
    done: wire.Done | None, failure: Failure | None, ledger: OutputLedger, value_bytes: int, usage: Usage
) -> Outcome:
    """Return how a run ended.

    Args:
        done: What the worker said last.
        failure: What ended it otherwise, which counts for more.
        ledger: What it has put out.
        value_bytes: Size of its result.
        usage: What it used.
    """
    hint = None
    value: Any = ABSENT
    if failure is None:
        assert done is not None, "something has ended it"
        hint = done.hint
        if done.failure is not None:
            failure = reported_failure(done.failure, ledger)
        elif done.has_value:
            value = done.value
            if not ledger.admits_bytes(value_bytes):
                failure = Failure("output-limit", ledger.exceeded)
    if failure is not None:
        value = ABSENT
        if not ledger.admits_message(failure.message):
            failure = Failure("output-limit", ledger.make_room_for_message(), hint=failure.hint)
    failure = None if failure is None else advised(failure)
    return Outcome(ledger.lines, usage, value, failure, hint)
