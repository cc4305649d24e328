"""Name the language of a file by its extension, for highlighting.

Knows: a small table of extensions.
Does not know: file contents.
"""

from __future__ import annotations

from pathlib import PurePosixPath

__all__ = ["language_of"]

_LANGUAGES = {
    "bash": "bash",
    "c": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "cs": "csharp",
    "css": "css",
    "go": "go",
    "h": "c",
    "hpp": "cpp",
    "html": "html",
    "java": "java",
    "js": "javascript",
    "json": "json",
    "jsx": "jsx",
    "kt": "kotlin",
    "lua": "lua",
    "md": "markdown",
    "php": "php",
    "py": "python",
    "pyi": "python",
    "rb": "ruby",
    "rs": "rust",
    "scss": "scss",
    "sh": "bash",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "ts": "typescript",
    "tsx": "tsx",
    "xml": "xml",
    "yaml": "yaml",
    "yml": "yaml",
}


def language_of(path: str) -> str | None:
    """Return the language of a path, or None when its extension is unknown or it is a dotfile."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.removeprefix(".").lower())
