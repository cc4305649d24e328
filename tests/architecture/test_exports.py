"""The public names. Adding or removing one is a decision, so it has to be made here as well.

`sandbox` exports nothing on purpose: importing it must stay light, so its names are taken from its modules.
"""

from __future__ import annotations

import importlib

import pytest

EXPORTS: dict[str, list[str]] = {
    "codemode": [
        "ABSENT",
        "AbortSignal",
        "BatchResult",
        "CallRecord",
        "CodeModeError",
        "CodeService",
        "Failure",
        "InternalError",
        "RunOutcome",
        "SandboxUnavailableError",
        "ServiceBusyError",
        "ServiceClosedError",
        "ServiceStatistics",
        "SessionLog",
        "Settings",
        "SettingsError",
        "ToolCall",
        "TraceFrame",
        "open_service",
    ],
    "tool_bindings": [
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
    ],
    "sandbox": [],
}


@pytest.mark.parametrize("package", EXPORTS)
def test_a_package_exports_exactly_these_names(package):
    module = importlib.import_module(package)
    assert EXPORTS[package] == sorted(getattr(module, "__all__", []))


@pytest.mark.parametrize("package", EXPORTS)
def test_every_exported_name_is_there(package):
    module = importlib.import_module(package)
    missing = [name for name in EXPORTS[package] if not hasattr(module, name)]
    assert [] == missing
