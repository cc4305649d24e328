"""When both sides of a run get a core each, and when they share one again."""

from __future__ import annotations

import socket

import pytest

from sandbox import pace as pace_module
from sandbox import wire
from sandbox.outgoing import Outgoing
from sandbox.pace import LOOK_SECONDS, Pace

WINDOW = pace_module._WINDOW_EXCHANGES
FIRST = pace_module._FIRST_WINDOWS * WINDOW
ON_ONE_CORE, QUICKER, NOT_WORTH_IT = 0.00014, 0.00009, 0.00013
"""Seconds per exchange."""


class Placement:
    """Remembers where a worker was put."""

    def __init__(self, *, has_other_core=True):
        self.has_other_core = has_other_core
        self.moves = []

    def step_aside(self):
        if self.has_other_core:
            self.moves.append("aside")
        return self.has_other_core

    def return_to_core(self):
        self.moves.append("back")

    def let_go(self):
        self.moves.append("anywhere")


class Case:
    """A pace whose exchanges take what a test says."""

    def __init__(self, monkeypatch, **placement):
        self.now = 100.0
        self.told = []
        monkeypatch.setattr(pace_module, "perf_counter", lambda: self.now)
        self.placement = Placement(**placement)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.pace = Pace(ours, self.placement, self.told.append)

    def exchanges(self, count, seconds):
        for _ in range(count):
            self.now += seconds
            self.pace.exchange()

    def go_apart(self, on_one_core=ON_ONE_CORE):
        self.exchanges(FIRST + 1, on_one_core)
        assert self.pace.is_apart


@pytest.fixture
def case(monkeypatch):
    return Case(monkeypatch)


def test_a_run_of_few_exchanges_shares_a_core(case):
    case.exchanges(FIRST, ON_ONE_CORE)
    assert (False, [], []) == (case.pace.is_apart, case.placement.moves, case.told)


def test_many_exchanges_in_a_row_get_a_core_each(case):
    case.exchanges(FIRST + 1, ON_ONE_CORE)
    assert (True, ["aside"], [LOOK_SECONDS]) == (case.pace.is_apart, case.placement.moves, case.told)


def test_it_stays_like_that_while_it_is_quicker(case):
    case.go_apart()
    case.exchanges(20 * WINDOW, QUICKER)
    assert (True, ["aside"]) == (case.pace.is_apart, case.placement.moves)


def test_what_is_hardly_quicker_is_given_up(case):
    case.go_apart()
    case.exchanges(16 * WINDOW, NOT_WORTH_IT)
    assert (False, ["aside", "back"], [LOOK_SECONDS, 0.0]) == (
        case.pace.is_apart,
        case.placement.moves,
        case.told,
    )


def test_a_core_that_is_taken_away_later_is_noticed(case):
    case.go_apart()
    case.exchanges(5 * WINDOW, QUICKER)
    case.exchanges(WINDOW, 0.0005)
    assert not case.pace.is_apart


def pauses(case, tries, end):
    """Let so many tries end in a way, and return for how many windows a core was shared before each."""
    found = []
    for _ in range(tries):
        shared = 0
        while not case.pace.is_apart:
            case.exchanges(1, ON_ONE_CORE)
            shared += 1
        end()
        assert not case.pace.is_apart
        found.append(round(shared / WINDOW))
    return found


def test_every_try_that_fails_makes_the_pause_longer_up_to_a_bound(case):
    assert [3, 2, 4, 8, 16, 32, 64, 128, 128] == pauses(case, 9, lambda: case.exchanges(WINDOW, 0.0003))


def test_a_try_that_was_interrupted_has_failed_as_well(case):
    assert [3, 2, 4] == pauses(case, 3, case.pace.interrupt)


def test_a_try_that_lasts_makes_the_next_pause_short_again(case):
    pauses(case, 2, lambda: case.exchanges(WINDOW, 0.0003))

    def last():
        case.exchanges(20 * WINDOW, QUICKER)
        case.exchanges(1, 1.0)

    assert [4, 1] == pauses(case, 2, last)


def test_exchanges_are_compared_with_those_since_the_core_was_shared_again(case):
    case.go_apart()
    case.exchanges(6, 0.001)  # The program does more between its calls from here on.
    assert not case.pace.is_apart
    case.exchanges(2 * WINDOW + 1, 0.0012)
    assert case.pace.is_apart
    case.exchanges(WINDOW, 0.001)
    assert case.pace.is_apart


def test_an_interruption_begins_the_window_anew(case):
    case.exchanges(FIRST, ON_ONE_CORE)
    case.pace.interrupt()
    case.exchanges(WINDOW, ON_ONE_CORE)
    assert not case.pace.is_apart
    case.exchanges(1, ON_ONE_CORE)
    assert case.pace.is_apart


def test_a_program_that_does_something_else_ends_it_at_once(case):
    case.go_apart()
    case.pace.interrupt()
    assert (False, 0.0) == (case.pace.is_apart, case.told[-1])
    assert ["aside", "back", "anywhere"] == case.placement.moves


def test_an_exchange_that_takes_longer_than_a_window_may_ends_it_without_waiting_for_the_others(case):
    case.go_apart()
    case.exchanges(3, QUICKER)
    assert case.pace.is_apart
    case.exchanges(1, 2 * WINDOW * ON_ONE_CORE)
    assert not case.pace.is_apart


def test_time_that_was_saved_may_be_lost_again_but_no_more_than_a_little(case):
    case.go_apart()
    case.exchanges(2 * WINDOW, QUICKER)
    case.exchanges(1, WINDOW * ON_ONE_CORE)
    case.exchanges(20 * WINDOW, QUICKER)
    assert case.pace.is_apart
    case.exchanges(1, 4 * WINDOW * ON_ONE_CORE)
    assert not case.pace.is_apart


def test_on_a_machine_of_one_core_nothing_changes(monkeypatch):
    case = Case(monkeypatch, has_other_core=False)
    case.exchanges(20 * WINDOW, ON_ONE_CORE)
    assert (False, [], []) == (case.pace.is_apart, case.placement.moves, case.told)


def test_the_workers_looking_is_counted_while_it_looks_and_at_most_as_long_as_it_may(case):
    case.exchanges(1, ON_ONE_CORE)
    case.now += 0.00005
    case.pace.answered()
    assert 0.0 == case.pace.looking_seconds
    case.pace.interrupt()
    case.go_apart()
    case.now += 0.00005
    case.pace.answered()
    # It is told to look together with this answer.
    assert 0.0 == case.pace.looking_seconds
    case.pace.exchange()
    case.now += 0.00005
    case.pace.answered()
    assert pytest.approx(0.00005) == case.pace.looking_seconds
    # Another call's answer, to no new message.
    case.now += 0.00005
    case.pace.answered()
    assert pytest.approx(0.00005) == case.pace.looking_seconds
    case.pace.exchange()
    case.now += 3.0
    case.pace.answered()
    assert pytest.approx(0.00005 + LOOK_SECONDS) == case.pace.looking_seconds


def test_a_worker_looks_for_less_time_than_the_kernels_limit_leaves_beside_the_runs(case):
    case.go_apart(on_one_core=0.001)
    for _ in range(6000):
        case.pace.exchange()
        case.now += LOOK_SECONDS
        case.pace.answered()
    assert (False, True) == (case.pace.is_apart, case.pace.looking_seconds < 1.0)
    case.exchanges(200 * WINDOW, ON_ONE_CORE)
    assert not case.pace.is_apart


def test_waiting_apart_looks_and_sleeps_only_when_nothing_came(monkeypatch):
    waits = []

    class Poll:
        def register(self, *_args):
            pass

        def poll(self, timeout):
            waits.append(timeout)
            case.now += LOOK_SECONDS / 2.5
            return []

    monkeypatch.setattr(pace_module.select, "poll", Poll)
    case = Case(monkeypatch)
    case.go_apart()
    assert case.pace.wait()
    assert [0, 0, 0, 1] == waits


def test_of_two_that_have_not_left_the_worker_gets_the_last():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outgoing = Outgoing(ours)
        outgoing.messages.append(b"[1]")
        outgoing.lead(b'["pace",200]')
        outgoing.messages.append(b"[2]")
        outgoing.lead(b'["pace",0]')
        outgoing.flush()
        outgoing.lead(b'["pace",200]')
        outgoing.flush()
        heard = theirs.recv(1000)
    assert wire.pack([b'["pace",0]', b"[1]", b"[2]"]) + wire.pack([b'["pace",200]']) == heard
