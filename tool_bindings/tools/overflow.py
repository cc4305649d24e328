"""What glob and grep show of a result that is too long to show, and what a spill store would keep of it.

The canonical value always holds everything; this is about its text. There are two texts of one result: a
page, and the complete list. A policy that can store the complete list replaces the page by one that names the
place.

Knows: the caps of a page and the sentences about the rest.
Does not know: any store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tool_bindings.content import ContentBlock

__all__ = ["Overflow", "SearchLimits"]


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Caps of what is shown of a search.

    Attributes:
        sample_over_cap: Whether a page of paths over the cap takes some of each top-level entry, instead of
            the first ones. There is no default: the two read very differently.
        shown_paths: Most paths on a page.
        shown_matches: Most matching lines on a page.
        line_bytes: A matching line is cut here, in UTF-8 bytes, where it is shown.
        meta_bytes: Most bytes of presentation metadata, as JSON.
    """

    sample_over_cap: bool
    shown_paths: int = 100
    shown_matches: int = 250
    line_bytes: int = 2000
    meta_bytes: int = 65_536

    def __post_init__(self) -> None:
        for name in ("shown_paths", "shown_matches", "line_bytes", "meta_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


class Overflow(NamedTuple):
    """The complete text of a result whose page does not show everything.

    Attributes:
        suggested_name: A file name for it.
        content: The complete text.
        stored: Makes the blocks to show instead of the page, given where the text was stored and how it can
            be read there.
    """

    suggested_name: str
    content: str
    stored: Callable[[str, str], list[ContentBlock]]
