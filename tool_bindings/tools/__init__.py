"""First-party tools: files and search beneath one root directory."""

from tool_bindings.tools.catalogue import DEFAULT_SEARCH_LIMITS, first_party_tools
from tool_bindings.tools.errors import FsError, SearchError, ToolUsageError
from tool_bindings.tools.observation import Observation, ObservationPolicy
from tool_bindings.tools.overflow import SearchLimits
from tool_bindings.tools.search_spill import attach_search_spill
from tool_bindings.tools.window import ReadLimits

__all__ = [
    "DEFAULT_SEARCH_LIMITS",
    "FsError",
    "Observation",
    "ObservationPolicy",
    "ReadLimits",
    "SearchError",
    "SearchLimits",
    "ToolUsageError",
    "attach_search_spill",
    "first_party_tools",
]
