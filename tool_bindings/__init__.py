"""Turns Python callables into tools with one validated canonical value and a dispatch pipeline.

Knows: nothing itself; this file only names what the package offers.
"""

from sandbox.values import JsonValue
from tool_bindings.abort import AbortSignal
from tool_bindings.approval import (
    ApprovalOutcome,
    ApprovalProvider,
    ApprovalRequest,
    ScriptedApproval,
    TerminalApproval,
)
from tool_bindings.caller import Provenance
from tool_bindings.content import ContentBlock, blocks_text, render_json, text_block
from tool_bindings.definition import Output, ToolDefinition, ToolRunContext
from tool_bindings.errors import (
    AbortError,
    DefinitionError,
    DuplicateToolError,
    HarnessError,
    InvalidArgumentsError,
    InvalidResultError,
    ToolBindingError,
    ToolTimeoutError,
    UnknownToolError,
    UnsupportedSchemaError,
)
from tool_bindings.pipeline import Dispatch
from tool_bindings.policy import ALLOW, Accept, Allow, Ask, Block, Deny
from tool_bindings.registry import PresentationMode, Scope, ToolRegistry
from tool_bindings.results import ErrorInfo, ToolErrorRecord, ToolFailure, ToolResult, ToolSuccess
from tool_bindings.schema import parameters_schema, value_schema
from tool_bindings.stubs import render_stubs, signature

__all__ = [
    "ALLOW",
    "AbortError",
    "AbortSignal",
    "Accept",
    "Allow",
    "ApprovalOutcome",
    "ApprovalProvider",
    "ApprovalRequest",
    "Ask",
    "Block",
    "ContentBlock",
    "DefinitionError",
    "Deny",
    "Dispatch",
    "DuplicateToolError",
    "ErrorInfo",
    "HarnessError",
    "InvalidArgumentsError",
    "InvalidResultError",
    "JsonValue",
    "Output",
    "PresentationMode",
    "Provenance",
    "Scope",
    "ScriptedApproval",
    "TerminalApproval",
    "ToolBindingError",
    "ToolDefinition",
    "ToolErrorRecord",
    "ToolFailure",
    "ToolRegistry",
    "ToolResult",
    "ToolRunContext",
    "ToolSuccess",
    "ToolTimeoutError",
    "UnknownToolError",
    "UnsupportedSchemaError",
    "blocks_text",
    "parameters_schema",
    "render_json",
    "render_stubs",
    "signature",
    "text_block",
    "value_schema",
]
