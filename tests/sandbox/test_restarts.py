"""A fork server that keeps ending is started again with pauses, and runs are told. Decision 0058."""

from __future__ import annotations

import pytest
import trio

from sandbox.restarts import MAX_PAUSE_SECONDS, PATIENT_ENDS, SOON_SECONDS, Restarts


async def test_the_first_end_costs_no_pause(autojump_clock):
    restarts = Restarts()
    restarts.ended(0.1)
    assert (0, None) == (restarts.pause_seconds(), restarts.refusal())


async def test_each_further_end_in_a_row_doubles_the_pause_up_to_a_bound(autojump_clock):
    restarts = Restarts()
    pauses = []
    for _ in range(14):
        restarts.ended(0.1)
        pauses.append(restarts.pause_seconds())
    assert pytest.approx([0, 0.1, 0.2, 0.4, 0.8]) == pauses[:5]
    assert pytest.approx(MAX_PAUSE_SECONDS) == pauses[-1] == max(pauses)


async def test_a_pause_passes_with_time(autojump_clock):
    restarts = Restarts()
    for _ in range(3):
        restarts.ended(0.1)
    await trio.sleep(0.15)
    assert pytest.approx(0.05) == restarts.pause_seconds()
    await trio.sleep(0.15)
    assert 0 == restarts.pause_seconds()


async def test_one_that_lived_long_is_an_accident_again(autojump_clock):
    restarts = Restarts()
    for _ in range(9):
        restarts.ended(0.1)
    restarts.ended(SOON_SECONDS + 1)
    assert 0 == restarts.pause_seconds()


async def test_runs_are_told_only_after_several_ends_and_only_until_the_next_start_is_due(autojump_clock):
    restarts = Restarts()
    for _ in range(PATIENT_ENDS):
        restarts.ended(0.1)
    assert restarts.refusal() is None
    restarts.ended(0.1)
    told = restarts.refusal()
    assert "the fork server ended 5 times in a row" in told
    assert "started again in 0.8 seconds" in told
    await trio.sleep(0.9)
    assert restarts.refusal() is None
