"""The floors: they measure what they say, and leave the process as it was."""

from __future__ import annotations

import os

import psutil
import pytest

from codemode.floors import fork_seconds, open_echo, round_trip_seconds

pytestmark = pytest.mark.needs_linux


def test_both_ends_of_a_round_trip_on_one_core_are_on_the_same_one_and_we_are_freed_afterwards():
    before = os.sched_getaffinity(0)
    children = set(psutil.Process().children())
    with open_echo(one_core=True) as wire:
        (other,) = set(psutil.Process().children()) - children
        assert {min(before)} == os.sched_getaffinity(0) == set(other.cpu_affinity())
        wire.sendall(b"hello")
        assert b"hello" == wire.recv(100)
    assert before == os.sched_getaffinity(0)
    assert children == set(psutil.Process().children())


def test_the_ends_of_an_ordinary_round_trip_go_where_they_like():
    before = os.sched_getaffinity(0)
    children = set(psutil.Process().children())
    with open_echo(one_core=False):
        (other,) = set(psutil.Process().children()) - children
        assert before == os.sched_getaffinity(0) == set(other.cpu_affinity())


def test_an_error_meanwhile_frees_the_core_and_ends_the_other_process():
    before = os.sched_getaffinity(0)
    children = set(psutil.Process().children())
    with pytest.raises(KeyError), open_echo(one_core=True):
        raise KeyError
    assert before == os.sched_getaffinity(0)
    assert children == set(psutil.Process().children())


def test_floors_are_positive_numbers_of_seconds():
    assert 0 < round_trip_seconds(5, one_core=True)
    assert 0 < round_trip_seconds(5, one_core=False)
    assert 0 < fork_seconds()
