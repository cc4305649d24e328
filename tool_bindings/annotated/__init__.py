"""The annotated tool-result envelope: a result's meaning, told beside it (docs/annotated-results.md)."""

from tool_bindings.annotated.dispatches import FOREIGN_BLOCK, annotation_of, observed, record_of
from tool_bindings.annotated.envelope import MISSING, SCHEMA, AnnotatedToolResult, Status, envelope_schema
from tool_bindings.annotated.equality import same_json
from tool_bindings.annotated.errors import CODES, AnnotationError
from tool_bindings.annotated.intercepts import (
    AnnotatedOutcome,
    BoundaryPolicy,
    apply_boundary,
    apply_intercept,
)
from tool_bindings.annotated.mcp import MCP_ANNOTATION, answer_annotation, from_mcp, mcp_members, to_mcp
from tool_bindings.annotated.projection import (
    DEFAULT_KEEP,
    DEFAULT_POLICY,
    EVENT_FIELD,
    Projection,
    ProjectionPolicy,
    project,
)
from tool_bindings.annotated.records import ToolResultRecord, wrap_declared, wrap_error, wrap_raw

__all__ = [
    "CODES",
    "DEFAULT_KEEP",
    "DEFAULT_POLICY",
    "EVENT_FIELD",
    "FOREIGN_BLOCK",
    "MCP_ANNOTATION",
    "MISSING",
    "SCHEMA",
    "AnnotatedOutcome",
    "AnnotatedToolResult",
    "AnnotationError",
    "BoundaryPolicy",
    "Projection",
    "ProjectionPolicy",
    "Status",
    "ToolResultRecord",
    "annotation_of",
    "answer_annotation",
    "apply_boundary",
    "apply_intercept",
    "envelope_schema",
    "from_mcp",
    "mcp_members",
    "observed",
    "project",
    "record_of",
    "same_json",
    "to_mcp",
    "wrap_declared",
    "wrap_error",
    "wrap_raw",
]
