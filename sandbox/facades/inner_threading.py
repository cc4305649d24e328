# ruff: noqa: N801 -- the names and signatures are the library's
"""`threading` for programs: locks, which are free where there is one thread, and nothing that starts one.

Knows: locks. Does not know: threads; this text runs as a program does.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["Lock", "RLock", "Thread", "local"]


class Lock:
    """A lock; whoever would wait for it is told, since nobody else could release it."""

    _again = False

    def __init__(self) -> None:
        self._held = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock."""
        if self._held and not self._again:
            if blocking and timeout < 0:
                raise RuntimeError(
                    "acquire() would wait for ever: the lock is held, and there is no other thread"
                )
            return False
        self._held += 1
        return True

    def release(self) -> None:
        """Give the lock back."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held -= 1

    def locked(self) -> bool:
        """Say whether the lock is held."""
        return self._held > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *details: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its holder may take again."""

    _again = True


class Thread:
    """Refused when it is made."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise RuntimeError(
            "there are no threads; call the function, or run awaitables together with asyncio.gather"
        )


class local(SimpleNamespace):
    """Values of one thread, the only one."""
