"""Where a command keeps texts that are too long to show, so that its session can read them later.

Knows: which directory, for which commands. Does not know: what is kept there, and when.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from tool_bindings import ToolDefinition, ToolRegistry
    from tool_bindings.spill import SpillStore


def spill_store(options: argparse.Namespace) -> SpillStore | None:
    """Return the store, or None for a command that records no session to which texts could belong.

    It lies outside of what the tools search: the user's cache directory.
    """
    if getattr(options, "events", None) is None:
        return None
    # Imported only where something is recorded: a short run is mostly imports.
    from tool_bindings.spill import SpillStore  # noqa: PLC0415

    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        cache = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None  # There is no home directory; what is too long is then shown whole.
    return SpillStore(cache / "codemode" / "spill")


def keep_searches(registry: ToolRegistry, definitions: Iterable[ToolDefinition], store: SpillStore) -> None:
    """Let the store keep what the built-in searches find and do not show."""
    from tool_bindings.tools.catalogue import DEFAULT_SEARCH_LIMITS  # noqa: PLC0415  # as above
    from tool_bindings.tools.search_spill import attach_search_spill  # noqa: PLC0415

    attach_search_spill(registry, definitions, store, DEFAULT_SEARCH_LIMITS)
