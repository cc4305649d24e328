"""First-party tools: files and search beneath one root directory."""

from tool_bindings.tools.catalogue import first_party_tools
from tool_bindings.tools.errors import FsError, SearchError, ToolUsageError
from tool_bindings.tools.observation import Observation, ObservationPolicy

__all__ = [
    "FsError",
    "Observation",
    "ObservationPolicy",
    "SearchError",
    "ToolUsageError",
    "first_party_tools",
]
