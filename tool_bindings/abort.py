"""A stop request that travels with a call.

Knows: whether it fired, why, and whom to tell.
Does not know: what stopping means; a dispatch ties the signal to a cancel scope of its own.

Use a signal from the thread that runs trio. From another thread go through
`trio.from_thread.run_sync(signal.abort, reason)`.
"""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AbortSignal", "Cancellable"]


def _nothing() -> None:
    """Remove nothing: the signal had fired before the callback was added."""


class Cancellable(Protocol):
    """A cancel scope, or what stands for one."""

    def cancel(self) -> None:
        """Cancel it."""


class AbortSignal:
    """Fires at most once and stays fired."""

    __slots__ = ("__weakref__", "_aborted", "_callbacks", "_event", "_reason", "_sources")

    def __init__(self) -> None:
        self._aborted = False
        self._reason: object = None
        self._callbacks: dict[object, Callable[[], object]] | None = None
        self._event: trio.Event | None = None
        self._sources: tuple[AbortSignal, ...] = ()

    # A getter of Python's own would cost as much as a call, several times in each nested call.
    aborted = property(operator.attrgetter("_aborted"), doc="Whether the signal fired.")

    @property
    def reason(self) -> object:
        """What `abort` was given; None before it fired."""
        return self._reason

    def abort(self, reason: object = None) -> None:
        """Fire the signal; a second call changes nothing.

        Callbacks run here, in the order they were added. If some raise, all the others still run
        and the first exception is raised afterwards.
        """
        if self._aborted:
            return
        self._aborted = True
        self._reason = reason
        if self._event is not None:
            self._event.set()
        callbacks, self._callbacks = self._callbacks, None
        first_error: Exception | None = None
        for callback in (callbacks or {}).values():
            try:
                callback()
            except Exception as error:  # noqa: BLE001  # one bad callback must not keep the rest from stopping
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    async def wait(self) -> None:
        """Return once the signal fired."""
        if self._event is None:
            self._event = trio.Event()
            if self._aborted:
                self._event.set()
        await self._event.wait()

    def add_callback(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Call `callback()` when the signal fires, or now if it already has.

        Returns:
            A function that takes the callback back; safe to call at any time.
        """
        if self._aborted:
            callback()
            return _nothing
        if self._callbacks is None:
            self._callbacks = {}
        key = object()
        self._callbacks[key] = callback
        return lambda: self._callbacks.pop(key, None) if self._callbacks is not None else None

    def attach(self, scope: Cancellable) -> None:
        """Cancel `scope` when the signal fires, or now if it already has, until it is detached."""
        if self._aborted:
            scope.cancel()
            return
        if self._callbacks is None:
            self._callbacks = {}
        self._callbacks[scope] = scope.cancel

    def detach(self, scope: Cancellable) -> None:
        """Leave a scope alone that was attached; safe to call at any time."""
        if self._callbacks is not None:
            self._callbacks.pop(scope, None)

    @staticmethod
    def any(*signals: AbortSignal) -> AbortSignal:
        """Return a new signal that fires as soon as one of `signals` does, with the same reason."""
        joined = AbortSignal()
        joined._sources = signals
        for signal in signals:
            if signal.aborted:
                joined.abort(signal.reason)
                return joined
        # A long-lived source must not keep every joined signal alive, so it holds it weakly; the
        # joined one holds its sources.
        reference = weakref.ref(joined)
        for signal in signals:

            def forward(source: AbortSignal = signal) -> None:
                target = reference()
                if target is not None:
                    target.abort(source.reason)

            weakref.finalize(joined, signal.add_callback(forward)).atexit = False
        return joined
