"""Run one Python program instead of many tool calls, in a restricted, supervised subprocess.

    async with codemode.open_service(registry) as service:
        outcome = await service.run_code("return await tools.add(a=1, b=2)")

Names load their modules on first use, so that `codemode --help` does not wait for trio.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from codemode.batch import BatchResult, ToolCall
    from codemode.errors import (
        CodeModeError,
        InternalError,
        SandboxUnavailableError,
        ServiceBusyError,
        ServiceClosedError,
        SettingsError,
    )
    from codemode.outcome import RunOutcome
    from codemode.receipts import CallRecord
    from codemode.service import CodeService, ServiceStatistics, open_service
    from codemode.session_log import SessionLog
    from codemode.settings import Settings
    from sandbox.vocabulary import ABSENT, Failure, TraceFrame
    from tool_bindings.abort import AbortSignal

__all__ = [
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
]

_HOMES: Final = {
    "ABSENT": "sandbox.vocabulary",
    "AbortSignal": "tool_bindings.abort",
    "BatchResult": "codemode.batch",
    "CallRecord": "codemode.receipts",
    "CodeModeError": "codemode.errors",
    "CodeService": "codemode.service",
    "Failure": "sandbox.vocabulary",
    "InternalError": "codemode.errors",
    "RunOutcome": "codemode.outcome",
    "SandboxUnavailableError": "codemode.errors",
    "ServiceBusyError": "codemode.errors",
    "ServiceClosedError": "codemode.errors",
    "ServiceStatistics": "codemode.service",
    "SessionLog": "codemode.session_log",
    "Settings": "codemode.settings",
    "SettingsError": "codemode.errors",
    "ToolCall": "codemode.batch",
    "TraceFrame": "sandbox.vocabulary",
    "open_service": "codemode.service",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'codemode' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
