"""The text envelope in which read, write and edit answer.

Knows: the order of its parts.
Does not know: files.
"""

from __future__ import annotations

from tool_bindings.tools.paths import printable

__all__ = ["file_envelope"]


def file_envelope(path: str, body: str) -> str:
    """Wrap a body in the envelope of one file.

    Args:
        path: The file's display path.
        body: The text between the content marks.
    """
    return f"<path>{printable(path)}</path>\n<type>file</type>\n<content>\n{body}\n</content>"
