"""The `read` tool: a window of lines of a text file.

Knows: the tool's arguments, value, text and metadata.
Does not know: how a path is confined, or how lines are found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.tools.blocking import run_blocking
from tool_bindings.tools.envelope import file_envelope
from tool_bindings.tools.errors import FsError, ToolUsageError, fs_error_from_os
from tool_bindings.tools.languages import language_of
from tool_bindings.tools.observation import Observation, version_of
from tool_bindings.tools.paths import check_path_argument, printable
from tool_bindings.tools.window import NotTextError, ReadLimits, Window, scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.tools.blocking import Checkpoint
    from tool_bindings.tools.confinement import ConfinedRoot, Found, Names
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
                    "type": "number",
                    "description": "Number of the first line to return, from 1. Default 1.",
                },
                "limit": {
                    "type": "number",
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


class _Reader:
    def __init__(self, root: ConfinedRoot, observation: ObservationPolicy | None, limits: ReadLimits) -> None:
        self._root = root
        self._observation = observation
        self.limits = limits

    async def execute(self, args: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        path: str = args["file_path"]
        check_path_argument(path, "file_path")
        offset = _positive_integer(args.get("offset", 1), "offset")
        count = _positive_integer(args.get("limit", self.limits.lines), "limit")
        if count > self.limits.lines:
            raise ToolUsageError(
                f"limit is {count}, but at most {self.limits.lines} lines can be read at once; "
                "read the rest with a second call and offset"
            )
        found, window = await run_blocking(context, lambda check: self._read(path, offset, count, check))
        self._observe(context, found.names, found.display, found.stat)
        if window is None:
            raise FsError("FS_NOT_FOUND", f'cannot read "{printable(found.display)}": no such file')
        if offset > max(window.total_lines, 1):
            raise FsError(
                "FS_NOT_FOUND",
                f'offset {offset} is out of range for "{printable(found.display)}" '
                f"({window.total_lines} lines)",
            )
        return {
            "path": found.display,
            "offset": offset,
            "lines": [{"number": number, "text": text} for number, text in window.lines],
            "totalLines": window.total_lines,
        }

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

    def _read(
        self, path: str, offset: int, count: int, checkpoint: Checkpoint
    ) -> tuple[Found, Window | None]:
        with self._root.find(path, want_names=self._observation is not None) as found:
            if found.fd is None or found.stat is None:
                return found, None
            fd = self._root.open_for_reading(found)
            try:
                pieces = _pieces(fd, found.stat, self.limits.stream_bytes, checkpoint)
                return found, scan(pieces, offset=offset, count=count, limits=self.limits)
            except NotTextError as error:
                raise FsError(
                    "FS_NOT_TEXT", f'cannot read "{printable(found.display)}" as text: {error}'
                ) from None
            except OSError as error:
                raise fs_error_from_os(error, "read", printable(found.display)) from None
            finally:
                os.close(fd)

    def _observe(
        self, context: ToolRunContext, names: Names | None, display: str, facts: os.stat_result | None
    ) -> None:
        if self._observation is not None and names is not None:
            version = None if facts is None else version_of(facts)
            self._observation.observe(context.session, names, Observation(display, version))


def _positive_integer(number: float, name: str) -> int:
    if number < 1 or number != int(number):
        raise ToolUsageError(f"{name} must be a whole number of at least 1, not {number}")
    return int(number)


def _pieces(fd: int, facts: os.stat_result, stream_bytes: int, checkpoint: Checkpoint) -> Iterator[bytes]:
    # A size of 0 tells nothing: files of procfs have it, whatever they hold.
    size = _PIECE_BYTES if facts.st_size == 0 or facts.st_size >= stream_bytes else facts.st_size + 1
    while piece := os.read(fd, size):
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
