"""What a run comes to: the outcome, its JSON, and the words a model reads.

Knows: shapes and texts. Does not know: how a program is run.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from codemode.receipts import already_done
from sandbox.next_steps import advised
from sandbox.vocabulary import ABSENT, Failure, Outcome
from tool_bindings.content import render_json, text_block
from tool_bindings.results import ToolFailure, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codemode.receipts import CallRecord
    from sandbox.isolation.report import StepReport
    from tool_bindings.redaction import SecretMasker

_ABORT_CODES: Final = ("ABORTED", "ABORTED_BEFORE_DISPATCH")
NO_OUTPUT: Final = "(run_code completed with no output)"


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
        contexts: Messages that its calls add to the conversation, such as the pictures of tools.
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
    contexts: tuple[Any, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the program ended without a failure."""
        return self.failure is None

    def to_json(self) -> dict[str, Any]:
        """Return the object that `codemode run --json` prints."""
        record: dict[str, Any] = {"ok": self.ok, "logs": list(self.logs)}
        if self.failure is not None:
            record["error"] = failure_json(self.failure)
        elif self.result is not ABSENT:
            record["result"] = self.result
        record["calls"] = [call.to_json() for call in self.calls]
        if self.hint is not None:
            record["hint"] = self.hint
        record["runId"] = self.run_id
        record["isolation"] = list(self.isolation)
        record["durationMs"] = round(self.duration_ms, 3)
        return record


def run_outcome(
    run_id: str,
    outcome: Outcome | None,
    result: ToolResult,
    *,
    calls: list[CallRecord],
    isolation: tuple[str, ...],
    duration_ms: float,
    masker: SecretMasker | None = None,
) -> RunOutcome:
    """Put together what the program did and what policies made of it; policies have the last word.

    Args:
        run_id: The run's id.
        outcome: How the program ended, or None when it was never started.
        result: How the `run_code` call ended.
        calls: The receipt.
        isolation: Names of the walls that stood.
        duration_ms: How long it took.
        masker: Hides secrets in everything but the result.
    """
    failure = None if outcome is None else outcome.failure
    logs: Sequence[str] = () if outcome is None else outcome.logs
    value: Any = ABSENT
    hint = None
    if isinstance(result, ToolFailure):
        if failure is None:
            failure = _policy_failure(result)
    else:
        # A policy may have replaced what the program gave, and an around listener a whole failed run.
        final: Any = result.value
        logs = final["logs"]
        value = final.get("result", ABSENT)
        failure = None
        hint = None if outcome is None else outcome.hint
    content: list[dict[str, Any]] = [dict(block) for block in result.content]
    if masker is not None:
        logs = [masker.mask_text(line) for line in logs]
        failure = None if failure is None else _masked_failure(failure, masker)
        content = masker.mask(content)  # type: ignore[assignment, arg-type]  # blocks stay blocks
        calls = [_masked_call(call, masker) for call in calls]
        hint = None if hint is None else masker.mask_text(hint)
    contexts: Any = tuple(result.additional_contexts)
    if masker is not None:
        contexts = tuple(map(masker.mask, contexts))
    return RunOutcome(
        run_id, list(logs), value, failure, calls, content, isolation, duration_ms, hint, contexts
    )


def _masked_failure(failure: Failure, masker: SecretMasker) -> Failure:
    return failure._replace(
        message=masker.mask_text(failure.message),
        hint=None if failure.hint is None else masker.mask_text(failure.hint),
        traceback=tuple(frame._replace(text=masker.mask_text(frame.text)) for frame in failure.traceback),
    )


def _masked_call(call: CallRecord, masker: SecretMasker) -> CallRecord:
    message = call.error_message
    return dataclasses.replace(
        call,
        arguments=masker.mask(call.arguments),
        error_message=None if message is None else masker.mask_text(message),
    )


def _policy_failure(result: ToolFailure) -> Failure:
    info = result.error.info
    aborted = info is not None and info.code in _ABORT_CODES
    return advised(Failure("abort" if aborted else "policy", result.error.message))


def active_walls(steps: tuple[StepReport, ...]) -> tuple[str, ...]:
    """Return the names of the walls that stand, the language first."""
    return ("language", *(step.name for step in steps if step.active))


def success_content(logs: Sequence[str], result: Any) -> list[dict[str, Any]]:
    """Return the content blocks a model is shown for a run that ended well.

    Args:
        logs: What the program printed.
        result: Its result, or `ABSENT`.
    """
    parts = ["\n".join(logs)]
    if result is not ABSENT:
        parts.append(result if isinstance(result, str) else render_json(result))
    return [text_block("\n".join(part for part in parts if part) or NO_OUTPUT)]


def failure_text(failure: Failure, logs: Sequence[str], calls: Sequence[CallRecord]) -> str:
    """Return the text of a failed run: kind, message, where, what to do, what it printed, what it did."""
    is_refusal = failure.kind == "policy"
    # A refusal may list several errors, a line each; place and hint belong to the first.
    message, _, others = failure.message.partition("\n") if is_refusal else (failure.message, "", "")
    text = f"code run failed ({failure.kind}): {message}"
    if failure.traceback:
        text += "".join(
            f"\n  line {frame.line}, in {frame.function}: {frame.text}" for frame in failure.traceback
        )
    elif failure.line is not None:
        text += f"\n  line {failure.line}"
    if failure.hint is not None:
        text += f"\nHint: {failure.hint}"
    if others:
        text += f"\nAlso:\n{others}"
    if is_refusal:
        text += "\nNothing was run."
    if logs:
        text += "\nCaptured output:\n" + "\n".join(logs)
    done = already_done(calls)
    return f"{text}\n{done}" if done else text


def failure_json(failure: Failure) -> dict[str, Any]:
    """Return a failure as JSON output shows it."""
    record: dict[str, Any] = {"kind": failure.kind, "message": failure.message}
    if failure.error_type is not None:
        record["errorType"] = failure.error_type
    if failure.line is not None:
        record["line"] = failure.line
    if failure.hint is not None:
        record["hint"] = failure.hint
    if failure.traceback:
        record["traceback"] = [frame._asdict() for frame in failure.traceback]
    return record
