"""What becomes of a record when somebody else has had it: intercepts, and the edge of the process.

Knows: which half of a record survives which change.
Does not know: who the intercepts are, or when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from sandbox.values import FrozenDict, JsonValue, NotJsonError, frozen_dict, snapshot_frozen, thaw
from tool_bindings.annotated.envelope import AnnotatedToolResult
from tool_bindings.annotated.equality import same_json
from tool_bindings.annotated.errors import AnnotationError
from tool_bindings.annotated.records import ToolResultRecord, correlation, lossless, raw_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AnnotatedOutcome", "BoundaryPolicy", "apply_boundary", "apply_intercept"]

BoundaryPolicy: TypeAlias = Literal["reject", "degrade"]
"""reject: the producer declared that it annotates, so a malformed annotation is its error.
degrade: a third party's malformed annotation is put aside and its result goes on untouched."""

PUT_ASIDE: Final = "malformedAnnotation"
"""Member of `metadata` that keeps an annotation which could not be read."""


class AnnotatedOutcome(NamedTuple):
    """What an intercept returns that takes part in annotating. Any other value it returns is raw JSON.

    Attributes:
        result: The raw result the application is to see.
        annotation: Its envelope, as an object or serialised. None takes the annotation away.
    """

    result: JsonValue
    annotation: AnnotatedToolResult | Mapping[str, Any] | None = None


def apply_intercept(before: ToolResultRecord, after: object) -> ToolResultRecord:
    """Return the record that follows from what an intercept made of another.

    - `before` itself: forwarded, both halves stay.
    - An `AnnotatedOutcome`: its two halves. A malformed annotation is put aside as at the boundary.
    - Anything else is raw JSON from an intercept that has never heard of annotations. A value that
      is the same, types included, keeps the annotation; any other one is of unknown status.

    Where the annotation is lost, what was supplied to correlate the call stays.

    Raises:
        AnnotationError: `before` is not a sound record, or the value is not lossless JSON.
    """
    result, annotation = read_record(before, "reject")
    if after is before:
        outcome = annotation
    elif isinstance(after, AnnotatedOutcome):
        result = lossless(after.result, "/result")
        given = after.annotation
        supplied = given.members if isinstance(given, AnnotatedToolResult) else given
        outcome = judge(result, supplied, "degrade", annotation.correlation)
    else:
        changed = lossless(after, "")
        outcome = carry_over(result, annotation, changed, annotation.correlation)
        result = changed
    return {"result": thaw(result), "annotation": outcome.to_json()}


def apply_boundary(
    record: Mapping[str, Any], policy: BoundaryPolicy, call: Mapping[str, Any] | None = None
) -> ToolResultRecord:
    """Take in a record from outside; afterwards it has a sound envelope.

    No annotation, or null, means raw JSON. An envelope that names a raw result other than the one
    beside it is as malformed as one that breaks a rule.

    Args:
        record: `{"result": ..., "annotation": ...}`; the result goes through untouched.
        policy: What a malformed annotation means.
        call: Correlation identifiers for a record that has no usable annotation.

    Raises:
        AnnotationError: `malformed_annotation` under the policy `reject`, with the broken rule as its
            cause. Under either policy, when the record has no result or the result is not lossless JSON.
    """
    result, annotation = read_record(record, policy, correlation(call))
    return {"result": thaw(result), "annotation": annotation.to_json()}


# --- for this package -------------------------------------------------------------------------------


def judge(
    result: JsonValue, supplied: object, policy: BoundaryPolicy, identifiers: FrozenDict
) -> AnnotatedToolResult:
    """Return the envelope of a frozen value for which somebody supplied an annotation, or None.

    Raises:
        AnnotationError: `malformed_annotation`, under the policy `reject`.
    """
    if supplied is None:
        return raw_envelope(result, identifiers)
    try:
        annotation = AnnotatedToolResult.from_json(supplied)
        if not annotation.fits(result):
            reason = f"the result beside the envelope is not its {annotation.relation} value"
            raise AnnotationError("raw_relation", "/raw", reason)
    except AnnotationError as error:
        if policy == "reject":
            reason = f'is malformed at "{error.pointer}": {error.reason}'
            raise AnnotationError("malformed_annotation", "/annotation", reason) from error
        return raw_envelope(result, identifiers, frozen_dict({PUT_ASIDE: kept(supplied)}))
    return annotation


def carry_over(
    before: JsonValue, annotation: AnnotatedToolResult, after: JsonValue, identifiers: FrozenDict
) -> AnnotatedToolResult:
    """Return the envelope of the frozen value `after`, which took the place of the described one."""
    if not same_json(before, after):
        return raw_envelope(after, identifiers)
    # The same value may list its members in another order; what is restored keeps the order that the
    # application sees.
    if annotation.relation == "structuredContent":
        return annotation.replace(structuredContent=after)
    if annotation.relation == "inline":
        return annotation.replace(raw={**annotation.members["raw"], "value": after})
    return annotation


def read_record(
    record: Mapping[str, Any], policy: BoundaryPolicy, identifiers: FrozenDict | None = None
) -> tuple[JsonValue, AnnotatedToolResult]:
    """Return the frozen result and the envelope of a record, as `apply_boundary` does."""
    if policy not in ("reject", "degrade"):
        msg = f'a boundary policy is "reject" or "degrade", not {policy!r}'
        raise ValueError(msg)
    if type(record) is not dict and type(record) is not FrozenDict:
        raise AnnotationError("invalid_type", "", "a record must be a JSON object with a result")
    if "result" not in record:
        raise AnnotationError("missing_field", "/result", "is missing; a null result is written as null")
    result = lossless(record["result"], "/result")
    identifiers = correlation(None) if identifiers is None else identifiers
    return result, judge(result, record.get("annotation"), policy, identifiers)


def kept(supplied: object) -> JsonValue:
    """Return what is kept of an annotation that could not be read."""
    try:
        return snapshot_frozen(supplied, "annotation")
    except NotJsonError as error:
        return f"not kept, because it is not JSON: {error}"
