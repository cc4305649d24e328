"""Where a command keeps texts that are too long to show, so that its session can read them later.

Knows: which directory, which searches. Does not know: what is kept there, and when.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tool_bindings.spill import SpillStore
from tool_bindings.tools.catalogue import DEFAULT_SEARCH_LIMITS
from tool_bindings.tools.search_spill import attach_search_spill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tool_bindings import ToolDefinition, ToolRegistry


def spill_store() -> SpillStore | None:
    """Return the store, or None where there is no place for one.

    It lies outside of what the tools search: in the user's cache directory.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        cache = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None  # There is no home directory; what is too long is then shown whole.
    return SpillStore(cache / "codemode" / "spill")


def keep_searches(registry: ToolRegistry, definitions: Iterable[ToolDefinition], store: SpillStore) -> None:
    """Let the store keep what the built-in searches find and do not show."""
    attach_search_spill(registry, definitions, store, DEFAULT_SEARCH_LIMITS)
