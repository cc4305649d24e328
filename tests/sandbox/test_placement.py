"""Where the worker of the only run may run, and that nothing else is bound."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from sandbox.placement import Placement

pytestmark = [
    pytest.mark.needs_linux,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to choose from"),
]


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def test_a_worker_is_kept_on_one_core_until_it_is_let_go(child):
    everywhere = os.sched_getaffinity(0)
    placement = Placement(child)
    placement.settle()
    assert 1 == len(os.sched_getaffinity(child))
    placement.let_go()
    assert everywhere == os.sched_getaffinity(child)


def test_a_worker_is_kept_off_this_core_until_it_is_let_go(child):
    everywhere = os.sched_getaffinity(0)
    here = min(everywhere)
    placement = Placement(child)
    try:
        os.sched_setaffinity(0, {here})
        placement.step_aside()
        # Nowhere else to go: it stays.
        assert everywhere == os.sched_getaffinity(child)
    finally:
        os.sched_setaffinity(0, everywhere)
    placement.step_aside()
    assert len(everywhere) - 1 == len(os.sched_getaffinity(child))
    placement.let_go()
    assert everywhere == os.sched_getaffinity(child)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_this_thread_is_bound_while_it_is_blocked_and_at_no_other_time(child, error):
    everywhere = os.sched_getaffinity(0)
    seen = []

    def wait():
        seen.append(os.sched_getaffinity(0))
        if error is not None:
            raise error

    placement = Placement(child)
    placement.settle()
    assert everywhere == os.sched_getaffinity(0)
    try:
        placement.wait_here(wait)
    except KeyboardInterrupt:
        seen.append("interrupted")
    assert [os.sched_getaffinity(child), *(["interrupted"] if error else [])] == seen
    assert everywhere == os.sched_getaffinity(0)
    thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
    thread.start()
    thread.join()
    assert everywhere == seen[-1]


def test_a_worker_that_has_ended_is_no_trouble():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    placement = Placement(process.pid)
    placement.settle()
    placement.wait_here(lambda: None)
    placement.let_go()


def test_a_worker_returns_to_the_core_it_was_kept_on_wherever_this_thread_is_by_then(child):
    everywhere = os.sched_getaffinity(0)
    placement = Placement(child)
    placement.settle()
    first = os.sched_getaffinity(child)
    try:
        elsewhere = everywhere - first
        placement.step_aside()
        os.sched_setaffinity(0, elsewhere)
        placement.return_to_core()
        assert first == os.sched_getaffinity(child)
    finally:
        os.sched_setaffinity(0, everywhere)


def test_a_worker_that_was_kept_nowhere_returns_to_every_core(child):
    everywhere = os.sched_getaffinity(0)
    placement = Placement(child)
    placement.step_aside()
    placement.return_to_core()
    assert everywhere == os.sched_getaffinity(child)
