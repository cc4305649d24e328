"""The annotated tool-result envelope: what a result means, told beside the result and never instead of it.

Knows: the serialised form, the rules it obeys and the order they are checked in, and how the raw
result is found again.
Does not know: where envelopes come from (`records`, `mcp`, `results`), or who may see them
(`projection`).

A value is an envelope because somebody handed it over as one. Nothing here, or anywhere else, looks
at a value's text or keys to find out whether it might be.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sandbox.values import FrozenDict, JsonValue, NotJsonError, frozen_dict, snapshot_frozen, thaw
from tool_bindings.annotated.equality import same_json
from tool_bindings.annotated.errors import AnnotationError
from tool_bindings.annotated.shapes import (
    BLOCK,
    BOOLEAN,
    CORRELATION,
    DATA_SCHEMA,
    ERROR,
    LIST,
    OBJECT,
    STRING,
    Problem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tool_bindings.annotated.shapes import Shape

__all__ = ["MISSING", "SCHEMA", "AnnotatedToolResult", "Status", "envelope_schema"]

SCHEMA: Final = "codemode.annotated-tool-result/1"
"""Names the envelope contract and its major version; not the schema of any payload."""

Status: TypeAlias = Literal["succeeded", "failed", "unknown"]
"""Whether the tool did what it was asked. `unknown`: nobody who could know has said so."""


class _Missing:
    """Type of MISSING."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = _Missing()
"""Stands for an absent member, since null is a value of its own."""

_RELATIONS: Final = ("adjacent", "structuredContent", "text", "inline")


def envelope_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the serialised form, as a copy of your own."""
    from importlib import resources  # noqa: PLC0415  # brings much that nothing else here needs

    text = resources.files("tool_bindings").joinpath("annotated-tool-result.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


class AnnotatedToolResult:
    """One envelope: valid, immutable, every member kept as it came.

    Made by `from_json` and by the functions of this package, never by calling the class.

    Equality is type-exact and ignores the order of members; `to_json` keeps that order.
    """

    __slots__ = ("_envelope",)
    _envelope: FrozenDict
    __hash__ = None  # type: ignore[assignment]  # equality ignores member order, which no cheap hash does

    def __init__(self) -> None:
        msg = "make an AnnotatedToolResult with from_json(...) or one of the wrap_ functions"
        raise TypeError(msg)

    @staticmethod
    def from_json(value: object) -> AnnotatedToolResult:
        """Read the serialised form, a JSON object; a string that holds one is not one.

        Raises:
            AnnotationError: The first rule it breaks, in the contract's order.
        """
        if type(value) is not dict and type(value) is not FrozenDict:
            raise AnnotationError("invalid_type", "", "an annotation must be a JSON object")
        try:
            envelope = snapshot_frozen(value, "annotation")
        except NotJsonError as error:
            raise AnnotationError("not_lossless_json", "", str(error)) from None
        assert isinstance(envelope, FrozenDict), "the snapshot of a dict is one"
        _check(envelope)
        return trusted(envelope)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the serialised form, every member in its place, as a copy of your own."""
        return thaw(self._envelope)  # type: ignore[return-value]  # an object stays one

    def restore(self, result: JsonValue = MISSING) -> JsonValue:
        """Return the raw result, of exactly its type, wherever the envelope says it is.

        Args:
            result: What the envelope travelled beside; needed when the relation is `adjacent`.

        Raises:
            AnnotationError: `raw_unavailable` when only the value beside the envelope would do and none
                was given; `raw_relation` when one was given that is not what the envelope holds.
        """
        held = self.held
        if held is MISSING:
            if result is MISSING:
                raise AnnotationError(
                    "raw_unavailable",
                    "/raw",
                    "the raw result lies beside this envelope, not in it; call restore(result)",
                )
            return result
        if result is not MISSING and not self.fits(result):
            raise AnnotationError(
                "raw_relation", "/raw", f"the result beside the envelope is not its {self.relation} value"
            )
        return thaw(held)

    def fits(self, result: JsonValue) -> bool:
        """Tell whether a lossless value can be the raw result this envelope describes."""
        held = self.held
        return held is MISSING or same_json(held, result)

    # --- members --------------------------------------------------------------------------------

    @property
    def members(self) -> Mapping[str, Any]:
        """Every member, known or not, deep-frozen."""
        return self._envelope

    @property
    def status(self) -> Status:
        """Whether the tool did what it was asked."""
        status: Status = self.members["status"]
        return status

    @property
    def content(self) -> Sequence[Mapping[str, Any]]:
        """Blocks for a model or client."""
        content: Sequence[Mapping[str, Any]] = self.members["content"]
        return content

    @property
    def structured_content(self) -> Any:
        """The value the producer declared, or MISSING."""
        return self.members.get("structuredContent", MISSING)

    @property
    def data_schema(self) -> Any:
        """Identifier of the application's own schema, or MISSING."""
        return self.members.get("dataSchema", MISSING)

    @property
    def correlation(self) -> FrozenDict:
        """The identifiers that were supplied, perhaps none."""
        correlation: FrozenDict = self.members.get("correlation", _NOTHING)
        return correlation

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Message, and perhaps name and code, of a failure."""
        return self.members.get("error")

    @property
    def relation(self) -> str:
        """Where the raw result is: `adjacent`, `structuredContent`, `text` or `inline`."""
        relation: str = self.members["raw"]["relation"]
        return relation

    @property
    def held(self) -> Any:
        """The raw result as the envelope holds it, frozen, or MISSING when it lies beside it."""
        relation = self.relation
        if relation == "adjacent":
            return MISSING
        if relation == "structuredContent":
            return self.members["structuredContent"]
        if relation == "text":
            return self.members["content"][0]["text"]
        return self.members["raw"]["value"]

    def replace(self, **changes: Any) -> AnnotatedToolResult:
        """Return a copy with members changed in place, added at the end, or, with MISSING, removed.

        Raises:
            AnnotationError: The copy would break a rule.
        """
        edited = {name: item for name, item in {**self._envelope, **changes}.items() if item is not MISSING}
        return self.from_json(edited)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnnotatedToolResult):
            return NotImplemented
        return same_json(self._envelope, other._envelope)

    def __repr__(self) -> str:
        # Without payload: a repr ends up in logs.
        return f"<AnnotatedToolResult {self.status}, raw {self.relation}>"


_NOTHING: Final = frozen_dict({})


def trusted(envelope: FrozenDict) -> AnnotatedToolResult:
    """Wrap an envelope that is frozen and known to be valid."""
    self: AnnotatedToolResult = object.__new__(AnnotatedToolResult)
    self._envelope = envelope
    return self


def build(
    status: Status,
    content: Sequence[JsonValue],
    relation: str,
    *,
    structured_content: JsonValue = MISSING,
    data_schema: JsonValue = MISSING,
    meta: JsonValue = MISSING,
    correlation: Mapping[str, JsonValue] = _NOTHING,
    error: Mapping[str, JsonValue] | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    unknown: Mapping[str, JsonValue] = _NOTHING,
) -> FrozenDict:
    """Lay out a fresh envelope in the order this package writes; every part must be frozen already.

    The result is checked by nobody: pass it to `from_json` unless each part is known to be valid.
    """
    envelope: dict[str, Any] = {"schema": SCHEMA, "status": status}
    if status != "unknown":
        envelope["isError"] = status == "failed"
    envelope["content"] = content
    if structured_content is not MISSING:
        envelope["structuredContent"] = structured_content
    if data_schema is not MISSING:
        envelope["dataSchema"] = data_schema
    if meta is not MISSING:
        envelope["_meta"] = meta
    if correlation:
        envelope["correlation"] = correlation
    if error is not None:
        envelope["error"] = error
    if metadata is not None:
        envelope["metadata"] = metadata
    envelope.update(unknown)
    envelope["raw"] = frozen_dict({"relation": relation})
    return frozen_dict(envelope)


# --- the rules, in the contract's order -----------------------------------------------------------------


def _check(envelope: FrozenDict) -> None:
    """Raise for the first broken rule."""
    if "schema" not in envelope:
        raise AnnotationError("missing_field", "/schema", f'is missing; write "{SCHEMA}"')
    if envelope["schema"] != SCHEMA:
        raise AnnotationError("unsupported_schema", "/schema", f'must be "{SCHEMA}"')
    for name in ("status", "content", "raw"):
        if name not in envelope:
            raise AnnotationError("missing_field", f"/{name}", "is missing")
    for name, shape in _TYPES.items():
        if name in envelope:
            _refuse("invalid_type", shape(envelope[name], f"/{name}"))
    _check_status(envelope)
    content: Any = envelope["content"]
    for index, block in enumerate(content):
        _refuse("invalid_block", BLOCK(block, f"/content/{index}"))
    if "dataSchema" in envelope:
        _refuse("invalid_data_schema", DATA_SCHEMA(envelope["dataSchema"], "/dataSchema"))
    if "correlation" in envelope:
        _refuse("invalid_correlation", CORRELATION(envelope["correlation"], "/correlation"))
    _check_relation(envelope)


_TYPES: Final[Mapping[str, Shape]] = {
    "status": STRING,
    "content": LIST,
    "raw": OBJECT,
    "isError": BOOLEAN,
    "error": OBJECT,
    "metadata": OBJECT,
    "_meta": OBJECT,
}
"""Top-level members whose type has no code of its own."""


def _refuse(code: str, problem: Problem | None) -> None:
    if problem is not None:
        if problem.missing and code == "invalid_type":
            code = "missing_field"
        raise AnnotationError(code, problem.pointer, problem.reason)


def _check_status(envelope: FrozenDict) -> None:
    status = envelope["status"]
    if status not in ("succeeded", "failed", "unknown"):
        raise AnnotationError("invalid_status", "/status", 'must be "succeeded", "failed" or "unknown"')
    if "isError" in envelope:
        if status == "unknown":
            raise AnnotationError("status_conflict", "/isError", "must be absent when the status is unknown")
        if envelope["isError"] is not (status == "failed"):
            raise AnnotationError("status_conflict", "/isError", f"contradicts the status {status}")
    if "error" in envelope:
        if status != "failed":
            raise AnnotationError("status_conflict", "/error", f"must be absent when the status is {status}")
        _refuse("invalid_type", ERROR(envelope["error"], "/error"))


def _check_relation(envelope: FrozenDict) -> None:
    raw: Any = envelope["raw"]
    relation = raw.get("relation")
    if not isinstance(relation, str) or relation not in _RELATIONS:
        raise AnnotationError("raw_relation", "/raw/relation", f"must be one of {', '.join(_RELATIONS)}")
    if ("value" in raw) != (relation == "inline"):
        raise AnnotationError("raw_relation", "/raw", "has a value exactly when the relation is inline")
    if relation == "structuredContent" and "structuredContent" not in envelope:
        raise AnnotationError("raw_relation", "/raw", "names structuredContent, which is absent")
    content: Any = envelope["content"]
    if relation == "text" and not (len(content) == 1 and content[0]["type"] == "text"):
        raise AnnotationError("raw_relation", "/raw", "names the text, so content must be one text block")
