"""Between envelopes and the results of MCP's `tools/call`.

Knows: which members the two share, what each protocol can say that the other cannot, and where that
goes.
Does not know: connections, servers, or the MCP library; both directions take and make plain JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sandbox.values import FrozenDict, JsonValue, frozen_dict, frozen_list, thaw
from tool_bindings.annotated.envelope import MISSING, AnnotatedToolResult, build
from tool_bindings.annotated.errors import AnnotationError
from tool_bindings.annotated.intercepts import read_record
from tool_bindings.annotated.records import ToolResultRecord, correlation, lossless
from tool_bindings.annotated.shapes import BOOLEAN, LIST, OBJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MCP_ANNOTATION", "from_mcp", "to_mcp"]

MCP_ANNOTATION: Final = "dev.codemode/annotation"
"""Member of an MCP result's `_meta` that says what the protocol's own members cannot."""

_SHARED: Final = ("content", "structuredContent", "isError", "_meta")
"""Members that mean the same in both, and so are written once, where MCP has them."""

_ENVELOPE_ONLY: Final = ("schema", "status", "dataSchema", "correlation", "error", "metadata", "raw")
"""Members with a meaning in an envelope and none in MCP: a server's own member of such a name stays in
the raw result, where it means what the server meant."""


def from_mcp(result: object, call: Mapping[str, Any] | None = None) -> ToolResultRecord:
    """Annotate what an MCP server answered to `tools/call`; the raw result is the answer as it came.

    `isError` is the evidence, and without it MCP means success. An answer that asks for input is no
    result yet, so its status is unknown. Nothing inside the answer is taken for an envelope, not even
    one that another server of ours put into `_meta`.

    Args:
        result: The `result` member of the JSON-RPC response.
        call: Correlation identifiers the caller knows.

    Raises:
        AnnotationError: The answer is not what the protocol allows; `mcp_result_type` when its type is
            one that this client does not know.
    """
    raw = lossless(result, "")
    return {"result": thaw(raw), "annotation": _read_answer(raw, correlation(call)).to_json()}


def to_mcp(record: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Write a record as a complete MCP result.

    What MCP has no member for goes to `_meta`, under `dev.codemode/annotation`. MCP knows success and
    error only: for an unknown status `isError` is left out, which clients read as success, and the
    status in `_meta` says what was lost. A raw result that lies beside the envelope does not travel.

    Raises:
        AnnotationError: The record is not sound.
    """
    _result, annotation = read_record(record, "reject")
    written: dict[str, JsonValue] = {"resultType": "complete"}
    for name in ("content", "structuredContent"):
        if name in annotation.members:
            written[name] = thaw(annotation.members[name])
    written.update(mcp_members(annotation))
    return written


# --- for MCP clients and servers ------------------------------------------------------------------------


def mcp_members(annotation: AnnotatedToolResult) -> dict[str, JsonValue]:
    """Return what an MCP result says beside its content: `_meta` and, unless it is unknown, `isError`."""
    members = annotation.members
    written: dict[str, JsonValue] = {}
    if annotation.status != "unknown":
        written["isError"] = annotation.status == "failed"
    rest = {name: item for name, item in members.items() if name not in _SHARED}
    written["_meta"] = thaw({**members.get("_meta", {}), MCP_ANNOTATION: rest})
    return written


def answer_annotation(answer: object) -> AnnotatedToolResult | None:
    """Return the envelope of a server's answer, or None when it is not what the protocol allows.

    A third party's odd answer costs its annotation, and never the result.
    """
    try:
        return _read_answer(lossless(answer, ""), correlation(None))
    except AnnotationError:
        return None


def _read_answer(raw: JsonValue, identifiers: FrozenDict) -> AnnotatedToolResult:
    problem = OBJECT(raw, "")
    if problem is not None:
        raise AnnotationError("invalid_type", problem.pointer, f"an MCP result {problem.reason}")
    assert isinstance(raw, FrozenDict), "the snapshot of a dict is one"
    kind = raw.get("resultType", "complete")
    if kind not in ("complete", "input_required"):
        raise AnnotationError("mcp_result_type", "/resultType", 'must be "complete" or "input_required"')
    for name, shape in (("content", LIST), ("isError", BOOLEAN), ("_meta", OBJECT)):
        problem = shape(raw[name], f"/{name}") if name in raw else None
        if problem is not None:
            raise AnnotationError("invalid_type", problem.pointer, problem.reason)
    content: Any = raw.get("content", frozen_list([]))
    failed = raw.get("isError", False)
    envelope = build(
        "failed" if failed else "succeeded" if kind == "complete" else "unknown",
        content,
        "adjacent",
        structured_content=raw.get("structuredContent", MISSING),
        meta=raw.get("_meta", MISSING),
        correlation=identifiers,
        unknown=frozen_dict(
            {name: item for name, item in raw.items() if name not in _SHARED and name not in _ENVELOPE_ONLY}
        ),
    )
    return AnnotatedToolResult.from_json(envelope)
