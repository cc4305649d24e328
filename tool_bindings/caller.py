"""Who makes calls: everything that all calls from one place have in common.

A program makes thousands of calls, each for the same session, run and parent; they share one `Caller`.

Knows: what a call may be told of where it comes from. Does not know: calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from tool_bindings.definition import ReportProgress
    from tool_bindings.scope import Scope

__all__ = ["Caller", "DispatchToken", "Provenance"]

Provenance: TypeAlias = Literal["direct", "code", "batch", "mcp"]
"""Which route a call came by."""


class DispatchToken:
    """Opaque identity of one dispatch; nested calls carry it as their parent."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """Where calls come from; the attributes are the arguments of `ToolRegistry.begin` of the same names."""

    grace_seconds: float
    root_call_id: str | None = None
    parent_call_id: str | None = None
    parent: DispatchToken | None = None
    session: object = None
    scope: Scope | None = None
    provenance: Provenance = "direct"
    run_id: str | None = None
    progress: ReportProgress | None = None
    approval_pending: Callable[[bool], object] | None = None
