"""Signals that stop a command in order: the first asks, the second insists, the third does not wait.

What has been done by then must not get lost, so whoever holds the account of it is given time after the
second, too. A person at a terminal is told what is being waited for.

Knows: SIGINT, SIGTERM, SIGHUP and what a person means by them. Does not know: what is being stopped.
"""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

import trio

from codemode.cli.status import SIGNALLED
from tool_bindings import AbortSignal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

LAST_WAIT_SECONDS = 10.0
"""What the account of a run is waited for after a second signal. Arbitrary, beyond `grace_seconds`, in which
every thread of a tool has ended or is abandoned."""

_WORDS = {
    signal.SIGINT: "interrupted by Ctrl-C",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped because the terminal was closed",
}


class Interrupt:
    """What has arrived so far.

    Args:
        tell: Shows a person who watches a line about what is being waited for.

    Attributes:
        abort: Fires on the first signal.
        number: The first signal, or None.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.abort = AbortSignal()
        self.number: int | None = None
        self._tell = tell
        self._account: trio.CancelScope | None = None

    @property
    def words(self) -> str:
        """What happened, for a person."""
        return _WORDS[signal.Signals(self.number)] if self.number is not None else "not interrupted"

    @property
    def status(self) -> int:
        """The exit status that tells a shell about it."""
        assert self.number is not None, "asked only after a signal"
        return SIGNALLED + self.number

    @contextlib.contextmanager
    def account_kept(self) -> Iterator[None]:
        """Let the body end by itself after a second signal, within `LAST_WAIT_SECONDS`.

        For a body that heeds `abort`: cancelling it would end it no sooner, and its result would be lost.
        """
        with trio.CancelScope(shield=True) as self._account:
            yield

    def first(self, number: int) -> None:
        """Take note of the first signal."""
        self.number = number
        self.abort.abort(self.words)
        self._tell(f"codemode: {self.words}; stopping, and waiting for calls that have begun")

    def second(self) -> None:
        """Take note of another one."""
        if self._account is not None:
            self._account.deadline = trio.current_time() + LAST_WAIT_SECONDS
            self._tell(
                f"codemode: still waiting, {LAST_WAIT_SECONDS:g} s at most;"
                " once more leaves at once, without a word on what was done"
            )


@contextlib.asynccontextmanager
async def stoppable(interrupt: Interrupt) -> AsyncIterator[trio.Nursery]:
    """Let signals stop the body; background tasks started in the nursery end with it.

    The first signal fires `interrupt.abort`, so that a run settles and its log is completed. A second one
    cancels the body, see `Interrupt.account_kept`. A third ends the process on the spot, since a tool may
    refuse to be cancelled; its log is then completed when it is opened again.
    """
    # Under nohup the terminal's end is no reason to stop.
    heeded = [
        number
        for number in _WORDS
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]
    with trio.open_signal_receiver(*heeded) as signals:
        # The watcher stands outside of what it cancels, so that it is there for the third signal.
        async with trio.open_nursery() as watching:
            with trio.CancelScope() as work:
                watching.start_soon(_watch, signals, interrupt, work)
                async with trio.open_nursery() as nursery:
                    yield nursery
                    nursery.cancel_scope.cancel()
            watching.cancel_scope.cancel()


async def _watch(signals: AsyncIterator[int], interrupt: Interrupt, work: trio.CancelScope) -> None:
    async for number in signals:
        if interrupt.number is None:
            interrupt.first(number)
        elif not work.cancel_called:
            work.cancel()
            interrupt.second()
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
