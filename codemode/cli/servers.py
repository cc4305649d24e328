"""The MCP servers of `--mcp`: connected while a command works, their tools beside the others.

Knows: options and how they meet what servers offer. Does not know: MCP.
"""

from __future__ import annotations

import contextlib
import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from codemode.cli.status import FAILED, CommandError
from codemode.cli.toolset import Toolset, load_toolset, unknown_tool
from codemode.terminal import escape
from tool_bindings import ToolRegistry

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from codemode.cli.console import Console
    from tool_bindings.mcp import McpServerConfig

__all__ = ["connected_toolset", "mcp_configs", "mcp_files", "with_mcp_servers"]


def mcp_files(options: argparse.Namespace) -> list[Path]:
    """Return the configuration files, which no tool may change."""
    return [Path(name) for name in options.mcp]


def mcp_configs(options: argparse.Namespace) -> list[McpServerConfig]:
    """Read the servers of all `--mcp` files.

    Raises:
        CommandError: A file cannot be used.
    """
    if not options.mcp:
        return []
    # Not imported for the many commands that name no server.
    from tool_bindings.mcp import McpConfigError, load_mcp_config  # noqa: PLC0415

    try:
        return [config for path in mcp_files(options) for config in load_mcp_config(path)]
    except McpConfigError as error:
        raise CommandError(f"--mcp: {error}") from error


@contextlib.asynccontextmanager
async def with_mcp_servers(
    options: argparse.Namespace,
    toolset: Toolset,
    console: Console,
    *,
    verbose: bool = False,
    patience_seconds: float = math.inf,
) -> AsyncIterator[Toolset]:
    """Give the toolset with the tools of the `--mcp` servers, which end with the body.

    Args:
        options: The parsed command line.
        toolset: The tools so far; its registry gets those of the servers.
        console: Where problems are told.
        verbose: Whether everything else about servers is told, too.
        patience_seconds: How long to wait for servers that start slowly.

    Raises:
        CommandError: A server that must be there is not, or `--allow` names a tool nobody has.
    """
    configs = mcp_configs(options)
    if not configs:
        yield toolset
        return
    from tool_bindings.mcp import McpConfigError, McpStartError, open_mcp_servers  # noqa: PLC0415  # as above

    # The SDK reports every oddity of a peer with a traceback; what matters comes as a note.
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

    def note(text: str, problem: bool) -> None:
        if problem or verbose:
            console.say(f"codemode: {escape(text)}")

    try:
        async with open_mcp_servers(
            toolset.registry, configs, on_note=note, patience_seconds=patience_seconds
        ):
            yield Toolset(toolset.registry, _allowed(options, toolset))
    except McpConfigError as error:
        raise CommandError(f"--mcp: {error}") from error
    except McpStartError as error:
        raise CommandError(str(error), kind="mcp", status=FAILED) from error


def _allowed(options: argparse.Namespace, toolset: Toolset) -> list[str]:
    """Return what programs may use, now that the servers' tools are known."""
    names = sorted(toolset.registry.names())
    wanted = getattr(options, "allow", ())
    if not wanted:
        return names
    from tool_bindings.mcp import aliases_in  # noqa: PLC0415  # as above

    aliases = aliases_in(toolset.registry)
    found: set[str] = set()
    for name in wanted:
        targets = aliases.get(name, ()) if name not in names else (name,)
        if len(targets) != 1:
            what = f"may be {' or '.join(targets)}" if targets else unknown_tool(name, names)
            raise CommandError(f"--allow {name!r}: {what}")
        found.add(targets[0])
    return sorted(found)


def connected_toolset(options: argparse.Namespace, console: Console) -> Toolset:
    """Return all tools, for commands that list them; the servers are asked and left again.

    Raises:
        CommandError: As `load_toolset` and `with_mcp_servers` do.
    """
    toolset = load_toolset(options, protected=mcp_files(options))
    if not options.mcp:
        return toolset

    async def connect() -> Toolset:
        async with with_mcp_servers(options, toolset, console) as offered:
            # The servers' own registrations end with them.
            registry = ToolRegistry()
            for definition in offered.registry.definitions():
                registry.register(definition)
            return Toolset(registry, offered.allowed)

    return trio.run(connect)
