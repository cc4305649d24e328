"""Order and capacity of nested calls (spec facts 89 to 95, with the design's change to 94)."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from codemode.lane import Abandoned, Lane


class Script:
    """Calls of a lane, and a record of what happened in which order."""

    def __init__(self, max_parallel: int = 10) -> None:
        self.lane = Lane(max_parallel)
        self.happened: list[str] = []
        self.finish: dict[str, trio.Event] = {}
        self.live = 0
        self.most_live = 0

    def submit(
        self, nursery: trio.Nursery, name: str, *, exclusive: bool = False, prepare: float = 0.0
    ) -> None:
        ticket = self.lane.admit()
        self.finish[name] = trio.Event()
        nursery.start_soon(self._serve, name, ticket, exclusive, prepare)

    async def _serve(self, name, ticket, exclusive, prepare):
        try:
            await self.lane.wait_turn(ticket, lambda: exclusive)
        except Abandoned:
            self.happened.append(f"{name} abandoned")
            return
        self.happened.append(f"{name} starts")
        await trio.sleep(prepare)
        self.lane.started(ticket)
        self.live += 1
        self.most_live = max(self.most_live, self.live)
        await self.finish[name].wait()
        self.live -= 1
        self.happened.append(f"{name} settles")
        self.lane.settle(ticket)


async def test_starts_are_in_submission_order_whatever_order_tasks_run_in():
    script = Script()
    async with trio.open_nursery() as nursery:
        names = [f"c{number}" for number in range(10)]
        for name in names:
            script.submit(nursery, name)
        await trio.testing.wait_all_tasks_blocked()
        for name in names:
            script.finish[name].set()
    assert [f"{name} starts" for name in names] == script.happened[:10]


async def test_the_next_start_waits_for_the_ordered_part_of_the_one_before(autojump_clock):
    script = Script()
    async with trio.open_nursery() as nursery:
        script.submit(nursery, "slow", prepare=5)
        script.submit(nursery, "quick")
        await trio.sleep(1)
        assert script.happened == ["slow starts"]
        await trio.sleep(5)
        assert script.happened == ["slow starts", "quick starts"]
        script.finish["slow"].set()
        script.finish["quick"].set()


async def test_parallel_calls_never_exceed_the_bound():
    script = Script(max_parallel=2)
    async with trio.open_nursery() as nursery:
        for name in "abcde":
            script.submit(nursery, name)
            script.finish[name].set()
    assert script.most_live <= 2
    assert {f"{name} settles" for name in "abcde"} <= set(script.happened)


async def test_a_bound_of_one_is_serial():
    script = Script(max_parallel=1)
    async with trio.open_nursery() as nursery:
        for name in "abc":
            script.submit(nursery, name)
            script.finish[name].set()
    assert [f"{name} {what}" for name in "abc" for what in ("starts", "settles")] == script.happened


async def test_an_exclusive_call_drains_the_pool_runs_alone_and_holds_the_barrier():
    script = Script()
    async with trio.open_nursery() as nursery:
        script.submit(nursery, "a")
        script.submit(nursery, "b")
        script.submit(nursery, "alone", exclusive=True)
        script.submit(nursery, "c")
        await trio.testing.wait_all_tasks_blocked()
        assert script.happened == ["a starts", "b starts"]
        script.finish["b"].set()
        await trio.testing.wait_all_tasks_blocked()
        assert script.happened[2:] == ["b settles"]
        script.finish["a"].set()
        await trio.testing.wait_all_tasks_blocked()
        assert script.happened[3:] == ["a settles", "alone starts"]
        script.finish["alone"].set()
        script.finish["c"].set()
    assert script.happened[5:] == ["alone settles", "c starts", "c settles"]


async def test_a_fast_call_settles_before_a_slow_one_that_was_submitted_first():
    """Differs from spec fact 94 on purpose: `as_completed` means what it says."""
    script = Script()
    async with trio.open_nursery() as nursery:
        script.submit(nursery, "slow")
        script.submit(nursery, "fast")
        await trio.testing.wait_all_tasks_blocked()
        script.finish["fast"].set()
        await trio.testing.wait_all_tasks_blocked()
        assert script.happened[-1] == "fast settles"
        script.finish["slow"].set()


async def test_closing_abandons_what_has_not_started_and_nothing_else():
    script = Script(max_parallel=1)
    async with trio.open_nursery() as nursery:
        for name in "abc":
            script.submit(nursery, name)
        await trio.testing.wait_all_tasks_blocked()
        script.lane.close()
        await trio.testing.wait_all_tasks_blocked()
        assert {"b abandoned", "c abandoned"} == set(script.happened[1:])
        script.finish["a"].set()
    assert script.happened[-1] == "a settles"


async def test_giving_up_a_queued_call_lets_the_next_one_start():
    lane = Lane(1)
    first, second, third = lane.admit(), lane.admit(), lane.admit()
    await lane.wait_turn(first, lambda: False)
    lane.started(first)
    reached = []

    async def wait(name, ticket):
        try:
            await lane.wait_turn(ticket, lambda: False)
            reached.append(name)
        except Abandoned:
            reached.append(f"{name} abandoned")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "second", second)
        nursery.start_soon(wait, "third", third)
        await trio.testing.wait_all_tasks_blocked()
        assert lane.give_up(second)
        await trio.testing.wait_all_tasks_blocked()
        assert reached == ["second abandoned"]
        lane.settle(first)
    assert reached == ["second abandoned", "third"]
    assert not lane.give_up(third)


async def test_a_closed_lane_abandons_a_call_that_is_still_to_come():
    lane = Lane(1)
    lane.close()
    with pytest.raises(Abandoned):
        await lane.wait_turn(lane.admit(), lambda: False)


async def test_classification_is_asked_when_the_call_is_first_in_line():
    lane = Lane(10)
    first, second = lane.admit(), lane.admit()
    asked = []
    await lane.wait_turn(first, lambda: True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lane.wait_turn, second, lambda: bool(asked.append("second")))
        await trio.testing.wait_all_tasks_blocked()
        assert asked == []
        lane.started(first)
        lane.settle(first)
    assert asked[-1] == "second"
