"""Awaiting in place, and being told when that means waiting."""

from __future__ import annotations

import pytest
import trio

from sandbox.handover import await_noticing


class Answer:
    """An awaitable that is no coroutine."""

    def __await__(self):
        yield from later().__await__()
        return "answered"


async def noticed(answer):
    told = []
    return await await_noticing(answer, lambda: told.append(True)), len(told)


async def at_once():
    return 1


async def later():
    for _ in range(3):
        await trio.lowlevel.checkpoint()
    return 2


async def test_what_does_not_wait_is_not_told():
    assert (1, 0) == await noticed(at_once())


async def test_what_waits_is_told_once():
    assert (2, 1) == await noticed(later())


async def test_any_awaitable_will_do():
    assert ("answered", 1) == await noticed(Answer())


@pytest.mark.parametrize("waits", [False, True])
async def test_an_exception_comes_out_as_it_is(waits):
    async def fail():
        if waits:
            await trio.lowlevel.checkpoint()
        raise KeyError("x")

    with pytest.raises(KeyError):
        await noticed(fail())


async def test_cancellation_reaches_what_is_awaited_and_may_be_answered_there():
    cleaned = []

    async def slow():
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(True)

    with trio.move_on_after(0) as scope:
        await noticed(slow())
    assert scope.cancelled_caught
    assert [True] == cleaned


async def test_scopes_opened_by_what_is_awaited_are_its_own():
    async def slow():
        with trio.move_on_after(0.001):
            await trio.sleep_forever()
        await trio.sleep(0.001)
        return "went on"

    assert ("went on", 1) == await noticed(slow())
