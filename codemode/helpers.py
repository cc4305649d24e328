"""`codemode` in a program: find tools, read about one, call many at a time, say how far one is.

Knows: these helpers. Does not know: how a program's call gets here.
"""

from __future__ import annotations

import difflib
import logging
from typing import TYPE_CHECKING, Any, Final

from codemode.catalogues import Catalogues
from codemode.namespace import TOOL_CALL_ERROR
from sandbox.vocabulary import HostFunctionError, Namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codemode.discovery import Catalogue
    from sandbox.values import JsonValue
    from sandbox.vocabulary import HostCall
    from tool_bindings.definition import ToolDefinition

    ProgressListener = Callable[[float, float | None, str | None], object]
    """Gets what a program said of its progress: done, total, note."""

_logger = logging.getLogger("codemode")

NAME: Final = "codemode"
_SIGNATURES: Final = {
    "search": "search(query: str, limit: int = 10) -> list of {name, signature, description}",
    "describe": "describe(name: str) -> str",
    "progress": "progress(done: float, total: float = None, note: str = None) -> None",
}
_POSITIONAL: Final = {
    "search": ("query", "limit"),
    "describe": ("name",),
    "progress": ("done", "total", "note"),
}
_EAGER: Final = frozenset({"progress"})
_MOST_RESULTS: Final = 50
_MAX_NOTE_CHARS: Final = 200


class Helpers:
    """The helpers of one run.

    Args:
        definitions: The tools the program may call.
        on_progress: Hears what the program says of its progress.
        catalogues: Where the catalogue of these tools may be already.
    """

    def __init__(
        self,
        definitions: Sequence[ToolDefinition],
        on_progress: ProgressListener | None,
        catalogues: Catalogues | None = None,
    ) -> None:
        self._definitions = definitions
        self._on_progress = on_progress
        self._catalogues = catalogues or Catalogues()

    def namespace(self, batches: str) -> Namespace:
        """Return what the program sees as `codemode`.

        Args:
            batches: Name of the namespace that `codemode.batch` calls.
        """
        return Namespace(
            NAME,
            _SIGNATURES,
            self._answer,
            TOOL_CALL_ERROR,
            importable=True,
            noun="helper",
            positional=_POSITIONAL,
            eager=_EAGER,
            batches=batches,
        )

    async def _answer(self, call: HostCall) -> JsonValue:
        arguments = call.arguments
        assert isinstance(arguments, dict), "stubs send records only"
        unknown = sorted(arguments.keys() - set(_POSITIONAL[call.member]))
        if unknown:
            raise HostFunctionError(
                f"{call.member} got an unknown argument {unknown[0]!r}: {_SIGNATURES[call.member]}"
            )
        if call.member == "search":
            return self._search(arguments, await self._catalogues.catalogue_of(self._definitions))
        if call.member == "describe":
            return self._describe(arguments, await self._catalogues.catalogue_of(self._definitions))
        return self._progress(arguments)

    def _search(self, arguments: dict[str, Any], tools: Catalogue) -> JsonValue:
        limit = arguments.get("limit", 10)
        if type(limit) is not int or not 1 <= limit <= _MOST_RESULTS:
            raise HostFunctionError(f"limit must be a whole number from 1 to {_MOST_RESULTS}, not {limit!r}")
        found: Any = tools.search(_text(arguments, "query"), limit)
        return found  # type: ignore[no-any-return]  # JSON by construction

    def _describe(self, arguments: dict[str, Any], tools: Catalogue) -> JsonValue:
        name = _text(arguments, "name")
        text = tools.describe(name)
        if text is None:
            names = [definition.name for definition in self._definitions]
            found = [entry["name"] for entry in tools.search(name, 3)]
            close = ", ".join(dict.fromkeys([*difflib.get_close_matches(name, names, 3), *found]))
            advice = f"; did you mean one of: {close}?" if close else "; codemode.search(...) finds tools"
            raise HostFunctionError(f"unknown tool {name!r}{advice}")
        return text

    def _progress(self, arguments: dict[str, Any]) -> JsonValue:
        done, total, note = arguments.get("done"), arguments.get("total"), arguments.get("note")
        for name, value in (("done", done), ("total", total)):
            if type(value) not in (int, float) and not (name == "total" and value is None):
                raise HostFunctionError(f"{name} must be a number, not {value!r}: {_SIGNATURES['progress']}")
        if note is not None and type(note) is not str:
            raise HostFunctionError(f"note must be a string, not {note!r}: {_SIGNATURES['progress']}")
        if self._on_progress is not None:
            try:
                self._on_progress(done, total, None if note is None else note[:_MAX_NOTE_CHARS])  # type: ignore[arg-type]  # checked above
            except Exception:
                _logger.exception("a listener of progress failed")
        return None


def _text(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if type(value) is not str or not value.strip():
        raise HostFunctionError(f"{name} must be a non-empty string, not {value!r}")
    return value
