"""MCP servers as tools: configuration, connections, registration."""

from tool_bindings.mcp.config import (
    HttpServer,
    McpServerConfig,
    Reconnect,
    StdioServer,
    load_mcp_config,
    parse_mcp_config,
)
from tool_bindings.mcp.errors import (
    McpCallError,
    McpConfigError,
    McpOutcomeUnknownError,
    McpStartError,
    McpUnavailableError,
)
from tool_bindings.mcp.supervisor import McpServers, McpStatus, aliases_in, open_mcp_servers
from tool_bindings.mcp.tools import origin_of

__all__ = [
    "HttpServer",
    "McpCallError",
    "McpConfigError",
    "McpOutcomeUnknownError",
    "McpServerConfig",
    "McpServers",
    "McpStartError",
    "McpStatus",
    "McpUnavailableError",
    "Reconnect",
    "StdioServer",
    "aliases_in",
    "load_mcp_config",
    "open_mcp_servers",
    "origin_of",
    "parse_mcp_config",
]
