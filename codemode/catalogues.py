"""The searchable catalogue of a run's tools, kept from one run to the next.

Knows: when a catalogue can be used again. Does not know: how tools are found in one.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codemode.discovery import Catalogue
    from tool_bindings.definition import ToolDefinition

_MANY: Final = 200
"""Tools of a set whose catalogue is built in a thread. Arbitrary."""


class Catalogues:
    """Keeps the catalogue of the last set of tools, since runs of one service mostly have the same set."""

    def __init__(self) -> None:
        self._definitions: Sequence[ToolDefinition] = ()
        self._catalogue: Catalogue | None = None

    async def catalogue_of(self, definitions: Sequence[ToolDefinition]) -> Catalogue:
        """Return the catalogue of a set of tools."""
        kept = self._definitions
        is_same = len(kept) == len(definitions) and all(map(operator.is_, kept, definitions))
        if self._catalogue is not None and is_same:
            return self._catalogue
        # Imported here: few programs look for tools, and none waits for this before it starts.
        from codemode.discovery import Catalogue  # noqa: PLC0415

        # A large set takes a tenth of a second, which nobody else should wait for.
        build = functools.partial(Catalogue, definitions)
        catalogue = await trio.to_thread.run_sync(build) if len(definitions) > _MANY else build()
        self._definitions, self._catalogue = tuple(definitions), catalogue
        return catalogue
