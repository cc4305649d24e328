"""What one dispatch ends in: a success with a value, or a failure without one.

Knows: the two shapes, and how an exception becomes a failure.
Does not know: the pipeline that makes them, or where they are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from sandbox.values import FrozenList, NotJsonError, frozen_dict, frozen_list, snapshot_frozen
from tool_bindings.content import render_value, text_block
from tool_bindings.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.values import JsonValue
    from tool_bindings.annotated import AnnotatedToolResult
    from tool_bindings.content import ContentBlock

__all__ = [
    "ErrorInfo",
    "ToolErrorRecord",
    "ToolFailure",
    "ToolResult",
    "ToolSuccess",
    "failure_from_exception",
    "failure_from_message",
    "frozen_result",
]


_MESSAGE_BYTES: Final = 16_384
"""Bytes of UTF-8 shown of an exception's text, as of any value. Errors with a code bound their own."""


class ErrorInfo(NamedTuple):
    """Stable identity of a failure; only failures that come from a `HarnessError` have one."""

    name: str
    code: str


class ToolErrorRecord(NamedTuple):
    """Why a call failed."""

    message: str
    info: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class ToolSuccess:
    """A call that produced its canonical value.

    Attributes:
        value: The canonical value: validated, deep-frozen. Never recorded.
        content: Content blocks for a model or client; what is recorded.
        meta: Presentation metadata of a direct call, or None.
        additional_contexts: User messages to add to the conversation after this call.
        concludes_turn: Whether the tool asked for the turn to end.
        annotation: What is known beyond the result's shape; None for the ordinary case. Read it with
            `annotation_of(call, result)`.
    """

    value: JsonValue
    content: Sequence[ContentBlock]
    meta: JsonValue = None
    additional_contexts: Sequence[JsonValue] = ()
    concludes_turn: bool = False
    annotation: AnnotatedToolResult | None = None

    is_error: ClassVar[Literal[False]] = False


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """A call that has no value.

    Attributes:
        error: Message and, for coded failures, name and code.
        content: Content blocks for a model or client; what is recorded.
        meta: Presentation metadata, or None.
        additional_contexts: User messages to add to the conversation after this call.
        annotation: As for a success.
    """

    error: ToolErrorRecord
    content: Sequence[ContentBlock] = field(default_factory=list)
    meta: JsonValue = None
    additional_contexts: Sequence[JsonValue] = ()
    annotation: AnnotatedToolResult | None = None

    is_error: ClassVar[Literal[True]] = True


ToolResult: TypeAlias = ToolSuccess | ToolFailure
"""Either end of a dispatch; `is_error` tells which."""


def failure_from_message(message: str, info: ErrorInfo | None = None) -> ToolFailure:
    """Build the failure whose content is `Error: <message>`, frozen like everything listeners get."""
    content: Any = frozen_list([frozen_dict(text_block(f"Error: {message}"))])
    return ToolFailure(ToolErrorRecord(message, info), content)


_SHAPELESS: Final = failure_from_message(
    'the content of a tool result must be a list of blocks such as {"type": "text", "text": "..."}'
)


def failure_from_exception(error: BaseException) -> ToolFailure:
    """Build the failure that an exception stands for; never raises itself."""
    error = _single_cause(error)
    if isinstance(error, HarnessError):
        return failure_from_message(error.message, ErrorInfo(error.recorded_name, error.code))
    return failure_from_message(exception_message(error))


def frozen_result(result: ToolResult) -> ToolResult:
    """Return the result with everything beside the value frozen and in shape; the value already is."""
    if result.is_error and not _is_usable(result.error.info):
        result = replace(result, error=ToolErrorRecord(result.error.message))
    if type(result.content) is FrozenList and result.meta is None and not result.additional_contexts:
        return result if _are_blocks(result.content) else _SHAPELESS
    try:
        content = snapshot_frozen(_plain_list(result.content), "content")
        meta = snapshot_frozen(result.meta, "meta")
        contexts = snapshot_frozen(_plain_list(result.additional_contexts), "contexts")
    except NotJsonError as error:
        return frozen_result(
            failure_from_message(f"tool result must be losslessly JSON-serializable: {error}")
        )
    if not _are_blocks(content):
        return _SHAPELESS
    return replace(result, content=content, meta=meta, additional_contexts=contexts)  # type: ignore[arg-type]  # lists of JSON


def _are_blocks(content: JsonValue) -> bool:
    if type(content) is not FrozenList:
        return False
    for block in content:
        # `type` is not looked up before the block is known to be an object.
        if not isinstance(block, dict) or type(kind := block.get("type")) is not str or not kind:
            return False
    return True


def _is_usable(info: ErrorInfo | None) -> bool:
    """Return whether a name and a code that somebody made up can be recorded."""
    return info is None or all(type(part) is str and part for part in info)


def _plain_list(items: Sequence[Any]) -> Sequence[Any]:
    return list(items) if type(items) is tuple else items


def exception_message(error: BaseException) -> str:
    """Return an exception's text, whatever its `__str__` does; head and tail of a very long one."""
    try:
        message = getattr(error, "message", None)
        text = message if type(message) is str else str(error)
        # Forces str subclasses, which could misbehave later, to plain text.
        text = str.__str__(text)
    except Exception:  # noqa: BLE001  # hostile exceptions must still end in a message
        return "<unprintable exception>"
    return render_value(text, _MESSAGE_BYTES) if text else type(error).__name__


def _single_cause(error: BaseException) -> BaseException:
    """Look through exception groups with one member: `sub-exception` says nothing to a model."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
