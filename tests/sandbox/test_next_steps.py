"""Every failure says what to write next."""

from __future__ import annotations

from typing import get_args

import pytest

from sandbox.endings import compute_message, wall_message
from sandbox.limits import Limits
from sandbox.next_steps import advised
from sandbox.vocabulary import Failure, FailureKind

PARTS = {
    # Text, line and the rules that looked at it are all there is to say.
    "policy": None,
    "exception": None,
    "timeout": "do less in one run",
    "memory-limit": "keep less at once",
    "output-limit": "print and return less",
    "call-limit": "make fewer or smaller calls",
    "invalid-output": "convert the rest with `str(...)`",
    "abort": "stopped from outside",
    "worker-exit": "run it again without the calls that are done",
}


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_kind_of_failure_that_ends_a_whole_run_has_a_next_step(kind):
    part = PARTS[kind]
    hint = advised(Failure(kind, "message")).hint
    assert (part is None) == (hint is None)
    assert part is None or part in hint


def test_processor_time_and_elapsed_time_have_steps_of_their_own():
    compute = advised(Failure("timeout", compute_message(Limits()))).hint
    wall = advised(Failure("timeout", wall_message(Limits()))).hint
    assert "do less work in Python itself" in compute
    assert "asyncio.gather" in wall


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_a_hint_of_whoever_was_nearer_stays(kind):
    failure = Failure(kind, "message", "T", 3, "the hint")
    assert failure is advised(failure)
