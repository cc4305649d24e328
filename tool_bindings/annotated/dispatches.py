"""Envelopes of the results that dispatches end in.

Knows: what is evidence inside the pipeline, and what becomes of an annotation when a policy changes
a result.
Does not know: the stages; the pipeline calls `declare` where a body ends and `carry` wherever a result
takes the place of another.

A result without an `annotation` of its own is the ordinary case: its shape says everything, and its
envelope is made only when somebody asks for it, so a dispatch that nobody observes pays nothing.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from sandbox.values import (
    FrozenDict,
    FrozenList,
    NotJsonError,
    frozen_dict,
    frozen_list,
    snapshot_frozen,
    thaw,
)
from tool_bindings.annotated.envelope import MISSING, AnnotatedToolResult, build, trusted
from tool_bindings.annotated.equality import same_json
from tool_bindings.annotated.errors import AnnotationError
from tool_bindings.annotated.intercepts import PUT_ASIDE, judge, kept
from tool_bindings.annotated.projection import DEFAULT_POLICY, event_fields, success_fields
from tool_bindings.annotated.records import ToolResultRecord, failure_envelope
from tool_bindings.annotated.shapes import BLOCK
from tool_bindings.content import text_block
from tool_bindings.errors import InvalidResultError
from tool_bindings.results import ToolFailure, ToolSuccess, failure_from_exception

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.values import JsonValue
    from tool_bindings.annotated.projection import ProjectionPolicy
    from tool_bindings.content import ContentBlock
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.results import ToolResult

__all__ = ["annotation_of", "observed", "record_of"]

FOREIGN_BLOCK: Final = "x-codemode/block"
"""Type of the block that carries, as its `block`, one that MCP would not understand."""


# --- for policies, observers and transports -----------------------------------------------------------


def annotation_of(call: Dispatch, result: ToolResult) -> AnnotatedToolResult:
    """Return the envelope of a result, as it is at this point of the call.

    A failure failed. A value this call made from the tool's declared output succeeded. Any other value,
    for example one that an around listener has just built, is of unknown status, unless whoever made it
    gave it an annotation.

    Args:
        call: The dispatch, as listeners and observers get it.
        result: Its result, or one that a listener made for it.
    """
    identifiers = _identifiers(call)
    own = result.annotation
    if _speaks_for(own, result):
        assert own is not None, "only an annotation speaks"
        # What the producer wrote about the call wins; the rest is filled in.
        known = {**identifiers, **own.correlation}
        return own if len(known) == len(own.correlation) else own.replace(correlation=known)
    if isinstance(result, ToolFailure):
        info = result.error.info
        name, code = (None, None) if info is None else (info.name, info.code)
        return failure_envelope(result.error.message, name, code, identifiers, _portable(result.content))
    if own is not None or not call.made(result):
        return _unvouched(result, identifiers)
    schema = None if call.definition is None else call.definition.output.data_schema
    return trusted(
        build(
            "succeeded",
            _portable(result.content),
            "structuredContent",
            structured_content=result.value,
            data_schema=MISSING if schema is None else snapshot_frozen(schema),
            correlation=identifiers,
        )
    )


def record_of(call: Dispatch, result: ToolResult) -> ToolResultRecord:
    """Return a result and its envelope as they travel; the raw result of a failure is null."""
    value = None if isinstance(result, ToolFailure) else thaw(result.value)
    return {"result": value, "annotation": annotation_of(call, result).to_json()}


def observed(
    call: Dispatch, result: ToolResult, policy: ProjectionPolicy = DEFAULT_POLICY
) -> dict[str, JsonValue]:
    """Return the fields that an event about a result gets: as much of its envelope as the policy shows."""
    if policy.hides_payload and result.annotation is None and not result.is_error and call.made(result):
        schema = None if call.definition is None else call.definition.output.data_schema
        frozen = None if schema is None else snapshot_frozen(schema)
        return success_fields(policy, frozen, _identifiers(call))
    return event_fields(annotation_of(call, result), policy)


# --- for the pipeline ---------------------------------------------------------------------------------


def declare(call: Dispatch, result: ToolResult, annotation: AnnotatedToolResult) -> ToolResult:
    """Give what a body ended in the annotation that the body declared.

    A body that describes another value than it returns breaks its own output declaration. On a failure
    only an annotation that says `failed` counts: what was raised is the stronger evidence.
    """
    if _speaks_for(annotation, result):
        return dataclasses.replace(result, annotation=annotation)
    if isinstance(result, ToolFailure):
        return result
    failure = failure_from_exception(
        InvalidResultError(
            f'tool "{call.name}" returned invalid output: the {annotation.relation} value of its annotation '
            "is not the value it returned; annotate that value, or use the relation adjacent"
        )
    )
    return dataclasses.replace(failure, additional_contexts=result.additional_contexts)


def carry(before: ToolResult | None, after: ToolResult, outcome: object = None) -> ToolResult:
    """Return `after`, which takes the place of `before`, with the annotation it is entitled to.

    The value decides: the same one, types included, keeps the annotation, with the content that is now
    shown; any other one is of unknown status. What a listener annotates itself is taken, or put aside
    when it is malformed.

    Args:
        before: What the call had made until now, or None.
        after: What is to stand, fresh from the pipeline; its value, if it has one, is canonical.
        outcome: What a listener returned, of which `after` was made.
    """
    if after is before:
        return after
    known = None if before is None else before.annotation
    if isinstance(after, ToolFailure):
        if known is None or not isinstance(before, ToolFailure) or before.error is not after.error:
            return after
    else:
        offered = outcome.annotation if isinstance(outcome, ToolSuccess) else None
        if offered is not None and offered is not known:
            return dataclasses.replace(after, annotation=_judged(after, offered))
        if before is None or isinstance(before, ToolFailure) or not same_json(before.value, after.value):
            return dataclasses.replace(after, annotation=_unvouched(after))
        if known is None:
            return after
    return dataclasses.replace(after, annotation=_recontent(known, before.content, after.content))


# --- pieces -------------------------------------------------------------------------------------------

_NO_IDENTIFIERS: Final = frozen_dict({})


def _identifiers(call: Dispatch) -> FrozenDict:
    identifiers: dict[str, JsonValue] = {}
    if call.call_id:
        identifiers["toolCallId"] = call.call_id
    if call.parent_call_id:
        identifiers["parentToolCallId"] = call.parent_call_id
    if call.run_id:
        identifiers["runId"] = call.run_id
    return frozen_dict(identifiers)


def _speaks_for(annotation: object, result: ToolResult) -> bool:
    if not isinstance(annotation, AnnotatedToolResult):
        return False
    return annotation.status == "failed" if isinstance(result, ToolFailure) else annotation.fits(result.value)


def _judged(result: ToolSuccess, offered: object) -> AnnotatedToolResult:
    supplied = offered.members if isinstance(offered, AnnotatedToolResult) else offered
    try:
        return judge(result.value, supplied, "reject", _NO_IDENTIFIERS)
    except AnnotationError:
        return _unvouched(result, metadata=frozen_dict({PUT_ASIDE: kept(supplied)}))


def _unvouched(
    result: ToolSuccess, identifiers: FrozenDict = _NO_IDENTIFIERS, metadata: FrozenDict | None = None
) -> AnnotatedToolResult:
    """Make the envelope of a value that nobody vouches for; it still has the content that is shown."""
    content = _portable(result.content)
    value = result.value
    is_text = isinstance(value, str) and same_json(content, [text_block(value)])
    relation = "text" if is_text else "adjacent"
    return trusted(build("unknown", content, relation, correlation=identifiers, metadata=metadata))


def _recontent(
    annotation: AnnotatedToolResult, old: Sequence[ContentBlock], new: Sequence[ContentBlock]
) -> AnnotatedToolResult:
    """Let an annotation show what the result now shows."""
    if new is old:
        return annotation
    raw = annotation.members["raw"]
    if annotation.relation == "text":
        # The text may have been replaced, and the value is beside the envelope anyway.
        raw = {**raw, "relation": "adjacent"}
    return annotation.replace(content=_portable(new), raw=raw)


def _portable(content: Sequence[ContentBlock]) -> FrozenList:
    """Return the blocks as an envelope may carry them."""
    if type(content) is FrozenList:
        blocks: Any = content
    else:
        try:
            blocks = snapshot_frozen(list(content))
        except NotJsonError:
            # Such a result becomes a failure when it is fixed; until then it shows nothing.
            return frozen_list([])
    for block in blocks:
        if BLOCK(block, "") is not None:
            return frozen_list([block if BLOCK(block, "") is None else _foreign(block) for block in blocks])
    return blocks  # type: ignore[no-any-return]  # frozen blocks that are portable as they are


def _foreign(block: JsonValue) -> FrozenDict:
    return frozen_dict({"type": FOREIGN_BLOCK, "block": block})
