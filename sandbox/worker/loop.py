"""The event loop of a program: stdlib asyncio tasks driven by one blocking socket.

asyncio's own loops carry a selector, a self-pipe and thread hand-over, none of which a program
needs, and all of which the kernel wall forbids. This one runs what is ready, sends what was
queued, and blocks in `recv` when nothing else can happen. Tasks, futures, locks, queues,
timeouts and task groups are the standard library's, so programs find the semantics they know.

Knows: callbacks, timers, host calls by number. Does not know: programs, namespaces.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import time
from asyncio import events, tasks
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from sandbox import values, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from sandbox.worker.channel import Wire

Context = contextvars.Context
_CALL = wire.CALL.encode()
_BATCH = wire.BATCH.encode()


class DeadlockError(RuntimeError):
    """Nothing is runnable, no timer is set and no call is pending: the wait would never end."""


class Waiter(Protocol):
    """Whoever is told what calls are answered."""

    def take_result(self, call_id: int, value: Any) -> None:
        """Take the result of a call."""

    def take_error(self, call_id: int, message: str) -> None:
        """Take the message of a call that failed."""


def line_text(line: int | None) -> bytes:
    """Return a program's line as it is sent."""
    return b"null" if line is None else b"%d" % line


class CallFuture(asyncio.Future[Any]):
    """The answer of one host call. Cancelling it tells the host that nobody waits any more."""

    def __init__(self, loop: WireLoop, make_error: Callable[[str], BaseException]) -> None:
        super().__init__(loop=loop)
        self._wire_loop = loop
        self._make_error = make_error
        self.call_id = 0
        """The call's number, once it has been sent."""

    def take_result(self, _call_id: int, value: Any) -> None:
        """Be done, unless given up."""
        if not self.done():
            self.set_result(value)

    def take_error(self, _call_id: int, message: str) -> None:
        """Fail with the exception for a failed call's message, unless given up."""
        if not self.done():
            self.set_exception(self._make_error(message))

    def cancel(self, msg: Any = None) -> bool:
        """Give the call up; its later answer is dropped."""
        if not super().cancel(msg):
            return False
        self._wire_loop.give_up(self.call_id)
        return True


CallFuture.__name__ = CallFuture.__qualname__ = "Future"
"""What a program reads in the text of one."""


class Handle:
    """A callback that waits for its turn. What `call_soon` and `call_at` return."""

    __slots__ = ("_args", "_callback", "_context", "_when")

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        when: float = 0.0,
    ) -> None:
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context = contextvars.copy_context() if context is None else context
        self._when = when

    def run(self) -> None:
        """Call back, unless cancelled."""
        if self._callback is not None:
            self._context.run(self._callback, *self._args)

    def cancel(self) -> None:
        """Never call back."""
        self._callback = None
        self._args = ()

    def cancelled(self) -> bool:
        """Return whether `cancel` was called."""
        return self._callback is None

    def when(self) -> float:
        """Return the loop time a timer is due at."""
        return self._when


_AbstractLoop: Any = asyncio.AbstractEventLoop
"""What we leave out raises NotImplementedError, as in asyncio's own base class; typeshed wants it all."""


class WireLoop(_AbstractLoop):  # type: ignore[misc]  # see above
    """Runs tasks until a chosen one is done; answers come from the channel."""

    def __init__(self, channel: Wire) -> None:
        self._channel = channel
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._timer_numbers = itertools.count()
        self._call_numbers = itertools.count(1)
        self._pending: dict[int, Waiter] = {}
        self._broken: Exception | None = None
        """What went wrong in the middle of receiving, after which frames cannot be told apart any more."""

    # ---- what asyncio calls

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Call back in the next pass."""
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Call back after `delay` seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Call back at a time of `time()`."""
        # A number of the program's own class would run its comparisons among the timers.
        when = when if type(when) is float else float(when)
        handle = Handle(callback, args, context, when)
        heapq.heappush(self._timers, (when, next(self._timer_numbers), handle))
        return handle

    def time(self) -> float:
        """Return the loop's clock, in seconds."""
        return time.monotonic()

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # newer versions pass more options, which the Task takes
        self, coro: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """Schedule a coroutine."""
        return asyncio.Task(coro, loop=self, **options)

    def get_debug(self) -> bool:
        """Return False: asyncio's debug mode is never on."""
        return False

    def is_running(self) -> bool:
        """Return True: the loop exists only while a program runs."""
        return True

    def is_closed(self) -> bool:
        """Return False, see `is_running`."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore what asyncio would log: errors of tasks nobody awaited, found at the very end."""

    # ---- host calls

    def start_call(
        self, target: bytes, arguments: bytes, line: int | None, make_error: Callable[[str], BaseException]
    ) -> CallFuture:
        """Queue a host call and return the future of its answer.

        Args:
            target: Namespace and member, encoded, with a comma between.
            arguments: The arguments, encoded.
            line: The program's line.
            make_error: Gives the exception to raise for a failed call's message.
        """
        future = CallFuture(self, make_error)
        self.send_call(future, target, arguments, line)
        return future

    def send_call(self, future: CallFuture, target: bytes, arguments: bytes, line: int | None) -> None:
        """Queue the host call whose answer a future waits for; otherwise as `start_call`."""
        future.call_id = self.send_one(future, target, arguments, line)

    def send_together(self, waiters: Sequence[Waiter], calls: bytes) -> list[int]:
        """Queue many host calls, which leave in one message, and return their numbers, which are in a row.

        Args:
            waiters: For each call, who gets its answer; at most `wire.MAX_BATCH_CALLS`.
            calls: The list of namespace, member, arguments and line of each, encoded.
        """
        if self._broken is not None:
            raise self._broken
        numbers = list(itertools.islice(self._call_numbers, len(waiters)))
        message = b'["%b",%d,%b]' % (_BATCH, numbers[0], calls)
        # Nothing is waited for that there was no memory to send.
        self._pending.update(zip(numbers, waiters, strict=True))
        self._channel.post(message)
        return numbers

    def send_one(self, waiter: Waiter, target: bytes, arguments: bytes, line: int | None) -> int:
        """Queue a host call and return its number; otherwise as `start_call`."""
        call_id = self._post_call(target, arguments, line)
        self._pending[call_id] = waiter
        return call_id

    def has_nothing_else(self) -> bool:
        """Return whether the running task is all there is: nothing is ready, timed or waited for."""
        if self._ready or self._pending or self._timers:
            return False
        task = tasks.current_task(self)
        # A cancellation that was asked for is delivered where the task gives up control.
        return task is None or not task.cancelling()

    def call_and_wait(
        self, target: bytes, arguments: bytes, line: int | None, make_error: Callable[[str], BaseException]
    ) -> Any:
        """Make a host call and return its answer, as `start_call` and waiting would.

        Only when the loop `has_nothing_else`: nobody could tell the difference, but for the time it takes.

        Raises:
            BaseException: The one that `make_error` gives, when the call failed.
        """
        call_id = self._post_call(target, arguments, line)
        self._channel.flush()
        while True:
            for message in self._receive(None):
                # Anything else answers calls that were given up.
                if message[1] == call_id:
                    if message[0] == wire.RESULT:
                        return message[2]
                    raise make_error(message[2])

    def _receive(self, timeout_seconds: float | None) -> list[Any]:
        if self._broken is not None:
            raise self._broken
        try:
            return self._channel.receive(timeout_seconds)
        except (MemoryError, RecursionError) as error:
            # A program may catch this in its own `try`, but what was received is lost.
            self._broken = error
            raise

    def _post_call(self, target: bytes, arguments: bytes, line: int | None) -> int:
        if self._broken is not None:
            raise self._broken
        call_id = next(self._call_numbers)
        self._channel.post(b'["%b",%d,%b,%b,%b]' % (_CALL, call_id, target, arguments, line_text(line)))
        return call_id

    def flush(self) -> None:
        """Send queued calls now, instead of when nothing is runnable."""
        self._channel.flush()

    def give_up(self, call_id: int) -> bool:
        """Tell the host that nobody waits for a call any more; returns whether somebody did."""
        if self._pending.pop(call_id, None) is None:
            return False
        self._channel.post(values.encode([wire.CANCEL, call_id]))
        return True

    # ---- driving

    def run(self, coro: Coroutine[Any, Any, Any]) -> Any:
        """Run a program's coroutine to its end and return its value.

        Raises:
            DeadlockError: Nothing can ever finish the program's wait.
        """
        events._set_running_loop(self)  # noqa: SLF001  # asyncio offers it to authors of loops
        return self._run_task(self.create_task(coro))

    def run_nested(self, coro: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine from inside a running one: what `asyncio.run` does in a program."""
        current = tasks.current_task(self)
        if current is None:
            return self._run_task(self.create_task(coro))
        # asyncio allows one current task per loop, so the outer one steps aside.
        tasks._leave_task(self, current)  # noqa: SLF001  # asyncio offers it to authors of loops
        try:
            return self._run_task(self.create_task(coro))
        finally:
            tasks._enter_task(self, current)  # noqa: SLF001  # asyncio offers it to authors of loops

    def _run_task(self, task: asyncio.Task[Any]) -> Any:
        ready = self._ready
        while True:
            # Only what is ready now: a task that keeps itself ready must not starve the wire.
            for _ in range(len(ready)):
                ready.popleft().run()
            if task.done():
                return task.result()
            self._channel.flush()
            self._wait(task)

    def _wait(self, task: asyncio.Task[Any]) -> None:
        if self._ready:
            if self._pending:
                self._answer(self._receive(0))
        else:
            timeout = self._seconds_to_next_timer()
            if self._pending:
                self._answer(self._receive(timeout))
            elif timeout is not None:
                time.sleep(timeout)
            else:
                raise DeadlockError(
                    "nothing left to wait for: no task, timer or call can ever finish this wait"
                )
        self._expire_timers()

    def _seconds_to_next_timer(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return max(self._timers[0][0] - self.time(), 0.0) if self._timers else None

    def _expire_timers(self) -> None:
        if not self._timers:
            return
        now = self.time()
        while self._timers and self._timers[0][0] <= now:
            self._ready.append(heapq.heappop(self._timers)[2])

    def _answer(self, messages: list[Any]) -> None:
        take = self._pending.pop
        for name, call_id, answer in messages:
            if name == wire.RESULTS:
                for number, value in enumerate(answer, call_id):
                    if (waiter := take(number, None)) is not None:
                        waiter.take_result(number, value)
            elif (waiter := take(call_id, None)) is not None:
                if name == wire.RESULT:
                    waiter.take_result(call_id, answer)
                else:
                    waiter.take_error(call_id, answer)
