"""Await something, and be told the moment it has to wait.

A task that reads requests can serve one itself, without a task of its own, as long as serving it does
not wait for anything; when it does wait, somebody else must go on reading.

Knows: the coroutine protocol, contexts. Does not know: what is awaited.
"""

from __future__ import annotations

import contextvars
import types
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

T = TypeVar("T")


class Begun(NamedTuple, Generic[T]):
    """A coroutine that waits; whichever task it was begun in has to go on with it.

    Attributes:
        coroutine: The coroutine.
        trap: What it has yielded.
        context: Its context variables, in which it was begun.
    """

    coroutine: Coroutine[Any, Any, T]
    trap: Any
    context: contextvars.Context


@types.coroutine
def await_noticing(answer: Awaitable[T] | Begun[T], on_wait: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `answer` in this very task, and call `on_wait` before its first suspension, if any.

    One that was begun in this task already has come to it.

    Everything the coroutine yields goes on to the scheduler unchanged, as `await` would pass it, so
    cancel scopes and deadlines stay those of the one task. Its context variables are its own, as those of
    a task would be: what one call sets, the next served here must not see.
    """
    if isinstance(answer, Begun):
        on_wait()
        return (yield from _go_on(answer))  # type: ignore[no-any-return]  # a generator, marked
    coroutine = answer if isinstance(answer, types.CoroutineType) else _wrap(answer)
    context = contextvars.copy_context()
    try:
        trap = context.run(coroutine.send, None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    on_wait()
    return (yield from _go_on(Begun(coroutine, trap, context)))  # type: ignore[no-any-return]  # a generator, marked


@types.coroutine
def _go_on(begun: Begun[T]) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine, in the task that it was begun in."""
    coroutine, trap, context = begun
    # From here on this task is the call's: the scheduler resumes it in the context it began in.
    trio.lowlevel.current_task().context = context
    while True:
        thrown: BaseException | None = None
        try:
            sent = yield trap
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # noqa: BLE001  # how the scheduler cancels; it belongs to what is awaited
            thrown = error
        try:
            trap = coroutine.send(sent) if thrown is None else coroutine.throw(thrown)
        except StopIteration as stop:
            value: T = stop.value
            return value


async def _wrap(answer: Awaitable[T]) -> T:
    return await answer
