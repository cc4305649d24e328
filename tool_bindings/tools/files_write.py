"""The `write` tool: create a file or replace its whole content.

Knows: the tool's arguments, value, text and metadata.
Does not know: how a file is replaced safely (see change).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.tools.blocking import run_blocking
from tool_bindings.tools.diff_cards import diff_meta, write_call_card, write_result_card
from tool_bindings.tools.envelope import file_envelope
from tool_bindings.tools.errors import FsError
from tool_bindings.tools.observation import Observation, version_of
from tool_bindings.tools.paths import check_path_argument
from tool_bindings.tools.text_file import decode_or_none, encode_argument, to_lf

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.tools.blocking import Checkpoint
    from tool_bindings.tools.change import FileChanger, Target
    from tool_bindings.tools.confinement import Names
    from tool_bindings.tools.observation import ObservationPolicy

__all__ = ["write_tool"]

_DIFF_BASIS_BYTES = 10_485_760  # A file of this size or larger is not compared.

_VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Absolute path of the file."},
        "operation": {"type": "string", "enum": ["create", "update"]},
        "before": {
            "oneOf": [{"type": "string"}, {"type": "null"}],
            "description": "The old text with LF line ends; null for a new file, or when it was not text.",
        },
        "after": {"type": "string", "description": "The new text with LF line ends."},
    },
    "required": ["path", "operation", "before", "after"],
    "additionalProperties": False,
}


def write_tool(changer: FileChanger, *, observation: ObservationPolicy | None = None) -> ToolDefinition:
    """Define the `write` tool.

    Args:
        changer: Opens files for change under the root.
        observation: Told of each file written.
    """
    writer = _Writer(changer, observation)
    return ToolDefinition(
        name="write",
        description=(
            "Write a text file: create it, with its parent directories, or replace its whole content. "
            "To change a part of an existing file use edit."
        ),
        parameters={
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file: absolute, or relative to the root directory.",
                },
                "content": {"type": "string", "description": "The complete new content."},
            },
            "required": ["file_path", "content"],
            "additionalProperties": False,
        },
        output=Output(schema=_VALUE_SCHEMA, render=_render, presentation_meta=_presentation_meta),
        execute=writer.execute,
        present_call=write_call_card,
        present_result=write_result_card,
    )


class _Writer:
    def __init__(self, changer: FileChanger, observation: ObservationPolicy | None) -> None:
        self._changer = changer
        self._observation = observation

    async def execute(self, args: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        path: str = args["file_path"]
        check_path_argument(path, "file_path")
        content = encode_argument(args["content"], "content")
        names, facts, value = await run_blocking(
            context, lambda check: self._write(path, content, args["content"], context.session, check)
        )
        if self._observation is not None:
            self._observation.observe(context.session, names, Observation(value["path"], version_of(facts)))
        return value

    def _write(
        self, path: str, content: bytes, text: str, session: object | None, checkpoint: Checkpoint
    ) -> tuple[Names, os.stat_result, dict[str, Any]]:
        with self._changer.open(path, session, checkpoint, for_edit=False) as (target, expectation):
            before = _diff_basis(target, content)
            facts = target.publish(
                content,
                if_absent=target.current is None and expectation.must_be_absent,
                same_version=expectation.version is not None,
            )
            return (
                target.names,
                facts,
                {
                    "path": target.display,
                    "operation": "create" if target.current is None else "update",
                    "before": before,
                    "after": to_lf(text),
                },
            )


def _diff_basis(target: Target, content: bytes) -> str | None:
    """Return the old text to compare with, or None when there is none that is worth comparing."""
    if target.current is None or max(target.current.st_size, len(content)) >= _DIFF_BASIS_BYTES:
        return None
    try:
        old = target.read(_DIFF_BASIS_BYTES)
    except FsError as error:
        if error.code == "FS_ABORTED":
            raise
        return None  # A file that may be written but not read.
    text = decode_or_none(old)
    return None if text is None else to_lf(text)


def _render(_args: Mapping[str, Any], value: dict[str, Any]) -> list[ContentBlock]:
    body = "Created file" if value["operation"] == "create" else "Updated file"
    return [text_block(file_envelope(value["path"], body))]


def _presentation_meta(args: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    return diff_meta(args["file_path"], value["before"], value["after"])
