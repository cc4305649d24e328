"""The words policies answer with, and the shapes of the policies themselves.

Knows: decisions before a call, decisions after it, and the listener types.
Does not know: when a listener is asked (`pipeline`), or where it is registered (`registry`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from sandbox.values import JsonValue
    from tool_bindings.content import ContentBlock
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.results import ToolResult

__all__ = ["ALLOW", "UNCHANGED", "Accept", "Allow", "Ask", "Block", "Deny", "PostDecision", "PreDecision"]


@dataclass(frozen=True, slots=True)
class Allow:
    """Let the call go on."""


class Deny(NamedTuple):
    """Refuse the call; the reason is its error message."""

    reason: str


class Ask(NamedTuple):
    """Let the approval provider decide; the reason is shown to whoever is asked."""

    reason: str | None = None


ALLOW: Final = Allow()

PreDecision: TypeAlias = Allow | Deny | Ask
"""Answer of a pre-execute listener."""


class _Unchanged:
    """Type of UNCHANGED."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final[Any] = _Unchanged()
"""Default of `Accept`'s fields: None is a legal replacement, absence needs a word of its own."""


class Accept(NamedTuple):
    """Let a result stand, perhaps changed.

    Replacing `content` changes only what a model or client reads; a program still gets the value,
    so it keeps nothing secret. Replacing `value` (successes only) makes everybody see the
    replacement, and computes content and metadata anew. Only one of the two may be given.
    """

    content: Sequence[ContentBlock] = UNCHANGED
    value: JsonValue = UNCHANGED
    contexts: Sequence[JsonValue] = ()


class Block(NamedTuple):
    """Turn a result into a failure with this feedback as its content; value and metadata are dropped."""

    content: Sequence[ContentBlock] = ()
    contexts: Sequence[JsonValue] = ()


PostDecision: TypeAlias = Accept | Block
"""Answer of a post-execute listener."""

PreListener: TypeAlias = Callable[
    ["Dispatch", Callable[[], Awaitable[PreDecision]]], PreDecision | Awaitable[PreDecision]
]
"""`(call, proceed)`: decide, or return what `await proceed()` decided."""

Guard: TypeAlias = Callable[["Dispatch"], str | Awaitable[str | None] | None]
"""`(call)`: a reason denies for good, None abstains. A guard cannot allow."""

AroundListener: TypeAlias = Callable[
    ["Dispatch", Callable[[], Awaitable["ToolResult"]]], "ToolResult | Awaitable[ToolResult]"
]
"""`(call, proceed)`: wrap or replace the body; may set `call.signal` while it runs."""

PostListener: TypeAlias = Callable[
    ["Dispatch", "ToolResult", Callable[[], Awaitable[PostDecision]]], PostDecision | Awaitable[PostDecision]
]
"""`(call, result, proceed)`: accept, change or block the result."""

Observer: TypeAlias = Callable[["Dispatch", "ToolResult"], object]
"""`(call, result)`: look only; exceptions are logged and go no further."""
