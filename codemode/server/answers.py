"""What a client is told: `run_code` and tool results as MCP shapes, bounded, in plain JSON.

Text and structured content carry the same facts, so a client that reads only one misses nothing.

Knows: shapes, bounds, wording. Does not know: sessions, how a run is made.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from codemode.depth import depth_of
from codemode.outcome import failure_text, success_content
from sandbox.values import json_size, thaw
from sandbox.vocabulary import ABSENT, Failure
from tool_bindings.annotated import mcp_members
from tool_bindings.attachments import attachments
from tool_bindings.content import blocks_text, text_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codemode.outcome import RunOutcome
    from codemode.receipts import CallRecord
    from tool_bindings.definition import ToolDefinition
    from tool_bindings.results import ToolResult

__all__ = ["RUN_OUTPUT", "RUN_PARAMETERS", "advertised_output", "refusal", "run_answer", "tool_answer"]

MAX_DEPTH: Final = 200
"""Levels of a result. The SDK's serializer ends at 255, some of which are the envelope's."""
MAX_VALUE_BYTES: Final = 1_048_576
"""JSON bytes of the value of a direct tool call. Arbitrary: more than any model reads."""
MAX_ADDED_CHARS: Final = 8_388_608
"""Characters, base64 included, of the pictures and messages that calls add to an answer. Arbitrary."""
MAX_CALLS_SHOWN: Final = 100
"""Calls of a receipt that are shown: the first and the last half of so many."""
RUN_META: Final = "dev.codemode/run"
"""Member of a result's `_meta` with what is about the run and not from it."""
RESULT: Final = "result"
"""What a value that is not an object is called in structured content, which must be one."""

RUN_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "description": "A Python program: the body of an async function. Call tools with"
            " `await tools.name(key=value)`, print what you want to read, `return` a JSON value.",
        },
        "description": {"type": "string", "description": "What the program is for, in 5 to 10 words."},
    },
    "required": ["code", "description"],
    "additionalProperties": False,
}

_CALL: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "tool": {"type": "string"},
        "arguments": {},
        "status": {"type": "string", "enum": ["succeeded", "failed", "unknown", "not_started"]},
        "executed": {"type": "boolean"},
        "durationMs": {"type": "number"},
        "line": {"type": "integer"},
        "error": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "code": {"type": "string"}},
            "required": ["message"],
            "additionalProperties": False,
        },
        "annotation": {"type": "object"},
    },
    "required": ["id", "tool", "arguments", "status", "executed", "durationMs"],
    "additionalProperties": False,
}
_FRAME: Final = {
    "type": "object",
    "properties": {
        "line": {"type": "integer"},
        "function": {"type": "string"},
        "text": {"type": "string"},
    },
    "required": ["line", "function", "text"],
    "additionalProperties": False,
}
_ERROR: Final = {
    "type": "object",
    "properties": {
        "kind": {"type": "string"},
        "message": {"type": "string"},
        "errorType": {"type": "string"},
        "line": {"type": "integer"},
        "hint": {"type": "string"},
        "traceback": {"type": "array", "items": _FRAME},
    },
    "required": ["kind", "message"],
    "additionalProperties": False,
}
RUN_OUTPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "logs": {"type": "array", "items": {"type": "string"}, "description": "Lines the program printed."},
        "result": {"description": "What it returned; absent when it returned nothing."},
        "error": {**_ERROR, "description": "Why it did not end well; absent when it did."},
        "calls": {"type": "array", "items": _CALL, "description": "The tool calls it made, in order."},
    },
    "required": ["logs", "calls"],
    "additionalProperties": False,
}
"""The closed schema of `run_code`'s structured content (DESIGN section 9)."""


def run_answer(outcome: RunOutcome) -> dict[str, Any]:
    """Return the `tools/call` result for a run."""
    record = outcome.to_json()
    failure, value = outcome.failure, outcome.result
    depth = 0 if value is ABSENT else depth_of(value)
    if depth > MAX_DEPTH:
        failure, value = _too_deep(depth), ABSENT
        record = {"logs": record["logs"], "error": {"kind": failure.kind, "message": failure.message}}
    shown, omitted = _shown(outcome.calls)
    structured: dict[str, Any] = {"logs": list(outcome.logs)}
    if failure is None:
        texts = [blocks_text(success_content(outcome.logs, value))]
        if value is not ABSENT:
            structured["result"] = thaw(value)
    else:
        texts = [failure_text(failure, outcome.logs, outcome.calls)]
        structured["error"] = record["error"]
    structured["calls"] = [call.to_json() for call in shown]
    if outcome.hint is not None:
        texts.append(f"Hint: {outcome.hint}")
    if outcome.calls:
        texts.append(_receipt_text(shown, omitted, len(outcome.calls)))
    about: dict[str, Any] = {
        "runId": outcome.run_id,
        "isolation": list(outcome.isolation),
        "durationMs": round(outcome.duration_ms, 3),
    }
    if omitted:
        about["callsOmitted"] = omitted
    if outcome.hint is not None:
        about["hint"] = outcome.hint
    return {
        "content": [*map(text_block, texts), *_added(outcome.contexts)],
        "structuredContent": structured,
        "isError": failure is not None,
        "_meta": {RUN_META: about},
    }


def _added(contexts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the blocks of what calls add to the conversation, within the bounds of one answer."""
    blocks = [
        _block(block)
        for message in contexts
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
        if isinstance(block, dict) and isinstance(block.get("type"), str)
    ]
    room = MAX_ADDED_CHARS
    shown: list[dict[str, Any]] = []
    for block in blocks:
        room -= len(block.get("data") or block.get("text") or "")
        if room < 0:
            left = len(blocks) - len(shown)
            note = (
                f"[{left} more blocks of tools are not shown: an answer takes {MAX_ADDED_CHARS} characters]"
            )
            return [*shown, text_block(note)]
        shown.append(block)
    return shown


def _too_deep(depth: int) -> Failure:
    return Failure(
        "invalid-output",
        f"the result is nested {depth} levels deep; over MCP it may have at most {MAX_DEPTH}:"
        " return a flatter value",
    )


def _shown(calls: Sequence[CallRecord]) -> tuple[list[CallRecord], int]:
    if len(calls) <= MAX_CALLS_SHOWN:
        return list(calls), 0
    half = MAX_CALLS_SHOWN // 2
    return [*calls[:half], *calls[-half:]], len(calls) - 2 * half


def _receipt_text(shown: Sequence[CallRecord], omitted: int, count: int) -> str:
    lines = [f"Tool calls: {count}"]
    for number, call in enumerate(shown):
        if omitted and number == MAX_CALLS_SHOWN // 2:
            lines.append(f"  ... {omitted} more ...")
        where = "" if call.line is None else f" (line {call.line})"
        why = "" if call.error_message is None else f": {call.error_message}"
        lines.append(f"  {call.tool}{where} {call.status}{why}")
    return "\n".join(lines)


def advertised_output(definition: ToolDefinition) -> dict[str, Any] | None:
    """Return the schema of a tool's structured content, which must be an object; None when it has none.

    A value of another kind stands under `result`. That moves a schema, so one with references is left out.
    """
    schema: Any = thaw(definition.output.schema)  # type: ignore[arg-type]  # JSON, since it was registered
    if schema.get("type") == "object":
        return dict(schema)
    if _refers(schema):
        return None
    return {
        "type": "object",
        "properties": {RESULT: schema},
        "required": [RESULT],
        "additionalProperties": False,
    }


def _refers(schema: object) -> bool:
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False


def tool_answer(definition: ToolDefinition, result: ToolResult) -> dict[str, Any]:
    """Return the `tools/call` result for a direct call of a tool."""
    content = [_block(block) for block in result.content]
    if result.is_error:
        info = result.error.info
        answer: dict[str, Any] = {"content": content, "isError": True}
        if info is not None:
            answer["_meta"] = {"dev.codemode/error": {"name": info.name, "code": info.code}}
        if result.annotation is not None:
            said: Any = mcp_members(result.annotation)["_meta"]
            answer["_meta"] = {**said, **answer.get("_meta", {})}
        return answer
    depth, size = depth_of(result.value), json_size(result.value)
    if depth > MAX_DEPTH:
        return refusal(f"the value is nested {depth} levels deep; over MCP it may have at most {MAX_DEPTH}")
    if size > MAX_VALUE_BYTES:
        return refusal(
            f"the value has {size} bytes of JSON; a direct call gives at most {MAX_VALUE_BYTES}:"
            " call the tool from run_code and return the part you need"
        )
    value: Any = thaw(result.value)
    is_object = definition.output.schema.get("type") == "object"
    answer = {"content": content, "structuredContent": value if is_object else {RESULT: value}}
    if result.annotation is None:
        return {**answer, "isError": False}
    # Whoever annotated the value knows more than that there is one; an unknown status has no isError.
    return {**answer, **mcp_members(result.annotation)}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a content block as MCP knows it; one it does not know is named in a text."""
    plain: Any = thaw(block)  # type: ignore[arg-type]  # content is JSON
    image = attachments.find(plain)
    if image is not None:
        data = base64.b64encode(image.data).decode("ascii")
        return {"type": "image", "data": data, "mimeType": image.media_type}
    if plain.get("type") == "text" and isinstance(plain.get("text"), str):
        return text_block(plain["text"])
    if plain.get("type") == "image" and isinstance(plain.get("data"), str) and "mimeType" in plain:
        return {"type": "image", "data": plain["data"], "mimeType": str(plain["mimeType"])}
    return text_block(blocks_text([plain]))


def refusal(message: str) -> dict[str, Any]:
    """Return the result of a call that was not carried out."""
    return {"content": [text_block(f"Error: {message}")], "isError": True}
