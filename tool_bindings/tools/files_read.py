"""The `read` tool: a window of lines of a text file.

Knows: the tool's arguments, value, text and metadata.
Does not know: how a path is confined, or how lines are found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.tools.blocking import run_blocking
from tool_bindings.tools.envelope import file_envelope
from tool_bindings.tools.errors import FsError, ToolUsageError, fs_error_from_os
from tool_bindings.tools.languages import language_of
from tool_bindings.tools.observation import Observation, version_of
from tool_bindings.tools.paths import check_path_argument, printable
from tool_bindings.tools.spilled import is_locator, open_spilled
from tool_bindings.tools.window import NotTextError, ReadLimits, Window, scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.spill import SpillStore
    from tool_bindings.tools.blocking import Checkpoint
    from tool_bindings.tools.confinement import ConfinedRoot, Found
    from tool_bindings.tools.observation import ObservationPolicy

__all__ = ["read_tool"]

_PIECE_BYTES = 1_048_576  # Arbitrary: large enough that the work per piece is not the cost.

_VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Absolute path of the file."},
        "offset": {"type": "integer", "description": "Number of the first line asked for, from 1."},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
                "required": ["number", "text"],
                "additionalProperties": False,
            },
        },
        "totalLines": {"type": "integer", "description": "How many lines the whole file has."},
    },
    "required": ["path", "offset", "lines", "totalLines"],
    "additionalProperties": False,
}


def read_tool(
    root: ConfinedRoot,
    *,
    observation: ObservationPolicy | None = None,
    limits: ReadLimits | None = None,
    spill: SpillStore | None = None,
) -> ToolDefinition:
    """Define the `read` tool over one root.

    Args:
        root: The confined root.
        observation: Told of each file seen, and of each that was looked for and not found.
        limits: The caps of one window.
        spill: Where stored texts of the session are found by their locator.
    """
    reader = _Reader(root, observation, limits or ReadLimits(), spill)
    most = reader.limits.lines
    return ToolDefinition(
        name="read",
        description=(
            "Read a text file. The result holds numbered lines and the file's total number of lines. "
            f"At most {most} lines and {reader.limits.window_bytes} bytes are returned at once; use "
            "offset and limit to read further. "
            f"Lines longer than {reader.limits.line_characters} characters are cut."
        ),
        parameters={
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file: absolute, or relative to the root directory.",
                },
                "offset": {
                    "type": "integer",
                    "description": "Number of the first line to return, from 1. Default 1.",
                },
                "limit": {
                    "type": "integer",
                    "description": f"Most lines to return. Default and maximum {most}.",
                },
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
        output=Output(schema=_VALUE_SCHEMA, render=reader.render, presentation_meta=_presentation_meta),
        execute=reader.execute,
        concurrency_safe=True,
    )


class _Asked(NamedTuple):
    """The window asked for: the number of its first line, and most lines."""

    offset: int
    limit: int


class _Reader:
    def __init__(
        self,
        root: ConfinedRoot,
        observation: ObservationPolicy | None,
        limits: ReadLimits,
        spill: SpillStore | None,
    ) -> None:
        self._root = root
        self._observation = observation
        self._spill = spill
        self.limits = limits

    async def execute(self, args: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        path: str = args["file_path"]
        check_path_argument(path, "file_path")
        asked = self._asked(args)
        if self._spill is not None and is_locator(path):
            store = self._spill
            display = path
            window = await run_blocking(
                context, lambda check: self._read_spilled(store, context.session, path, asked, check)
            )
        else:
            found, seen = await run_blocking(context, lambda check: self._read(path, asked, check))
            display = found.display
            self._observe(context, found)
            if seen is None:
                raise FsError("FS_NOT_FOUND", f'cannot read "{printable(display)}": no such file')
            window = seen
        if asked.offset > max(window.total_lines, 1):
            raise FsError(
                "FS_NOT_FOUND",
                f'offset {asked.offset} is out of range for "{printable(display)}" '
                f"({window.total_lines} lines)",
            )
        return {
            "path": display,
            "offset": asked.offset,
            "lines": [{"number": number, "text": text} for number, text in window.lines],
            "totalLines": window.total_lines,
        }

    def _asked(self, args: Mapping[str, Any]) -> _Asked:
        offset = _positive_integer(args.get("offset", 1), "offset")
        limit = _positive_integer(args.get("limit", self.limits.lines), "limit")
        if limit > self.limits.lines:
            raise ToolUsageError(
                f"limit is {limit}, but at most {self.limits.lines} lines can be read at once; "
                "read the rest with a second call and offset"
            )
        return _Asked(offset, limit)

    def render(self, args: Mapping[str, Any], value: dict[str, Any]) -> list[ContentBlock]:
        lines = value["lines"]
        total = value["totalLines"]
        body = [f"{line['number']}: {line['text']}" for line in lines]
        if lines:
            body.append("")
        end = lines[-1]["number"] if lines else total
        if end < total:
            capped = len(lines) < int(args.get("limit", self.limits.lines))
            start = lines[0]["number"]
            showing = f"Showing lines {start}-{end}" if capped else f"Showing lines {start}-{end} of {total}"
            body.append(
                f"({'Output capped. ' if capped else ''}{showing}. Use offset={end + 1} to continue.)"
            )
        else:
            body.append(f"(End of file - total {total} lines)")
        return [text_block(file_envelope(value["path"], "\n".join(body)))]

    def _read(self, path: str, asked: _Asked, checkpoint: Checkpoint) -> tuple[Found, Window | None]:
        """Read a file; the window is None when it does not exist."""
        with self._root.find(path, want_names=self._observation is not None) as found:
            if found.fd is None or found.stat is None:
                return found, None
            fd = self._root.open_for_reading(found)
            try:
                return found, self._scan(fd, found.stat.st_size, found.display, asked, checkpoint)
            finally:
                os.close(fd)

    def _read_spilled(
        self, store: SpillStore, session: object, locator: str, asked: _Asked, checkpoint: Checkpoint
    ) -> Window:
        with open_spilled(store, session, locator) as fd:
            return self._scan(fd, os.fstat(fd).st_size, locator, asked, checkpoint)

    def _scan(self, fd: int, size: int, display: str, asked: _Asked, checkpoint: Checkpoint) -> Window:
        pieces = _pieces(fd, size, self.limits.stream_bytes, checkpoint)
        try:
            return scan(pieces, offset=asked.offset, count=asked.limit, limits=self.limits)
        except NotTextError as error:
            raise FsError("FS_NOT_TEXT", f'cannot read "{printable(display)}" as text: {error}') from None
        except OSError as error:
            raise fs_error_from_os(error, "read", printable(display)) from None

    def _observe(self, context: ToolRunContext, found: Found) -> None:
        if self._observation is not None and found.names is not None:
            version = None if found.stat is None else version_of(found.stat)
            self._observation.observe(context.session, found.names, Observation(found.display, version))


def _positive_integer(number: float, name: str) -> int:
    whole = int(number)  # The schema lets 2.0 pass for an integer.
    if whole < 1:
        raise ToolUsageError(f"{name} must be a whole number of at least 1, not {whole}")
    return whole


def _pieces(fd: int, size: int, stream_bytes: int, checkpoint: Checkpoint) -> Iterator[bytes]:
    # A size of 0 tells nothing: files of procfs have it, whatever they hold.
    piece_bytes = _PIECE_BYTES if size == 0 or size >= stream_bytes else size + 1
    while piece := os.read(fd, piece_bytes):
        checkpoint()
        yield piece


def _presentation_meta(args: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "path": value["path"],
        "offset": value["offset"],
        "lines": [dict(line) for line in value["lines"]],
        "totalLines": value["totalLines"],
    }
    language = language_of(value["path"])
    if language is not None:
        meta["lang"] = language
    return meta
