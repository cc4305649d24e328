"""Spill: results too large to show are kept whole in a private file; what is shown says where.

    SpillStore    the files: private, per session, under a quota, forgotten after a week
    SpillPolicy   the post-execute listener that puts head, tail and locator in place of the text

Only what a direct call shows is spilled. The canonical value never is, nor anything of a nested call,
whose text no model reads.

Knows: bytes, budgets, locators. Does not know: tools, sessions beyond their id.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tool_bindings.content import blocks_text, text_block
from tool_bindings.policy import UNCHANGED, Accept, Block

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from tool_bindings.content import ContentBlock
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.policy import PostDecision
    from tool_bindings.results import ToolResult

__all__ = ["SpillError", "SpillPolicy", "SpillStore", "Spilled"]

SCHEME: Final = "spill:"
QUOTA_BYTES: Final = 1024**3
"""Bytes of all spilled texts of one store."""
KEEP_SECONDS: Final = 7 * 24 * 3600
"""Age after which a spilled text is forgotten."""
HINT: Final = (
    "Read it with read(file_path=LOCATOR, offset=..., limit=...) or search it with grep(path=LOCATOR)."
)
_ID_BYTES: Final = 8
_ID: Final = re.compile(r"[0-9a-f]{16}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]")

_log = logging.getLogger("tool_bindings")


class SpillError(Exception):
    """A text could not be stored or found; the message says why, without a path of the host."""


class Spilled(NamedTuple):
    """Where a text was put.

    Attributes:
        locator: `spill:<id>`, which `read` and `grep` accept in the same session.
        size_bytes: Its UTF-8 bytes.
        hint: How to read it.
    """

    locator: str
    size_bytes: int
    hint: str


class SpillStore:
    """Texts in private files below one directory.

    Args:
        root: The directory; made with mode 0700 when it is not there.
        quota_bytes: Bytes of all texts together; the oldest go first.
        keep_seconds: Age after which a text goes.
        clock: Gives the time in epoch seconds.
    """

    def __init__(
        self,
        root: Path,
        *,
        quota_bytes: int = QUOTA_BYTES,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._root = root
        self._quota_bytes = quota_bytes
        self._keep_seconds = keep_seconds
        self._clock = clock

    @property
    def root(self) -> Path:
        """The directory, for whoever must keep tools away from it."""
        return self._root

    def save_text(self, session_id: str, suggested_name: str, content: str) -> Spilled:
        """Store a text of one session.

        Raises:
            SpillError: It is larger than the quota, or the disk refused.
        """
        data = content.encode("utf-8", "backslashreplace")
        if len(data) > self._quota_bytes:
            raise SpillError(f"the text has {len(data)} bytes, above the quota of {self._quota_bytes}")
        spill_id = secrets.token_hex(_ID_BYTES)
        try:
            directory = self._directory(session_id)
            self._make_room(len(data))
            path = directory / f"{spill_id}-{encode_name(suggested_name)}"
            descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
            except OSError:
                path.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise SpillError(f"the text could not be stored: {error.strerror}") from error
        locator = SCHEME + spill_id
        return Spilled(locator, len(data), HINT.replace("LOCATOR", repr(locator)))

    def find(self, session_id: str, locator: str) -> Path:
        """Return the file behind a locator, for a reader of the same session.

        Raises:
            SpillError: There is no such text in this session, or no longer.
        """
        spill_id = locator.removeprefix(SCHEME)
        if locator.startswith(SCHEME) and _ID.fullmatch(spill_id):
            for path in self._session_path(session_id).glob(f"{spill_id}-*"):
                if not path.is_symlink() and self._clock() - path.stat().st_mtime <= self._keep_seconds:
                    return path
        raise SpillError(f"there is no stored text {locator!r} in this session; it may have expired")

    def _directory(self, session_id: str) -> Path:
        directory = self._session_path(session_id)
        for path in (self._root, directory):
            path.mkdir(mode=0o700, exist_ok=True, parents=path is self._root)
            found = path.lstat()
            if path.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise OSError(0, "the directory for stored texts is not private to this user")
        return directory

    def _session_path(self, session_id: str) -> Path:
        # An id is the caller's text; its hash is a file name whatever it holds.
        return (
            self._root
            / f"session-{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
        )

    def _make_room(self, wanted: int) -> None:
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for modified, size, path in files:
            if self._clock() - modified <= self._keep_seconds and total + wanted <= self._quota_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._root.glob("session-*/*"):
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue  # Another process made room at the same time.
            yield found.st_mtime, found.st_size, path


class SpillPolicy:
    """A post-execute listener; register it first, so that it sees what all others made.

    Args:
        store: Where texts go.
        max_inline_bytes: UTF-8 bytes a direct call may show; what replaces a longer text fits too.
        exempt: Names of tools that bound their own text.
    """

    def __init__(
        self, store: SpillStore, max_inline_bytes: int, exempt: frozenset[str] = frozenset({"read"})
    ) -> None:
        if type(max_inline_bytes) is not int or max_inline_bytes < 0:
            raise ValueError(
                f"max_inline_bytes must be a whole number of bytes, 0 or more, not {max_inline_bytes!r}"
            )
        self._store = store
        self._max_inline_bytes = max_inline_bytes
        self._exempt = exempt

    async def __call__(
        self, call: Dispatch, result: ToolResult, proceed: Callable[[], Awaitable[PostDecision]]
    ) -> PostDecision:
        """Let the others decide, then spill what they left if it is too long."""
        decision = await proceed()
        if call.parent is not None or call.name in self._exempt:
            return decision
        content = _shown_content(decision, result)
        replacement = None if content is None else self.replace(content, call.session, call.name)
        if replacement is None:
            return decision
        if isinstance(decision, Block):
            return Block(replacement, decision.contexts)
        return Accept(content=replacement, contexts=decision.contexts)

    def replace(self, content: Sequence[ContentBlock], session: Any, tool: str) -> list[ContentBlock] | None:
        """Return what to show in place of the content, or None to leave it: best effort, never an error."""
        text = _whole_text(content)
        if text is None or len(text.encode("utf-8", "backslashreplace")) <= self._max_inline_bytes:
            return None
        session_id = getattr(session, "id", None)
        if type(session_id) is not str:
            return None
        try:
            spilled = self._store.save_text(session_id, f"{tool}.txt", text)
        except SpillError as error:
            _log.warning("a long result of %s is shown whole: %s", tool, error)
            return None
        return _preview(text, spilled, self._max_inline_bytes)


def encode_name(name: str) -> str:
    """Return a file name for any text: all but letters, digits, `.`, `_` and `-` become `~XXXX`."""
    if name in ("", ".", ".."):
        return "~" if not name else "~002E" * len(name)
    encoded = "".join(
        character
        if _PLAIN.fullmatch(character)
        else "".join(f"~{unit:04X}" for unit in _utf16_units(character))
        for character in name
    )
    return encoded[:150]


def _utf16_units(character: str) -> list[int]:
    data = character.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[start : start + 2], "little") for start in range(0, len(data), 2)]


def _shown_content(decision: PostDecision, result: ToolResult) -> Sequence[ContentBlock] | None:
    """Return the content that will be shown, or None when it is not known yet (a replaced value)."""
    if isinstance(decision, Block):
        return decision.content
    if decision.value is not UNCHANGED:
        return None
    return result.content if decision.content is UNCHANGED else decision.content


def _whole_text(content: Sequence[ContentBlock]) -> str | None:
    if not content or any(block.get("type") != "text" for block in content):
        return None
    return blocks_text(content)


def _preview(text: str, spilled: Spilled, max_bytes: int) -> list[ContentBlock] | None:
    def notice(omitted: int) -> str:
        return (
            f"(Omitted {omitted} bytes. Full formatted result stored at: {spilled.locator}. {spilled.hint})"
        )

    data = text.encode("utf-8", "backslashreplace")
    # The notice with the largest count it could show, and the blank line before it.
    budget = max_bytes - len(notice(len(data)).encode()) - 2
    if budget < 0:
        return None
    head = data[: (budget + 1) // 2].decode("utf-8", "ignore")
    tail_bytes = budget // 2
    tail = data[len(data) - tail_bytes :].decode("utf-8", "ignore") if tail_bytes else ""
    omitted = len(data) - len(head.encode()) - len(tail.encode())
    preview = head + tail
    return [text_block(f"{preview}\n\n{notice(omitted)}" if preview else notice(omitted))]
