"""Records: a raw result beside its envelope, and how a first record is made.

Knows: what counts as evidence. A value alone says nothing about success; a declared output and a
caught exception do.
Does not know: what happens to a record afterwards (`intercepts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from sandbox.values import (
    FrozenDict,
    JsonValue,
    NotJsonError,
    frozen_dict,
    frozen_list,
    snapshot_frozen,
    thaw,
)
from tool_bindings.annotated.envelope import MISSING, AnnotatedToolResult, build, trusted
from tool_bindings.annotated.errors import AnnotationError
from tool_bindings.annotated.shapes import CORRELATION
from tool_bindings.content import text_block
from tool_bindings.errors import HarnessError
from tool_bindings.results import exception_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tool_bindings.content import ContentBlock

__all__ = ["ToolResultRecord", "wrap_declared", "wrap_error", "wrap_raw"]


class ToolResultRecord(TypedDict):
    """How a result and its envelope travel together."""

    result: JsonValue
    """The raw result, untouched."""
    annotation: dict[str, JsonValue] | None
    """The envelope's serialised form; null means that there is none."""


def wrap_raw(value: object, call: Mapping[str, Any] | None = None) -> ToolResultRecord:
    """Annotate the result of a callback that returns raw JSON: status unknown, nothing promoted.

    A string becomes the one text block. Any other value is not described at all, whatever it looks like.

    Args:
        value: What the callback returned.
        call: The correlation identifiers the caller knows, for example `{"toolCallId": ...}`.

    Raises:
        AnnotationError: The value is not lossless JSON, or an identifier is not a non-empty string.
    """
    result = lossless(value, "")
    return _record(result, raw_envelope(result, correlation(call)))


def wrap_declared(
    value: object,
    content: Sequence[ContentBlock] | None = None,
    data_schema: JsonValue = None,
    call: Mapping[str, Any] | None = None,
) -> ToolResultRecord:
    """Annotate the result of a tool that declared its output: it succeeded, and the value is structured.

    Args:
        value: The declared value.
        content: Blocks for a model or client; none when left out.
        data_schema: Identifier of the application's own schema of the value, or None.
        call: As for `wrap_raw`.

    Raises:
        AnnotationError: The value is not lossless JSON, or another part breaks the envelope's rules.
    """
    result = lossless(value, "")
    blocks = lossless([] if content is None else list(content), "/content")
    schema = MISSING if data_schema is None else lossless(data_schema, "/dataSchema")
    envelope = build(
        "succeeded",
        blocks,  # type: ignore[arg-type]  # the frozen copy of a list
        "structuredContent",
        structured_content=result,
        data_schema=schema,
        correlation=correlation(call),
    )
    return _record(result, AnnotatedToolResult.from_json(envelope))


def wrap_error(error: BaseException, call: Mapping[str, Any] | None = None) -> ToolResultRecord:
    """Annotate a call that raised: it failed, and the raw result is null.

    The recorded code is that of a `HarnessError`, or a string the exception carries as `code`.

    Args:
        error: What was raised; of a group with one member, that member counts.
        call: As for `wrap_raw`.

    Raises:
        AnnotationError: An identifier is not a non-empty string.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    code: str | None
    if isinstance(error, HarnessError):
        message, name, code = error.message, error.recorded_name, error.code
    else:
        message, name, code = exception_message(error), type(error).__name__, _code_of(error)
    return _record(None, failure_envelope(message, name, code, correlation(call)))


# --- for this package -------------------------------------------------------------------------------


def raw_envelope(
    result: JsonValue, identifiers: FrozenDict, metadata: FrozenDict | None = None
) -> AnnotatedToolResult:
    """Make the envelope of a frozen value that nobody vouches for."""
    if isinstance(result, str):
        blocks, relation = frozen_list([frozen_dict(text_block(result))]), "text"
    else:
        blocks, relation = frozen_list([]), "adjacent"
    return trusted(build("unknown", blocks, relation, correlation=identifiers, metadata=metadata))


def failure_envelope(
    message: str,
    name: str | None,
    code: str | None,
    identifiers: FrozenDict,
    content: Sequence[JsonValue] | None = None,
) -> AnnotatedToolResult:
    """Make the envelope of a call that failed; its content is the message, or the frozen blocks given."""
    error: dict[str, JsonValue] = {"message": message}
    if name is not None:
        error["name"] = name
    if code is not None:
        error["code"] = code
    if content is None:
        content = frozen_list([frozen_dict(text_block(message))])
    return trusted(build("failed", content, "adjacent", correlation=identifiers, error=frozen_dict(error)))


def correlation(call: Mapping[str, Any] | None) -> FrozenDict:
    """Return the identifiers that were supplied, frozen; one that is None was not supplied.

    Raises:
        AnnotationError: `invalid_correlation`.
    """
    if call is not None and not isinstance(call, Mapping):
        reason = f'must be an object such as {{"toolCallId": "..."}}, not {type(call).__name__}'
        raise AnnotationError("invalid_correlation", "/correlation", reason)
    given = {name: value for name, value in (call or {}).items() if value is not None}
    identifiers = lossless(given, "/correlation")
    problem = CORRELATION(identifiers, "/correlation")
    if problem is not None:
        raise AnnotationError("invalid_correlation", problem.pointer, problem.reason)
    assert isinstance(identifiers, FrozenDict), "the snapshot of a dict is one"
    return identifiers


def lossless(value: object, pointer: str) -> JsonValue:
    """Return a frozen copy.

    Raises:
        AnnotationError: `not_lossless_json`, at the value as a whole; the message has the exact place.
    """
    try:
        return snapshot_frozen(value)
    except NotJsonError as error:
        raise AnnotationError("not_lossless_json", pointer, str(error)) from None


def _code_of(error: BaseException) -> str | None:
    try:
        code = getattr(error, "code", None)
    except Exception:  # noqa: BLE001  # hostile exceptions must still end in an envelope
        return None
    # Other types (an HTTP status, an exit status) are no stable slugs.
    return code if type(code) is str else None


def _record(result: JsonValue, annotation: AnnotatedToolResult) -> ToolResultRecord:
    return {"result": thaw(result), "annotation": annotation.to_json()}
