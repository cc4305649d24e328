"""Errors of the MCP client, told apart by whose fault they are.

    ToolBindingError
    ├ McpConfigError          the operator's configuration cannot be used; no server was started
    ├ McpStartError           a server that must be there did not come up
    └ per call, in the result of a dispatch:
      ├ McpUnavailableError     the server is not connected; nothing was sent
      ├ McpCallError            the server answered, and its answer is a failure (plain: no code)
      └ McpOutcomeUnknownError  the call was sent and no answer came; it may have had its effect

Knows: the tree. Does not know: where they are raised.
"""

from __future__ import annotations

from tool_bindings.errors import HarnessError, ToolBindingError

__all__ = ["McpCallError", "McpConfigError", "McpOutcomeUnknownError", "McpStartError", "McpUnavailableError"]


class McpConfigError(ToolBindingError):
    """The configuration of MCP servers cannot be used; the message says where and what to write."""


class McpStartError(ToolBindingError):
    """A server with `failOnStartupError` did not come up. For one lost later, see `McpUnavailableError`."""


class McpUnavailableError(ToolBindingError):
    """The server is not connected, so the call was not sent."""


class McpCallError(ToolBindingError):
    """The server refused the call or reported that it failed."""


class McpOutcomeUnknownError(HarnessError):
    """The call was sent and its answer never came: too late, or the server went away."""

    recorded_as = "ToolOutcomeUnknownError"
    default_code = "TOOL_OUTCOME_UNKNOWN"
