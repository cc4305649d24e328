"""The first-party file tools, ready to register.

Knows: which tools there are and what they share.
Does not know: how any of them works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tool_bindings.tools.change import FileChanger
from tool_bindings.tools.confinement import ConfinedRoot
from tool_bindings.tools.files_edit import edit_tool
from tool_bindings.tools.files_read import read_tool
from tool_bindings.tools.files_write import write_tool
from tool_bindings.tools.overflow import SearchLimits
from tool_bindings.tools.protection import Protection
from tool_bindings.tools.ripgrep import RipgrepLimits
from tool_bindings.tools.search_glob import glob_tool
from tool_bindings.tools.search_grep import grep_tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tool_bindings.definition import ToolDefinition
    from tool_bindings.spill import SpillStore
    from tool_bindings.tools.observation import ObservationPolicy
    from tool_bindings.tools.window import ReadLimits

__all__ = ["DEFAULT_SEARCH_LIMITS", "first_party_tools"]

DEFAULT_SEARCH_LIMITS = SearchLimits(sample_over_cap=True)
"""What is shown of a search unless the caller says otherwise."""


def first_party_tools(
    root: Path,
    *,
    protected: Sequence[Path] = (),
    observation: ObservationPolicy | None = None,
    read_limits: ReadLimits | None = None,
    search_limits: SearchLimits = DEFAULT_SEARCH_LIMITS,
    ripgrep_limits: RipgrepLimits | None = None,
    spill: SpillStore | None = None,
) -> list[ToolDefinition]:
    """Define `read`, `write`, `edit`, `glob` and `grep` over one directory.

    Args:
        root: The directory that they may not leave. It is opened now and held open.
        protected: Files and directories that `write` and `edit` must not change, beside the repository's own
            files, virtual environments and `codemode.toml`. They need not exist yet.
        observation: Requires that a session has seen a file before it changes it; None asks for nothing.
        read_limits: The caps of one `read`.
        search_limits: The caps of what `glob` and `grep` show; their values hold everything.
        ripgrep_limits: The bounds of the search program.
        spill: Where `read` and `grep` find the session's own stored texts by their locator; its directory is
            protected. To store what searches do not show, use `attach_search_spill` as well.

    Returns:
        The definitions, in the order of the catalogue.

    Raises:
        FsError: The root is not a directory that can be opened.
    """
    confined = ConfinedRoot(root)
    kept_away = [*protected, spill.root] if spill is not None else protected
    changer = FileChanger(confined, Protection(confined, kept_away), observation)
    process_limits = ripgrep_limits or RipgrepLimits()
    return [
        read_tool(confined, observation=observation, limits=read_limits, spill=spill),
        write_tool(changer, observation=observation),
        edit_tool(changer, observation=observation),
        glob_tool(confined, limits=search_limits, process_limits=process_limits),
        grep_tool(confined, limits=search_limits, process_limits=process_limits, spill=spill),
    ]
