"""A server's tools as tool definitions.

Knows: how one listed tool becomes a definition and how its call is made.
Does not know: how connections come and go; it asks for the current one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tool_bindings.aliases import Grouped
from tool_bindings.annotated import answer_annotation
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.mcp.conversion import canonical_value, renderer
from tool_bindings.mcp.errors import McpCallError, McpUnavailableError
from tool_bindings.mcp.images import has_images, shown_content
from tool_bindings.mcp.naming import MAX_NAME_CHARS, clean_text, public_name
from tool_bindings.mcp.schemas import output_schema, parameters_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.mcp.config import McpServerConfig
    from tool_bindings.mcp.connection import Connection
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.results import ToolResult

__all__ = ["McpTool", "define_tools", "origin_of"]

MAX_DESCRIPTION_CHARS: Final = 4000
"""Characters of a tool's description. Arbitrary: about a thousand tokens."""
MAX_RAW_NAME_CHARS: Final = 1000
_MAX_UNSHOWN: Final = 64
"""Answers with pictures whose calls have not ended yet. Arbitrary: calls of a server mostly run alone."""


class McpTool(Grouped):
    """The body of one tool of one server."""

    def __init__(
        self, server: str, raw_name: str, connection: Callable[[], Connection], *, needs_task: bool
    ) -> None:
        super().__init__(server, raw_name, has_alias=clean_text(raw_name, MAX_NAME_CHARS) == raw_name)
        self.raw_name = raw_name
        self._title = clean_text(raw_name, 100)
        self.render = renderer(self._title)
        self._connection = connection
        self._needs_task = needs_task
        self._with_images: dict[str, Sequence[Any]] = {}

    async def __call__(self, arguments: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        """Call the tool; the pipeline's cancellation tells the server to stop."""
        if self._needs_task:
            raise McpCallError(
                f"{self.raw_name!r} of MCP server {self.group!r} only runs as a background task, which is"
                " not supported here; the server was not called"
            )
        answer = await self._connection().call_tool(self.raw_name, arguments, context.report)
        annotation = answer_annotation(answer)
        if annotation is not None:
            context.annotate(annotation)
        value = canonical_value(self.raw_name, answer)
        if has_images(value["content"]):
            self._with_images[context.call_id] = value["content"]
            if len(self._with_images) > _MAX_UNSHOWN:
                del self._with_images[next(iter(self._with_images))]
        return value

    def show_images(self, call: Dispatch, result: ToolResult) -> list[ContentBlock] | None:
        """Return the content with its pictures, unless a policy has changed the result since the answer."""
        content = self._with_images.pop(call.call_id, None)
        if content is None or result.is_error:
            return None
        value: Any = result.value
        if value.get("content") != content or result.content != self.render({}, value):
            return None
        return shown_content(self._title, content)


def origin_of(definition: ToolDefinition) -> tuple[str, str] | None:
    """Return server and raw name of an MCP tool; None for any other tool."""
    body = definition.execute
    return (body.group, body.raw_name) if isinstance(body, McpTool) else None


def define_tools(
    config: McpServerConfig, listed: Iterable[Mapping[str, Any]], connection: Callable[[], Connection]
) -> list[ToolDefinition]:
    """Return the definitions of a complete tool list.

    Raises:
        McpUnavailableError: The list cannot be used; nothing of it is.
    """
    definitions: dict[str, ToolDefinition] = {}
    for tool in listed:
        raw_name = tool.get("name")
        if not isinstance(raw_name, str) or not raw_name or len(raw_name) > MAX_RAW_NAME_CHARS:
            raise McpUnavailableError(
                f"it lists a tool whose name is not a string of 1 to {MAX_RAW_NAME_CHARS} characters"
            )
        if raw_name in definitions:
            raise McpUnavailableError(f"it lists two tools named {clean_text(raw_name, 100)!r}")
        definitions[raw_name] = _define(config, raw_name, tool, connection)
    return list(definitions.values())


def _define(
    config: McpServerConfig, raw_name: str, tool: Mapping[str, Any], connection: Callable[[], Connection]
) -> ToolDefinition:
    description = tool.get("description")
    execution = tool.get("execution")
    safe = config.concurrency_safe
    body = McpTool(
        config.name,
        raw_name,
        connection,
        needs_task=isinstance(execution, dict) and execution.get("taskSupport") == "required",
    )
    return ToolDefinition(
        name=public_name(config.name, raw_name),
        description=clean_text(description, MAX_DESCRIPTION_CHARS) if isinstance(description, str) else "",
        parameters=parameters_schema(tool.get("inputSchema")),
        output=Output(output_schema(tool.get("outputSchema")), body.render),
        execute=body,
        finalize_content=body.show_images,
        concurrency_safe=safe if isinstance(safe, bool) else raw_name in safe,
    )
