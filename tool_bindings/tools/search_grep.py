"""The `grep` tool: find lines by a regular expression.

Knows: the tool's arguments, value, text and metadata, and the search program's JSON lines.
Does not know: how the search program is run, or how its path is confined.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import trio

from sandbox.values import json_size
from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.tools.errors import SearchError, ToolUsageError
from tool_bindings.tools.overflow import Overflow, SearchLimits
from tool_bindings.tools.retention import head_bytes
from tool_bindings.tools.ripgrep import RipgrepLimits, run_ripgrep
from tool_bindings.tools.search_place import SearchPlace, check_pattern_argument, open_place, require_unmoved
from tool_bindings.tools.spilled import is_locator, open_spilled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.spill import SpillStore
    from tool_bindings.tools.confinement import ConfinedRoot

__all__ = ["grep_overflow", "grep_tool"]

_UNSAVED = "The complete result could not be saved; use a narrower pattern, path or include."
_NOT_UTF8_LINE = "(this line is not valid UTF-8)"
_CUT_LINE = " (line truncated)"

_VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "matches": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the root."},
                    "lineNumber": {"type": "integer", "description": "From 1."},
                    "line": {"type": "string", "description": "The whole line, without its line break."},
                },
                "required": ["path", "lineNumber", "line"],
                "additionalProperties": False,
            },
            "description": "All matching lines, sorted by path and line.",
        },
    },
    "required": ["matches"],
    "additionalProperties": False,
}


def grep_tool(
    root: ConfinedRoot,
    *,
    limits: SearchLimits,
    process_limits: RipgrepLimits,
    spill: SpillStore | None = None,
) -> ToolDefinition:
    """Define the `grep` tool over one root.

    Args:
        root: The confined root.
        limits: The caps of what is shown.
        process_limits: The bounds of the search program.
        spill: Where stored texts of the session are found by their locator.
    """
    grepper = _Grepper(root, limits, process_limits, spill)
    return ToolDefinition(
        name="grep",
        description=(
            "Find lines by a regular expression (Rust syntax: no look-around, no back-references). "
            "Files that are hidden, binary, or ignored by .gitignore are skipped unless path names them. "
            "Symbolic links are not followed."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "The regular expression, matched within single lines.",
                },
                "path": {
                    "type": "string",
                    "description": "File or directory to search. Default: the root directory.",
                },
                "include": {
                    "type": "string",
                    "description": 'One glob that files must match, such as "*.py" or "*.{ts,tsx}".',
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        output=Output(
            schema=_VALUE_SCHEMA, render=grepper.render, presentation_meta=grepper.presentation_meta
        ),
        execute=grepper.execute,
    )


def grep_overflow(value: dict[str, Any], limits: SearchLimits) -> Overflow | None:
    """Return the complete text of a grep result, or None when its page shows everything.

    Args:
        value: The canonical value.
        limits: The caps the tool was made with.
    """
    matches = value["matches"]
    if len(matches) <= limits.shown_matches:
        return None

    def stored(locator: str, hint: str) -> list[ContentBlock]:
        return [text_block(_page_text(value, limits, f"Full grep result stored at: {locator}. {hint}"))]

    complete = f"{_header(len(matches))}\n\n{_groups_text(_groups(matches, limits))}"
    return Overflow("grep-results.txt", complete, stored)


class _Grepper:
    def __init__(
        self,
        root: ConfinedRoot,
        limits: SearchLimits,
        process_limits: RipgrepLimits,
        spill: SpillStore | None,
    ) -> None:
        self._root = root
        self._limits = limits
        self._process_limits = process_limits
        self._spill = spill

    async def execute(self, args: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        pattern: str = args["pattern"]
        include: str | None = args.get("include")
        if not pattern:
            raise ToolUsageError('pattern must not be empty; give a regular expression such as "def \\\\w+"')
        check_pattern_argument(pattern, "pattern")
        if include is not None:
            _check_include(include)
        with ExitStack() as stack:
            opening = self._open(args.get("path"), context.session)
            place = await trio.to_thread.run_sync(stack.enter_context, opening)
            output = await run_ripgrep(
                _arguments(pattern, include, place),
                directory_fd=self._root.fd,
                stdin_fd=place.file_fd,
                abort=context.abort,
                limits=self._process_limits,
            )
            matches = await trio.to_thread.run_sync(self._matches, output, place)
        return {"matches": matches}

    def _open(self, path: str | None, session: object) -> AbstractContextManager[SearchPlace]:
        if self._spill is not None and path is not None and is_locator(path):
            return _open_spilled_place(self._spill, session, path)
        return open_place(self._root, path, allow_file=True)

    def render(self, _args: Mapping[str, Any], value: dict[str, Any]) -> list[ContentBlock]:
        return [text_block(_page_text(value, self._limits, _UNSAVED))]

    def presentation_meta(self, _args: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
        matches = value["matches"]
        shown = matches[: self._limits.shown_matches]
        files = [
            {"path": path, "matches": [{"lineNumber": number, "line": line} for number, line in rows]}
            for path, rows in _groups(shown, self._limits).items()
        ]
        meta: dict[str, Any] = {
            "shape": "matches",
            "files": files,
            "truncated": len(shown) < len(matches),
            "total": len(matches),
        }
        while len(files) > 1 and json_size(meta) > self._limits.meta_bytes:
            files.pop()
            meta["truncated"] = True
        return meta

    def _matches(self, output: bytes, place: SearchPlace) -> list[dict[str, Any]]:
        require_unmoved(self._root, place)
        try:
            matches = [
                _match(json.loads(row)["data"], place) for row in output.splitlines() if _is_match(row)
            ]
        except (ValueError, KeyError, TypeError):
            raise SearchError(
                "SEARCH_FAILED", "the search program printed something that is not a result"
            ) from None
        # The program searches files in parallel and prints them as they are done; the same search must give
        # the same value.
        matches.sort(key=lambda match: match["path"])
        return matches


@contextmanager
def _open_spilled_place(store: SpillStore, session: object, locator: str) -> Iterator[SearchPlace]:
    with open_spilled(store, session, locator) as fd:
        facts = os.fstat(fd)
        yield SearchPlace(locator, (), (facts.st_dev, facts.st_ino), fd)


def _check_include(include: str) -> None:
    check_pattern_argument(include, "include")
    if not include.strip():
        raise ToolUsageError('include must not be blank; give a glob such as "*.py", or leave it out')
    if include.startswith("!"):
        raise ToolUsageError(
            "include must not start with !; it names the files to search, not those to leave out"
        )
    depth = 0
    for character in include:
        depth += (character == "{") - (character == "}")
        if character == "," and depth <= 0:
            raise ToolUsageError(
                'include takes one glob, not a list; write alternatives in braces: "*.{ts,tsx}"'
            )


def _arguments(pattern: str, include: str | None, place: SearchPlace) -> list[str]:
    globs = [] if include is None else [f"--glob={include}"]
    return ["--no-config", "--json", f"--regexp={pattern}", *globs, "--", place.argument]


def _is_match(row: bytes) -> bool:
    """Tell matches from the other rows without parsing them."""
    return row.startswith(b'{"type":"match"')


def _match(data: dict[str, Any], place: SearchPlace) -> dict[str, Any]:
    path = data["path"]
    if "text" not in path:
        raise SearchError(
            "SEARCH_FAILED",
            "a file with matches has a name that is not valid UTF-8; use path or include to leave it out",
        )
    line = data["lines"].get("text")
    if line is not None:
        line = line.removesuffix("\n").removesuffix("\r")
    return {
        "path": place.show(path["text"]),
        "lineNumber": data["line_number"],
        "line": _NOT_UTF8_LINE if line is None else line,
    }


def _page_text(value: dict[str, Any], limits: SearchLimits, recovery: str) -> str:
    matches = value["matches"]
    if not matches:
        return "No matches found"
    shown = matches[: limits.shown_matches]
    body = _groups_text(_groups(shown, limits))
    if len(shown) == len(matches):
        return f"{_header(len(matches))}\n\n{body}"
    return f"Found {len(shown)} of {len(matches)} matches\n\n{body}\n\n({recovery})"


def _header(count: int) -> str:
    return "Found 1 match" if count == 1 else f"Found {count} matches"


def _groups(matches: Iterable[dict[str, Any]], limits: SearchLimits) -> dict[str, list[tuple[int, str]]]:
    """Collect the lines of each file, cut to what is shown of a line."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for match in matches:
        line = head_bytes(match["line"], limits.line_bytes)
        if len(line) < len(match["line"]):
            line += _CUT_LINE
        groups.setdefault(match["path"], []).append((match["lineNumber"], line))
    return groups


def _groups_text(groups: dict[str, list[tuple[int, str]]]) -> str:
    return "\n\n".join(
        "\n".join((path, *(f"Line {number}: {line}" for number, line in rows)))
        for path, rows in groups.items()
    )
