"""What a run comes to: the outcome, its JSON, and the words a model reads.

Knows: shapes and texts. Does not know: how a program is run.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from codemode.receipts import CallRecord
from sandbox.isolation.plan import StepReport
from sandbox.vocabulary import ABSENT, Failure, Outcome
from tool_bindings.content import render_json, text_block

NO_OUTPUT: Final = "(run_code completed with no output)"
CODE_RUN_FAILED: Final = "CODE_RUN_FAILED"
RUN_FAILED_NAME: Final = "CodeRunFailedError"


@dataclasses.dataclass(frozen=True, slots=True)
class RunOutcome:
    """How one program ended.

    Attributes:
        run_id: Id of the run; also the call id in the session log.
        logs: Lines the program printed, stdout and stderr in one stream.
        result: The program's JSON result, or `ABSENT` when it returned nothing.
        failure: Why the run did not end well, or None.
        calls: The receipt: every nested call in submission order.
        content: What a model is shown, as content blocks.
        isolation: Names of the walls that stood while it ran.
        duration_ms: From taking a worker to quiescence.
        hint: Advice about a run that succeeded, e.g. that its last value was not JSON.
    """

    run_id: str
    logs: list[str]
    result: Any
    failure: Failure | None
    calls: list[CallRecord]
    content: list[dict[str, Any]]
    isolation: tuple[str, ...]
    duration_ms: float
    hint: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the program ended without a failure."""
        return self.failure is None

    def to_json(self) -> dict[str, Any]:
        """Return the object that `codemode run --json` prints."""
        record: dict[str, Any] = {"ok": self.ok, "logs": list(self.logs)}
        if self.failure is not None:
            record["error"] = _failure_json(self.failure)
        elif self.result is not ABSENT:
            record["result"] = self.result
        record["calls"] = [call.to_json() for call in self.calls]
        if self.hint is not None:
            record["hint"] = self.hint
        record["runId"] = self.run_id
        record["isolation"] = list(self.isolation)
        record["durationMs"] = round(self.duration_ms, 3)
        return record


def active_walls(steps: tuple[StepReport, ...]) -> tuple[str, ...]:
    """Return the names of the walls that stand, the language first."""
    return ("language", *(step.name for step in steps if step.active))


def model_content(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the content blocks a model is shown for an outcome."""
    if outcome.failure is not None:
        return [text_block("Error: " + failure_text(outcome.failure, outcome.logs))]
    parts = ["\n".join(outcome.logs)]
    if outcome.value is not ABSENT:
        parts.append(outcome.value if isinstance(outcome.value, str) else render_json(outcome.value))
    text = "\n".join(part for part in parts if part) or NO_OUTPUT
    if outcome.hint is not None:
        text += f"\n(hint: {outcome.hint})"
    return [text_block(text)]


def failure_text(failure: Failure, logs: tuple[str, ...]) -> str:
    """Return the text of a failed run: kind, message, where, what to do, and what it printed."""
    text = f"code run failed ({failure.kind}): {failure.message}"
    if failure.traceback:
        text += "".join(
            f"\n  line {frame.line}, in {frame.function}: {frame.text}" for frame in failure.traceback
        )
    elif failure.line is not None:
        text += f"\n  line {failure.line}"
    if failure.hint is not None:
        text += f"\nHint: {failure.hint}"
    if logs:
        text += "\nCaptured output:\n" + "\n".join(logs)
    return text


def _failure_json(failure: Failure) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": failure.kind, "message": failure.message}
    if failure.error_type is not None:
        record["errorType"] = failure.error_type
    if failure.line is not None:
        record["line"] = failure.line
    if failure.hint is not None:
        record["hint"] = failure.hint
    if failure.traceback:
        record["traceback"] = [dataclasses.asdict(frame) for frame in failure.traceback]
    return record
