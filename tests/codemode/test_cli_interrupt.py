"""What signals ask of a command, and what they must not cost."""

from __future__ import annotations

import signal

import trio

from codemode.cli.interrupt import LAST_WAIT_SECONDS, Interrupt


async def test_the_account_of_a_run_is_waited_for_after_the_second_signal_and_not_for_ever(autojump_clock):
    told = []
    interrupt = Interrupt(told.append)
    began = trio.current_time()
    with trio.CancelScope() as body, interrupt.account_kept():
        interrupt.first(signal.SIGTERM)
        assert interrupt.abort.aborted
        body.cancel()
        interrupt.second()
        await trio.sleep_forever()
    assert LAST_WAIT_SECONDS == trio.current_time() - began
    assert [
        "codemode: stopped by SIGTERM; stopping, and waiting for calls that have begun",
        "codemode: still waiting, 10 s at most; once more leaves at once, without a word on what was done",
    ] == told


async def test_an_account_that_is_ready_in_time_is_kept(autojump_clock):
    interrupt = Interrupt(lambda text: None)
    account = None
    with trio.CancelScope() as body, interrupt.account_kept():
        body.cancel()
        interrupt.second()
        await trio.sleep(LAST_WAIT_SECONDS / 2)
        account = "what was done"
    assert "what was done" == account


async def test_without_an_account_the_second_signal_promises_nothing():
    told = []
    Interrupt(told.append).second()
    assert [] == told
