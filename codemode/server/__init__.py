"""Serving programs and tools over MCP (docs/mcp.md); import the modules, which load the SDK where needed."""
