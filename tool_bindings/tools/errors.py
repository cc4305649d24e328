"""Errors of the first-party file tools, with the codes that are recorded.

Knows: the closed code sets of the file system and search families, and how an operating system error reads
to a model.
Does not know: paths other than the ones it is handed, or who shows the text.

```
ToolBindingError
├ ToolUsageError      an argument that no schema can refuse (a blank path); recorded without a code
└ HarnessError
  ├ FsError           read, write, edit
  └ SearchError       glob, grep
```
"""

from __future__ import annotations

import errno
import os
from typing import Literal

from tool_bindings.errors import HarnessError, ToolBindingError

__all__ = ["FsCode", "FsError", "SearchCode", "SearchError", "ToolUsageError", "fs_error_from_os"]

FsCode = Literal[
    "FS_NOT_FOUND",
    "FS_NOT_DIRECTORY",
    "FS_NOT_TEXT",
    "FS_NOT_REGULAR_FILE",
    "FS_TOO_LARGE",
    "FS_PERMISSION_DENIED",
    "FS_SANDBOX_DENIED",
    "FS_IO_ERROR",
    "FS_STALE_VERSION",
    "FS_NOT_OBSERVED",
    "FS_AMBIGUOUS_EDIT",
    "FS_EDIT_NOT_FOUND",
    "FS_ABORTED",
]
"""What can go wrong with a file, as recorded in `error.code`."""

SearchCode = Literal[
    "SEARCH_INVALID_PATTERN",
    "SEARCH_FAILED",
    "SEARCH_RAW_OUTPUT_OVERFLOW",
    "SEARCH_ABORTED",
]
"""What can go wrong with a search, as recorded in `error.code`."""


class ToolUsageError(ToolBindingError):
    """An argument has the right type and still makes no sense (you); see `FsError` for the file's side.

    Its message is all that is recorded: there is no code.
    """


class FsError(HarnessError):
    """A file could not be read or changed (the file, or you).

    Its neighbour is `ToolUsageError`, for arguments that are wrong whatever the files are.
    """

    def __init__(self, code: FsCode, message: str) -> None:
        super().__init__(message, code)


class SearchError(HarnessError):
    """A search could not be completed (the pattern, or the search program)."""

    def __init__(self, code: SearchCode, message: str) -> None:
        super().__init__(message, code)


_CODES: dict[int, FsCode] = {
    errno.ENOENT: "FS_NOT_FOUND",
    errno.ENOTDIR: "FS_NOT_DIRECTORY",
    errno.EISDIR: "FS_NOT_REGULAR_FILE",
    errno.EACCES: "FS_PERMISSION_DENIED",
    errno.EPERM: "FS_PERMISSION_DENIED",
    errno.EROFS: "FS_PERMISSION_DENIED",
}

_REASONS: dict[int, str] = {
    errno.ENOENT: "no such file or directory",
    errno.ENOTDIR: "a part of the path before the last one is a file, not a directory",
    errno.EISDIR: "it is a directory",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ELOOP: "too many symbolic links",
    errno.ENAMETOOLONG: "one name in it is longer than the file system allows (usually 255 bytes)",
    errno.ENOSPC: "no space left on the file system",
    errno.EDQUOT: "the disk quota is used up",
    errno.EMFILE: "too many files are open; try again",
    errno.ENFILE: "too many files are open; try again",
}


def fs_error_from_os(error: OSError, action: str, shown_path: str) -> FsError:
    """Translate an operating system error into the error a model reads.

    Args:
        error: What the operating system said. Its own text may hold host paths and is not used.
        action: What was tried, as in `cannot <action> "path"`.
        shown_path: The path to name, in the caller's own terms.

    Returns:
        The error to raise.
    """
    number = error.errno or 0
    reason = _REASONS.get(number) or (
        os.strerror(number).lower() if number else "the operating system refused"
    )
    return FsError(_CODES.get(number, "FS_IO_ERROR"), f'cannot {action} "{shown_path}": {reason}')
