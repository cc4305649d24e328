"""From the answer to `tools/call` to the canonical value, and from that to what a model is shown.

    {"content": [blocks as the server sent them], "structuredContent": only when it sent one}

Nothing is guessed: text that looks like JSON stays text.

Knows: shapes of answers. Does not know: connections.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sandbox.values import encode
from tool_bindings.content import DEFAULT_RENDER_BYTES, render_value, text_block
from tool_bindings.errors import InvalidResultError
from tool_bindings.mcp.errors import McpCallError
from tool_bindings.mcp.naming import clean_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tool_bindings.content import ContentBlock

__all__ = ["canonical_value", "projected_pieces", "projected_text", "renderer"]

MAX_ERROR_CHARS: Final = 16_384
"""Characters of a failure text of a server."""
MAX_DEPTH: Final = 500
"""Levels of a value that comes over MCP (DESIGN section 6)."""
_NAME_CHARS: Final = 200
_NO_REASONS: Final[Mapping[int, str]] = MappingProxyType({})


def canonical_value(raw_name: str, result: object) -> dict[str, Any]:
    """Return the canonical value of one answer.

    Args:
        raw_name: The tool's name at its server, for messages.
        result: The `result` member of the answer, decoded.

    Raises:
        McpCallError: The server says that the call failed, or the answer is none.
    """
    if not isinstance(result, dict):
        raise McpCallError(f"{raw_name} gave an answer that is not an object")
    if result.get("resultType", "complete") != "complete":
        raise McpCallError(
            f"{raw_name} did not finish: it wants more input, which programs cannot give;"
            " call it with complete arguments, or through an interactive client"
        )
    content = result.get("content")
    if not isinstance(content, list):
        # As servers answered before content blocks existed.
        legacy = result.get("toolResult")
        text = "(no output)" if "toolResult" not in result else encode(legacy).decode("ascii")
        content = [text_block(text)]
    if result.get("isError") is True:
        raise McpCallError(_cut(projected_text(raw_name, content)))
    value: dict[str, Any] = {"content": content}
    if "structuredContent" in result:
        value["structuredContent"] = result["structuredContent"]
    if _deeper_than(value, MAX_DEPTH):
        raise InvalidResultError(
            f"the answer of {raw_name} is nested more than {MAX_DEPTH} levels deep, the limit over MCP"
        )
    return value


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [node for node in level if isinstance(node, (dict, list))]
        if not level:
            return False
        level = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
    return True


def renderer(raw_name: str) -> Callable[[Mapping[str, Any], Any], Sequence[ContentBlock]]:
    """Return the function that shows a canonical value: always one text block, cut like every other."""

    def render(_arguments: Mapping[str, Any], value: Any) -> list[ContentBlock]:
        return [text_block(render_value(projected_text(raw_name, value["content"]), DEFAULT_RENDER_BYTES))]

    return render


def projected_text(raw_name: str, content: Sequence[Any]) -> str:
    """Write content blocks as text; what is not text is named, and stays in the value."""
    return "\n".join(piece for _, piece in projected_pieces(raw_name, content))


def projected_pieces(
    raw_name: str, content: Sequence[Any], reasons: Mapping[int, str] = _NO_REASONS
) -> list[tuple[int, str]]:
    """Write content blocks as texts, each with the index of its block.

    Args:
        raw_name: The tool's name at its server.
        content: The blocks.
        reasons: Why images are not shown, by the index of their blocks.
    """
    written = ((index, _piece(block, reasons.get(index))) for index, block in enumerate(content))
    pieces = [(index, piece) for index, piece in written if piece is not None]
    return pieces or [(-1, f"({_name(raw_name)} returned no model-visible content)")]


def _piece(block: Any, reason: str | None) -> str | None:
    if not isinstance(block, dict):
        return "[malformed MCP content block: expected an object]"
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text if isinstance(text, str) else None
    if kind in ("image", "audio"):
        return (
            f"[{kind} unavailable: {_media_type(block)}; {reason or f'this {kind} is not shown'};"
            f" raw {kind} data remains available to programmatic callers]"
        )
    if kind == "resource_link":
        name, uri = block.get("name"), block.get("uri")
        if isinstance(name, str) and isinstance(uri, str):
            return f"Resource link: {_name(name)} ({_name(uri)})"
        return "[resource link without a name or a uri]"
    if kind == "resource":
        resource = block.get("resource")
        uri = resource.get("uri") if isinstance(resource, dict) else None
        shown = _name(uri) if isinstance(uri, str) else "without a uri"
        return f"[embedded resource: {shown}; not shown; its data remains available to programmatic callers]"
    return f"[unsupported MCP content type: {_name(kind) if isinstance(kind, str) else 'none'}]"


def _media_type(block: Mapping[str, Any]) -> str:
    media_type = block.get("mimeType")
    return _name(media_type) if isinstance(media_type, str) else "unknown media type"


def _name(text: str) -> str:
    return clean_text(text, _NAME_CHARS)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - 1] + "…"
