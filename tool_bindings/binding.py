"""A definition that is ready to be called: its schemas compiled, its values made canonical.

Knows: what registration checks of one definition, and how a body's value becomes a success.
Does not know: layers, policies, or the stages of a dispatch.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, Literal

import trio

from sandbox.values import (
    FrozenDict,
    FrozenList,
    NotJsonError,
    frozen_dict,
    frozen_list,
    snapshot_frozen,
)
from tool_bindings.bodies import is_async
from tool_bindings.content import DEFAULT_RENDER_BYTES, render_json, render_value, text_block
from tool_bindings.errors import (
    ArgumentConversionError,
    HarnessError,
    InvalidArgumentsError,
    InvalidResultError,
    UnsupportedSchemaError,
)
from tool_bindings.results import ToolSuccess, exception_message
from tool_bindings.stubs import signature
from tool_bindings.validation import InvalidValueError, compile_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sandbox.values import JsonValue
    from tool_bindings.definition import ConcurrencySafe, ToolDefinition
    from tool_bindings.results import ToolResult
    from tool_bindings.validation import CompiledSchema, Violation

__all__ = ["BoundTool", "argument_problem", "canonical_value", "conversion_problem", "success_of"]

_SUGGESTION_CUTOFF: Final = 0.6
"""Similarity from which a name is offered as what was meant (difflib's default)."""


class BoundTool:
    """A definition with everything about it that can be computed once."""

    __slots__ = ("_mode", "definition", "is_transport", "output", "parameters", "runs_in_thread")

    def __init__(
        self, definition: ToolDefinition, *, is_transport: bool = False, defer_schemas: bool = False
    ) -> None:
        """Compile a definition's schemas.

        Args:
            definition: The definition.
            is_transport: Whether it is `run_code`, which no layer holds.
            defer_schemas: Have full JSON Schemas judged by the first call instead of now.

        Raises:
            UnsupportedSchemaError: One of them cannot be used; the message says which.
        """
        self.definition = definition
        self.parameters = _compile_part(definition, definition.parameters, "parameters", defer=defer_schemas)
        self.output = _compile_part(definition, definition.output.schema, "output", defer=defer_schemas)
        self.runs_in_thread = not is_async(definition.execute)
        self.is_transport = is_transport
        self._mode = _fixed_mode(definition.concurrency_safe)

    def execution_mode(self, arguments: object) -> Literal["parallel", "exclusive"]:
        """Return `parallel` only when the definition says exactly True for these arguments."""
        if self._mode is not None:
            return self._mode
        if self.parameters.is_slow:
            return "exclusive"  # The answer is wanted at once, and the check may take a while.
        safe: Any = self.definition.concurrency_safe
        try:
            frozen = self.parameters.freeze(arguments, "")
            return "parallel" if safe(frozen) is True else "exclusive"
        except Exception:  # noqa: BLE001  # a classifier that fails promises nothing
            return "exclusive"

    def freeze_value(self, value: object) -> JsonValue:
        """Return what a body returned as a canonical value.

        Raises:
            InvalidResultError: It breaks the tool's output declaration.
        """
        try:
            return self.output.freeze(value)
        except NotJsonError as error:
            raise _output_error(self, f"value is not lossless JSON: {error}") from None
        except InvalidValueError as error:
            raise _output_error(self, str(error)) from None

    def present_call(self, arguments: object) -> JsonValue:
        """Return the UI card of a call, or None for the generic one; never raises.

        Replaying old logs asks for cards of arguments that no longer fit the tool.
        """
        present = self.definition.present_call
        return None if present is None else self._card(present, arguments)

    def present_result(self, arguments: object, result: ToolResult) -> JsonValue:
        """Return the UI card of a result, or None for the generic one; never raises."""
        present = self.definition.present_result
        return None if present is None else self._card(present, arguments, result)

    def _card(self, present: Callable[..., JsonValue], arguments: object, *rest: object) -> JsonValue:
        try:
            return snapshot_frozen(present(self.parameters.freeze(arguments, ""), *rest), "card")
        except Exception:  # noqa: BLE001  # a card is a convenience; the generic one is always right
            return None


def _fixed_mode(safe: ConcurrencySafe) -> Literal["parallel", "exclusive"] | None:
    """Return what `execution_mode` says of every call; None where the arguments have a say."""
    if type(safe) is bool:
        return "parallel" if safe else "exclusive"
    return None


def _compile_part(
    definition: ToolDefinition, schema: Mapping[str, Any], part: str, *, defer: bool
) -> CompiledSchema:
    try:
        return compile_schema(schema, defer=defer)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(
            [f"{part} of tool {definition.name!r}: {text}" for text in error.violations]
        ) from None


async def canonical_value(bound: BoundTool, value: object) -> JsonValue:
    """Return what `BoundTool.freeze_value` does, off this thread where the check may take a while."""
    if bound.output.is_slow:
        return await trio.to_thread.run_sync(bound.freeze_value, value)
    return bound.freeze_value(value)


def success_of(
    bound: BoundTool,
    arguments: Mapping[str, Any],
    canonical: JsonValue,
    *,
    with_meta: bool,
    contexts: Sequence[JsonValue],
    concludes_turn: bool,
) -> ToolSuccess:
    """Present a canonical value.

    Raises:
        InvalidResultError: Rendering or metadata break the tool's output declaration.
    """
    output = bound.definition.output
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
        isinstance(block, FrozenDict) and isinstance(block.get("type"), str) and block["type"]
        for block in blocks
    ):
        raise _output_error(
            bound,
            'output.render must return a list of content blocks such as [{"type": "text", "text": "..."}]',
        )
    return blocks


def _output_error(bound: BoundTool, violations: str) -> InvalidResultError:
    return InvalidResultError(f'tool "{bound.definition.name}" returned invalid output: {violations}')


_SHOWN_VIOLATIONS: Final = 10
"""Violations listed in one error (arbitrary: enough to repair a call in one go)."""

_SHOWN_CHARS: Final = 40
"""Characters shown of a value that was refused (arbitrary: enough to recognise it)."""


async def argument_problem(bound: BoundTool, arguments: Mapping[str, Any]) -> HarnessError | None:
    """Return what is wrong with a call's arguments, what was probably meant, and how the call is written.

    Returns None when nothing is.
    """
    value: Any = arguments
    try:
        if bound.parameters.is_slow:
            violations = await trio.to_thread.run_sync(bound.parameters.violations, value, "")
        else:
            violations = bound.parameters.violations(value, "")
    except UnsupportedSchemaError as error:
        return error
    if not violations:
        return None
    parts = [_explained(bound, violation, value) for violation in violations[:_SHOWN_VIOLATIONS]]
    if len(violations) > _SHOWN_VIOLATIONS:
        parts.append(f"and {len(violations) - _SHOWN_VIOLATIONS} more")
    return _argument_error(bound, "; ".join(parts))


def conversion_problem(bound: BoundTool, error: ArgumentConversionError) -> InvalidArgumentsError:
    """Complete the error of arguments that fit the schema but not the Python type."""
    return _argument_error(bound, error.message)


def _argument_error(bound: BoundTool, text: str) -> InvalidArgumentsError:
    stop = "" if text.endswith("?") else "."
    return InvalidArgumentsError(
        f"invalid arguments: {text}{stop} The tool is: {signature(bound.definition)}"
    )


def _explained(bound: BoundTool, violation: Violation, arguments: Any) -> str:
    if violation.undeclared is not None:
        declared = () if violation.keys else bound.parameters.schema.get("properties", ())
        close = difflib.get_close_matches(violation.undeclared, declared, n=1, cutoff=_SUGGESTION_CUTOFF)
        return f'{violation.text}; did you mean "{close[0]}"?' if close else violation.text
    value = arguments
    for key in violation.keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return violation.text  # A missing property: there is nothing to show.
    return f"{violation.text} (got {_shown(value)})"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = render_json(value)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
