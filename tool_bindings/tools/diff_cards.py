"""How a change of a file looks in metadata and on a card.

Knows: the shape of diffs and of a diff card.
Does not know: files, or who draws the card. Cards are made again from old logs, so nothing here trusts its
input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_bindings.tools.diff import hunks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox.values import JsonValue
    from tool_bindings.results import ToolResult

__all__ = ["diff_meta", "edit_call_card", "edit_result_card", "write_call_card", "write_result_card"]


# Texts of this length or longer are not compared: everything else would wait. The bound of write's basis.
_COMPARED_CHARACTERS = 10_485_760


def diff_meta(path: str, before: str | None, after: str) -> dict[str, Any]:
    """Describe a change for display.

    Args:
        path: The path as the caller wrote it.
        before: The old text; None gives no diffs, and so does a text too large to compare.
        after: The new text.
    """
    if before is None or max(len(before), len(after)) >= _COMPARED_CHARACTERS:
        return {"diffs": []}
    found = hunks(before, after)
    return {"diffs": [_diff(path, hunk.old_text, hunk.new_text) for hunk in found]}


def write_call_card(args: Mapping[str, Any]) -> JsonValue:
    """Show a write before it ran: the whole new file."""
    path, content = args.get("file_path"), args.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        return None
    return _card(path, [_diff(path, None, content)])


def write_result_card(args: Mapping[str, Any], result: ToolResult) -> JsonValue:
    """Show a write after it ran: its hunks, or the whole new file where there are none."""
    return _result_card(args, result) or (None if result.is_error else write_call_card(args))


def edit_call_card(args: Mapping[str, Any]) -> JsonValue:
    """Show an edit before it ran: the two strings."""
    path, old, new = args.get("file_path"), args.get("old_string"), args.get("new_string")
    if not isinstance(path, str) or not isinstance(old, str) or not isinstance(new, str):
        return None
    return _card(path, [_diff(path, old, new)])


def edit_result_card(args: Mapping[str, Any], result: ToolResult) -> JsonValue:
    """Show an edit after it ran: its hunks, or the generic card where there are none."""
    return _result_card(args, result)


def _result_card(args: Mapping[str, Any], result: ToolResult) -> JsonValue:
    path = args.get("file_path")
    diffs = result.meta.get("diffs") if isinstance(result.meta, dict) else None
    if result.is_error or not isinstance(path, str) or not isinstance(diffs, list) or not diffs:
        return None
    return _card(path, diffs)


def _diff(path: str, old_text: str | None, new_text: str) -> dict[str, JsonValue]:
    return {"path": path, "oldText": old_text, "newText": new_text}


def _card(path: str, diffs: list[Any]) -> dict[str, JsonValue]:
    return {"kind": "edit", "title": path, "diffs": list(diffs)}
