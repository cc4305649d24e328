"""Abort signals by themselves."""

from __future__ import annotations

import gc

import pytest
import trio

from tool_bindings import AbortSignal


def test_it_fires_once_and_keeps_its_first_reason():
    signal, calls = AbortSignal(), []
    signal.add_callback(lambda: calls.append(1))
    signal.abort("first")
    signal.abort("second")
    assert (True, "first", [1]) == (signal.aborted, signal.reason, calls)


def test_a_callback_added_after_the_fact_runs_at_once():
    signal, calls = AbortSignal(), []
    signal.abort()
    remove = signal.add_callback(lambda: calls.append(1))
    remove()
    assert [1] == calls


def test_a_removed_callback_does_not_run_and_the_others_keep_their_order():
    signal, calls = AbortSignal(), []
    signal.add_callback(lambda: calls.append("a"))
    remove = signal.add_callback(lambda: calls.append("b"))
    signal.add_callback(lambda: calls.append("c"))
    remove()
    remove()
    signal.abort()
    assert ["a", "c"] == calls


def test_a_raising_callback_does_not_keep_the_others_from_running():
    signal, calls = AbortSignal(), []

    def fail():
        raise ValueError("first")

    signal.add_callback(fail)
    signal.add_callback(lambda: calls.append(1))
    with pytest.raises(ValueError, match="first"):
        signal.abort()
    assert [1] == calls


async def test_waiting_ends_when_it_fires(autojump_clock):
    signal = AbortSignal()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(signal.wait)
        await trio.sleep(1)
        signal.abort()
    await signal.wait()


def test_a_joined_signal_fires_with_the_first_of_its_sources():
    one, two = AbortSignal(), AbortSignal()
    joined = AbortSignal.any(one, two)
    two.abort("two")
    one.abort("one")
    assert (True, "two") == (joined.aborted, joined.reason)
    assert "two" == AbortSignal.any(AbortSignal(), two).reason


def test_a_long_lived_source_forgets_joined_signals_that_are_gone():
    source = AbortSignal()
    for _ in range(100):
        AbortSignal.any(source, AbortSignal())
    gc.collect()
    assert {} == source._callbacks
