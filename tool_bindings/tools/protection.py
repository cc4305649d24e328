"""Places beneath the root that tools may read but never change.

Knows: which names and which marker files protect a directory, and the files the operator listed.
Does not know: how paths are resolved, or what is written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tool_bindings.tools.errors import FsError
from tool_bindings.tools.paths import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tool_bindings.tools.confinement import ConfinedRoot, Names

__all__ = ["Protection", "ProtectionCheck"]

_REPOSITORY = ".git"
_ENVIRONMENT_MARKER = "pyvenv.cfg"
_SETTINGS = "codemode.toml"

_LISTED = "the operator protects it"

_Identity = tuple[int, int]  # Device and inode.


class Protection:
    """The rule for one root.

    Args:
        root: The confined root.
        protected: Files or directories that must not change, whether or not they exist yet. A directory
            protects everything beneath it.
    """

    def __init__(self, root: ConfinedRoot, protected: Sequence[Path] = ()) -> None:
        self._root = root
        self._listed = [os.path.abspath(path) for path in protected]  # noqa: PTH100  As in ConfinedRoot.
        self._listed.append(os.path.join(root.path, _SETTINGS))  # noqa: PTH118  The rest here is text as well.

    def check(self) -> ProtectionCheck:
        """Look at the listed files as they are now, for use during one change."""
        check = ProtectionCheck(self._root)
        for path in self._listed:
            for place in {path, os.path.realpath(path)}:
                directory, name = os.path.split(place)
                check.paths.add(os.path.join(os.path.realpath(directory), name))  # noqa: PTH118  As above.
                try:
                    parent = os.stat(directory)  # noqa: PTH116  As above.
                except OSError:
                    pass  # Its directory does not exist, so nothing beneath the root can be it yet.
                else:
                    check.entries.add(((parent.st_dev, parent.st_ino), name))
            try:
                facts = os.stat(path)  # noqa: PTH116  As above.
            except OSError:
                continue  # Does not exist yet: the entry above protects its name.
            check.identities.add((facts.st_dev, facts.st_ino))
        return check


@dataclass(slots=True)
class ProtectionCheck:
    """Decides about descriptors that are already open, so that what is checked is what is changed."""

    root: ConfinedRoot
    identities: set[_Identity] = field(default_factory=set)
    entries: set[tuple[_Identity, str]] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)

    def names(self, names: Names) -> None:
        """Refuse what its names alone protect, before anything is opened or made.

        Raises:
            FsError: It is protected.
        """
        if _REPOSITORY in (name.casefold() for name in (*self.root.real_path.split("/"), *names)):
            raise self._refused(names, "it belongs to a git repository's own files")
        if names[-1] == _ENVIRONMENT_MARKER:
            raise self._refused(names, "it marks a virtual environment")
        if names[-1] == _SETTINGS:
            raise self._refused(names, "it holds the operator's settings")
        place = self.root.real_path.rstrip("/")
        for name in names:
            # Also what does not exist yet, and what lies in a directory that does not.
            place = f"{place}/{name}"
            if place in self.paths:
                raise self._refused(names, _LISTED)

    def directory(self, fd: int, names: Names) -> None:
        """Refuse to make or change anything in this directory or below it.

        Raises:
            FsError: It is protected.
        """
        facts = os.fstat(fd)
        if (facts.st_dev, facts.st_ino) in self.identities:
            raise self._refused(names, _LISTED)
        try:
            os.stat(_ENVIRONMENT_MARKER, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return
        raise self._refused(names, f"it is a virtual environment (a directory with {_ENVIRONMENT_MARKER})")

    def entry(self, parent_fd: int, names: Names, facts: os.stat_result | None) -> None:
        """Refuse to make or replace this entry of a directory.

        Args:
            parent_fd: The directory that holds it, already checked.
            names: The entry, from the root down.
            facts: What the entry is now, or None when it does not exist.

        Raises:
            FsError: It is protected.
        """
        parent = os.fstat(parent_fd)
        listed = ((parent.st_dev, parent.st_ino), names[-1]) in self.entries
        if listed or (facts is not None and (facts.st_dev, facts.st_ino) in self.identities):
            raise self._refused(names, _LISTED)

    def _refused(self, names: Names, reason: str) -> FsError:
        return FsError(
            "FS_SANDBOX_DENIED",
            "[sandbox: file access denied under workspace-write mode]\n"
            f'"{printable(self.root.display(names))}" must not be changed: {reason}; write somewhere else',
        )
