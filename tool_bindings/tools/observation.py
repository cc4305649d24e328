"""Remember what each session has seen of each file, so that nothing is changed unseen.

Optional: without a policy, `write` and `edit` do what they are told.

Knows: sessions by identity, places beneath the root, versions.
Does not know: how files are read or written, or what a session is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from tool_bindings.tools.errors import FsError
from tool_bindings.tools.paths import printable

if TYPE_CHECKING:
    import os

    from tool_bindings.tools.confinement import Names

__all__ = [
    "ABSENT",
    "UNCONDITIONAL",
    "UNSEEN",
    "Expectation",
    "Observation",
    "ObservationPolicy",
    "version_of",
]


class Expectation(NamedTuple):
    """What must hold of a file before it is changed.

    Attributes:
        kind: `unconditional` (nothing), `unseen` or `absent` (it must not exist), `version` (it must still be
            this one).
        version: The version seen, for kind `version`.
    """

    kind: Literal["unconditional", "unseen", "absent", "version"]
    version: str | None = None

    @property
    def must_be_absent(self) -> bool:
        """Whether a write may only create the file."""
        return self.kind in ("unseen", "absent")

    def require_for_write(self, current: os.stat_result | None, display: str) -> None:
        """Refuse to write over something unseen.

        Args:
            current: What is there now.
            display: The path to name.

        Raises:
            FsError: `FS_NOT_OBSERVED` or `FS_STALE_VERSION`.
        """
        if self.must_be_absent and current is not None:
            raise FsError(
                "FS_NOT_OBSERVED",
                f'"{printable(display)}" exists and has not been read in this session'
                " — read the file, then retry the write",
            )
        self._require_version(current, display)

    def require_for_edit(self, current: os.stat_result | None, display: str) -> None:
        """Refuse to edit something unseen or changed.

        Args:
            current: What is there now.
            display: The path to name.

        Raises:
            FsError: `FS_NOT_OBSERVED`, `FS_NOT_FOUND` or `FS_STALE_VERSION`.
        """
        if self.kind == "unseen":
            raise FsError(
                "FS_NOT_OBSERVED",
                f'"{printable(display)}" has not been read in this session'
                " — read the file, then retry the edit",
            )
        if self.kind == "absent":
            raise FsError(
                "FS_NOT_FOUND",
                f'"{printable(display)}" did not exist when it was last looked at — create it with write, '
                "or read it again if it exists now",
            )
        if current is None:
            raise FsError(
                "FS_STALE_VERSION",
                f'"{printable(display)}" does not exist — check the path, or create the file with write',
            )
        self._require_version(current, display)

    def _require_version(self, current: os.stat_result | None, display: str) -> None:
        if self.kind != "version":
            return
        if current is None or version_of(current) != self.version:
            what = "no longer exists" if current is None else "has changed since it was last read"
            raise FsError(
                "FS_STALE_VERSION", f'"{printable(display)}" {what} — read the file again, then retry'
            )


UNCONDITIONAL = Expectation("unconditional")
UNSEEN = Expectation("unseen")
ABSENT = Expectation("absent")


def version_of(facts: os.stat_result) -> str:
    """Name a file's version: any change to its content or its identity changes this text."""
    return f"{facts.st_dev}:{facts.st_ino}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ctime_ns}"


class Observation(NamedTuple):
    """One look at a file. `version` is None when the file did not exist."""

    path: str
    version: str | None


Listener = Callable[[object, Observation], None]
"""Called with the session and the observation, after it was recorded."""


class _SessionRecord:
    """What one session has seen. Holds the session weakly where the object allows it."""

    def __init__(self, session: object, forget: Callable[[object], None]) -> None:
        self.seen: dict[Names, Observation] = {}
        try:
            self.session: object = weakref.ref(session, forget)
        except TypeError:
            self.session = session


class ObservationPolicy:
    """Requires that a session has seen the present version of a file before it changes it.

    A partial read counts as seeing the file. One policy serves one set of tools, that is, one root.
    """

    def __init__(self) -> None:
        # By identity: two sessions that compare equal have still not seen the same files.
        self._records: dict[int, _SessionRecord] = {}
        self._listeners: list[Listener] = []

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` after each observation.

        A listener that raises makes the tool call fail, even though a file was already written.
        """
        self._listeners.append(listener)

    def expectation(self, session: object | None, names: Names) -> Expectation:
        """Tell what must hold before `session` changes this place.

        Args:
            session: The session; with None nothing counts as seen.
            names: The place.
        """
        record = None if session is None else self._records.get(id(session))
        seen = None if record is None else record.seen.get(names)
        if seen is None:
            return UNSEEN
        return ABSENT if seen.version is None else Expectation("version", seen.version)

    def _forget(self, key: int) -> None:
        self._records.pop(key, None)

    def observe(self, session: object | None, names: Names, observation: Observation) -> None:
        """Record what a session has just seen, then tell the listeners.

        Args:
            session: The session; with None nothing is recorded and nobody is told.
            names: The place.
            observation: What was seen there.
        """
        if session is None:
            return
        key = id(session)
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = _SessionRecord(session, lambda _: self._forget(key))
        record.seen[names] = observation
        for listener in self._listeners:
            listener(session, observation)
