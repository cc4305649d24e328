"""What the pool does with a fork server that keeps dying, on a virtual clock. Decision 0058."""

from __future__ import annotations

import pytest
import trio

from sandbox import pool as pool_module
from sandbox.errors import WorkerStartError
from sandbox.launch import Walls
from sandbox.limits import Limits, WorkerBudget
from sandbox.nursery import open_background_nursery
from sandbox.pool import WorkerPool
from sandbox.run_message import Offer
from sandbox.vocabulary import Program

LIMITS = Limits()
OFFER = Offer(Program(""))


class DyingServer:
    """A fork server that has made a worker once, and ends as soon as it is asked for another."""

    proven = True
    starts: list[float]

    def __init__(self):
        self._gone = trio.Event()

    @classmethod
    async def start(cls, walls):
        cls.starts.append(trio.current_time())
        return cls()

    def is_gone(self):
        return self._gone.is_set()

    async def run(self):
        await self._gone.wait()

    async def fork(self, budget, *, warm):
        self._gone.set()
        raise WorkerStartError("the fork server is gone")

    async def close(self):
        self._gone.set()


@pytest.fixture
async def pool(monkeypatch):
    monkeypatch.setattr(DyingServer, "starts", [], raising=False)
    monkeypatch.setattr(pool_module, "ForkServer", DyingServer)
    made = WorkerPool(LIMITS, 1, Walls())
    async with open_background_nursery() as nursery:
        made._nursery = nursery
        yield made
        await made.close()


async def refusal(pool):
    with pytest.raises(WorkerStartError) as refused:
        await pool.take(WorkerBudget.of(LIMITS), OFFER)
    return str(refused.value)


async def test_a_fork_server_that_dies_after_each_worker_is_not_restarted_without_pause(pool, autojump_clock):
    until = trio.current_time() + 120
    while trio.current_time() < until:
        await refusal(pool)
        await trio.sleep(1)
    # The pauses double up to half a minute; without them there would be thousands of starts.
    assert len(DyingServer.starts) < 20
    gaps = [after - before for before, after in zip(DyingServer.starts, DyingServer.starts[1:], strict=False)]
    assert gaps[-1] > 10 * gaps[2] > 0


async def test_a_run_is_told_how_often_it_died_and_when_it_is_started_again(pool, autojump_clock):
    told = {await refusal(pool) for _ in range(6)}
    assert any(
        "the fork server ended 5 times in a row" in text and "started again in" in text for text in told
    )


async def test_when_the_pause_is_over_the_next_run_tries_again(pool, autojump_clock):
    for _ in range(6):
        await refusal(pool)
    before = len(DyingServer.starts)
    await trio.sleep(40)
    await refusal(pool)
    assert len(DyingServer.starts) > before
