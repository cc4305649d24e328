"""`batch` in a program: many calls that leave together, and one wait for all they are answered.

A call of a batch has no future and no task of its own, unless somebody awaits it beside the batch.

Knows: pending calls, and what each of them gave. Does not know: what a call does.
"""
# ruff: noqa: SLF001  # as in `namespaces`: what is in a program's hands keeps everything behind an underscore

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sandbox.facades.appearance import renamed
from sandbox.worker.namespaces import (
    BATCH,
    NO_VALUE,
    CallError,
    HostNamespace,
    PendingCall,
    fail,
    in_messages,
    program_line,
    send_together,
    start,
)

if TYPE_CHECKING:
    from sandbox.worker.loop import WireLoop


def add_batch(namespace: HostNamespace, target: HostNamespace) -> None:
    """Offer `batch` in one namespace, which calls many members of another at a time."""
    # A function beside the class: a public method would stand before a member of its name.
    namespace._batch = Batch(f"{namespace._name}.{BATCH}", target)


class Answers:
    """The calls of one batch that were sent, and the future that waits until all are answered."""

    __slots__ = ("_calls", "_first_id", "_left", "_loop", "errors", "future")

    def __init__(self, loop: WireLoop) -> None:
        self._loop = loop
        self._calls: list[PendingCall] = []
        self._first_id = 0
        self._left = 0
        self.future = loop.create_future()
        self.errors: dict[PendingCall, CallError] = {}
        """What failed."""

    def send(self, calls: list[tuple[PendingCall, bytes]]) -> None:
        """Send calls with their arguments in one message."""
        first_id = send_together(calls, [self] * len(calls))[0]
        if not self._calls:
            self._first_id = first_id
        for call, _ in calls:
            _note_sent(call)
            # Nobody else makes calls between the messages of a batch, so that all its numbers are in a row.
            self._calls.append(call)
        self._left += len(calls)

    def refuse(self, call: PendingCall, error: CallError) -> None:
        """Take note that the host is not to see a call for its arguments."""
        _note_sent(call)
        self._fail(call, error)

    async def wait(self) -> None:
        """Wait until all that was sent is answered."""
        if self._left:
            await self.future

    def give_up(self) -> None:
        """Tell the host that nobody waits for what it has not answered."""
        for call_id, call in enumerate(self._calls, self._first_id):
            if self._loop.give_up(call_id):
                start(call).cancel()

    def take_result(self, call_id: int, value: Any) -> None:
        """Take the result of a call."""
        call = self._calls[call_id - self._first_id]
        call._value = value
        future = call._future
        if future is not None and not future.done():
            future.set_result(value)
        self._count_down()

    def take_error(self, call_id: int, message: str) -> None:
        """Take the message of a call that failed."""
        call = self._calls[call_id - self._first_id]
        self._fail(call, call._function._make_error(message))
        self._count_down()

    def _fail(self, call: PendingCall, error: Any) -> None:
        self.errors[call] = error
        fail(call, error)

    def _count_down(self) -> None:
        self._left -= 1
        if not self._left and not self.future.done():
            self.future.set_result(None)


class Batch:
    """Makes many calls at a time and gives what each of them gave, in order: its value, or its error."""

    __slots__ = ("_label", "_target")

    def __init__(self, label: str, target: HostNamespace) -> None:
        self._label = label
        self._target = target

    async def __call__(self, calls: object, /) -> list[object]:  # noqa: D102  # a program's call
        if not isinstance(calls, (list, tuple)):
            raise TypeError(f"{self._label} takes a list of calls")
        pending = [self._pending(item, number) for number, item in enumerate(calls)]
        loop = self._target._loop
        # The same call may be there twice.
        new = list(dict.fromkeys(call for call in pending if call._is_new()))
        answers = Answers(loop)
        try:
            for some in in_messages(new, answers.refuse):
                answers.send(some)
            await answers.wait()
            return [
                await _end(call, answers.errors) if call._value is NO_VALUE else call._value
                for call in pending
            ]
        except BaseException:
            # Cancelled, or out of memory: as with gather, nobody waits for the rest either.
            answers.give_up()
            for call in pending:
                if call._future is not None:
                    call._future.cancel()
            raise

    def __repr__(self) -> str:
        return f"<function {self._label}>"

    def _pending(self, item: object, number: int) -> PendingCall:
        """Take a call as `tools.name(...)`, as a (name, arguments) pair, or as a record of both."""
        if type(item) is PendingCall:
            return item
        name: object = None
        arguments: object = None
        if isinstance(item, dict):
            name, arguments = item.get(self._target._noun), item.get("arguments", {})
        elif isinstance(item, (tuple, list)) and len(item) == 2:
            name, arguments = item
        if type(name) is not str or not isinstance(arguments, dict):
            raise TypeError(
                f"{self._label} takes a list of calls, and item {number} is none: write"
                f' {self._target._name}.name(key=value), or ("name", {{"key": value}})'
            )
        call = PendingCall(
            self._target._member(name, LookupError),
            arguments,
            program_line(sys._getframe(), self._target._program_file),
        )
        self._target._unstarted[call] = None
        return call


def _note_sent(call: PendingCall) -> None:
    call._is_sent = True
    call._function._unstarted.pop(call, None)
    call._arguments = None


async def _end(call: PendingCall, errors: dict[PendingCall, CallError]) -> object:
    if call in errors:
        return errors[call]
    try:
        return await start(call)
    except CallError as error:
        return error


# What Python's own messages call it: the name of our class would only puzzle a program's author.
renamed({Batch: "function"})
Batch.__call__.__qualname__ = BATCH
