"""A definition that is ready to be called: its schemas compiled, its values made canonical.

Knows: what registration checks of one definition, and how a body's value becomes a success.
Does not know: layers, policies, or the stages of a dispatch.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, Literal

from sandbox.values import FrozenDict, FrozenList, NotJsonError, frozen_dict, frozen_list, snapshot_frozen
from tool_bindings.annotations import is_async
from tool_bindings.content import DEFAULT_RENDER_BYTES, render_value, text_block
from tool_bindings.errors import InvalidArgumentsError, InvalidResultError, UnsupportedSchemaError
from tool_bindings.results import ToolSuccess, exception_message
from tool_bindings.stubs import signature
from tool_bindings.validation import InvalidValueError, compile_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sandbox.values import JsonValue
    from tool_bindings.definition import ToolDefinition
    from tool_bindings.validation import CompiledSchema, Violation

__all__ = ["BoundTool", "argument_error", "create_success"]

_SUGGESTION_CUTOFF: Final = 0.6
"""Similarity from which a name is offered as what was meant (difflib's default)."""


class BoundTool:
    """A definition with everything about it that can be computed once."""

    __slots__ = ("definition", "is_transport", "output", "parameters", "runs_in_thread")

    def __init__(self, definition: ToolDefinition, *, is_transport: bool = False) -> None:
        """Compile a definition's schemas.

        Raises:
            UnsupportedSchemaError: One of them cannot be used; the message says which.
        """
        self.definition = definition
        self.parameters = _compile_part(definition, definition.parameters, "parameters")
        self.output = _compile_part(definition, definition.output.schema, "output")
        self.runs_in_thread = not is_async(definition.execute)
        self.is_transport = is_transport

    def execution_mode(self, arguments: object) -> Literal["parallel", "exclusive"]:
        """Return `parallel` only when the definition says exactly True for these arguments."""
        safe = self.definition.concurrency_safe
        if type(safe) is bool:
            return "parallel" if safe else "exclusive"
        try:
            frozen = self.parameters.freeze(arguments, "")
            return "parallel" if safe(frozen) is True else "exclusive"  # type: ignore[arg-type]  # an object, by schema
        except Exception:  # noqa: BLE001  # a classifier that fails promises nothing
            return "exclusive"


def _compile_part(definition: ToolDefinition, schema: Mapping[str, Any], part: str) -> CompiledSchema:
    try:
        return compile_schema(schema)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(
            [f"{part} of tool {definition.name!r}: {text}" for text in error.violations]
        ) from None


def create_success(
    bound: BoundTool,
    arguments: Mapping[str, Any],
    value: object,
    *,
    with_meta: bool,
    contexts: Sequence[JsonValue],
    concludes_turn: bool,
) -> ToolSuccess:
    """Make a value canonical and present it.

    Raises:
        InvalidResultError: Value, rendering or metadata break the tool's output declaration.
    """
    output = bound.definition.output
    try:
        canonical = bound.output.freeze(value)
    except NotJsonError as error:
        raise _output_error(bound, f"value is not lossless JSON: {error}") from None
    except InvalidValueError as error:
        raise _output_error(bound, str(error)) from None
    if output.render is None:
        # Made here from JSON, so there is nothing to check.
        content: Any = frozen_list([frozen_dict(text_block(render_value(canonical, DEFAULT_RENDER_BYTES)))])
    else:
        content = _rendered(bound, output.render, arguments, canonical)
    meta: JsonValue = None
    if with_meta and output.presentation_meta is not None:
        meta = _projected(bound, "presentation_meta", output.presentation_meta, arguments, canonical)
    return ToolSuccess(
        canonical, content, meta, frozen_list(list(contexts)) if contexts else (), concludes_turn
    )


def _projected(
    bound: BoundTool, part: str, project: Any, arguments: Mapping[str, Any], value: JsonValue
) -> JsonValue:
    try:
        projection = project(arguments, value)
    except Exception as error:  # contained: the call fails, the host does not
        raise _output_error(bound, f"output.{part} failed: {exception_message(error)}") from error
    try:
        return snapshot_frozen(projection, part)
    except NotJsonError as error:
        raise _output_error(bound, f"output.{part} returned non-lossless JSON: {error}") from None


def _rendered(bound: BoundTool, render: Any, arguments: Mapping[str, Any], value: JsonValue) -> FrozenList:
    blocks = _projected(bound, "render", render, arguments, value)
    if not isinstance(blocks, FrozenList) or not all(
        isinstance(block, FrozenDict) and isinstance(block.get("type"), str) for block in blocks
    ):
        raise _output_error(
            bound,
            'output.render must return a list of content blocks such as [{"type": "text", "text": "..."}]',
        )
    return blocks


def _output_error(bound: BoundTool, violations: str) -> InvalidResultError:
    return InvalidResultError(f'tool "{bound.definition.name}" returned invalid output: {violations}')


def argument_error(bound: BoundTool, violations: Sequence[Violation] | str) -> InvalidArgumentsError:
    """Say what is wrong with a call's arguments, which were probably meant, and how the call is written."""
    if isinstance(violations, str):
        text = violations
    else:
        text = "; ".join(_with_suggestion(bound, violation) for violation in violations[:_SHOWN_VIOLATIONS])
        if len(violations) > _SHOWN_VIOLATIONS:
            text += f"; and {len(violations) - _SHOWN_VIOLATIONS} more"
    stop = "" if text.endswith("?") else "."
    return InvalidArgumentsError(
        f"invalid arguments: {text}{stop} The tool is: {signature(bound.definition)}"
    )


_SHOWN_VIOLATIONS: Final = 10
"""Violations listed in one error (arbitrary: enough to repair a call in one go)."""


def _with_suggestion(bound: BoundTool, violation: Violation) -> str:
    if violation.undeclared is None or violation.keys:
        return violation.text
    declared = bound.parameters.schema.get("properties", {})
    close = difflib.get_close_matches(violation.undeclared, declared, n=1, cutoff=_SUGGESTION_CUTOFF)
    return f'{violation.text}; did you mean "{close[0]}"?' if close else violation.text
