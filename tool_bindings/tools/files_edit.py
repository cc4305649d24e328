"""The `edit` tool: replace an exact piece of text in a file.

Knows: the tool's arguments, matching, value, text and metadata.
Does not know: how a file is replaced safely (see change).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.tools.blocking import run_blocking
from tool_bindings.tools.diff_cards import diff_meta, edit_call_card, edit_result_card
from tool_bindings.tools.errors import FsError, ToolUsageError
from tool_bindings.tools.observation import Observation, version_of
from tool_bindings.tools.paths import check_path_argument, printable
from tool_bindings.tools.text_file import decode_or_none, encode_argument, to_lf, uses_crlf

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.tools.blocking import Checkpoint
    from tool_bindings.tools.change import FileChanger, Target
    from tool_bindings.tools.confinement import Names
    from tool_bindings.tools.observation import ObservationPolicy

__all__ = ["edit_tool"]

# The whole file is held several times over while it is edited, and twice in the value. Arbitrary.
_EDIT_BYTES = 67_108_864

_VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Absolute path of the file."},
        "before": {"type": "string", "description": "The old text with LF line ends."},
        "after": {"type": "string", "description": "The new text with LF line ends."},
    },
    "required": ["path", "before", "after"],
    "additionalProperties": False,
}


def edit_tool(changer: FileChanger, *, observation: ObservationPolicy | None = None) -> ToolDefinition:
    """Define the `edit` tool.

    Args:
        changer: Opens files for change under the root.
        observation: Told of each file edited.
    """
    editor = _Editor(changer, observation)
    return ToolDefinition(
        name="edit",
        description=(
            "Replace an exact piece of text in a file. old_string must match the file literally, with its "
            "indentation and line breaks, and must occur once unless replace_all is true."
        ),
        parameters={
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file: absolute, or relative to the root directory.",
                },
                "old_string": {
                    "type": "string",
                    "description": "The text to replace, exactly as in the file.",
                },
                "new_string": {"type": "string", "description": "The text to put in its place."},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
            },
            "required": ["file_path", "old_string", "new_string"],
            "additionalProperties": False,
        },
        output=Output(schema=_VALUE_SCHEMA, render=_render, presentation_meta=_presentation_meta),
        execute=editor.execute,
        present_call=edit_call_card,
        present_result=edit_result_card,
    )


class _Replacement(NamedTuple):
    """What to replace by what; LF line ends."""

    old: str
    new: str
    every: bool

    def apply(self, text: str, display: str) -> str:
        count = text.count(self.old)
        if count == 0:
            raise FsError(
                "FS_EDIT_NOT_FOUND",
                f'old_string was not found in "{printable(display)}"; it must match literally, with '
                "indentation and line breaks, and without the line numbers that read shows",
            )
        if count > 1 and not self.every:
            raise FsError(
                "FS_AMBIGUOUS_EDIT",
                f'old_string occurs {count} times in "{printable(display)}"; add surrounding lines until '
                "it is unique, or set replace_all to true",
            )
        return text.replace(self.old, self.new)


class _Editor:
    def __init__(self, changer: FileChanger, observation: ObservationPolicy | None) -> None:
        self._changer = changer
        self._observation = observation

    async def execute(self, args: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        path: str = args["file_path"]
        check_path_argument(path, "file_path")
        encode_argument(args["new_string"], "new_string")
        change = _Replacement(
            to_lf(args["old_string"]), to_lf(args["new_string"]), args.get("replace_all", False)
        )
        if not change.old:
            raise ToolUsageError(
                "old_string must not be empty; give the text to replace, or create a file with write"
            )
        if change.old == change.new:
            raise ToolUsageError("old_string and new_string are equal; there is nothing to change")
        names, facts, value = await run_blocking(
            context, lambda check: self._edit(path, change, context.session, check)
        )
        if self._observation is not None:
            self._observation.observe(context.session, names, Observation(value["path"], version_of(facts)))
        return value

    def _edit(
        self, path: str, change: _Replacement, session: object | None, checkpoint: Checkpoint
    ) -> tuple[Names, os.stat_result, dict[str, Any]]:
        with self._changer.open(path, session, checkpoint, for_edit=True) as (target, _):
            original = _text_of(target)
            before = to_lf(original)
            after = change.apply(before, target.display)
            content = after.replace("\n", "\r\n") if uses_crlf(original) else after
            # Also without a policy: a change by another process since the file was opened would be lost.
            facts = target.publish(content.encode(), if_absent=False, same_version=True)
            return target.names, facts, {"path": target.display, "before": before, "after": after}


def _text_of(target: Target) -> str:
    if target.current is not None and target.current.st_size > _EDIT_BYTES:
        raise FsError(
            "FS_TOO_LARGE",
            f'"{printable(target.display)}" has {target.current.st_size} bytes; edit takes files of at most '
            f"{_EDIT_BYTES} bytes",
        )
    text = decode_or_none(target.read(_EDIT_BYTES))
    if text is None:
        raise FsError(
            "FS_NOT_TEXT",
            f'cannot edit "{printable(target.display)}": it is not UTF-8 text (a NUL byte, or invalid UTF-8)',
        )
    return text


def _render(args: Mapping[str, Any], value: dict[str, Any]) -> list[ContentBlock]:
    path = printable(value["path"])
    if args.get("replace_all", False):
        return [text_block(f"The file {path} has been updated. All occurrences were successfully replaced.")]
    return [text_block(f"The file {path} has been updated successfully.")]


def _presentation_meta(args: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    return diff_meta(args["file_path"], value["before"], value["after"])
