"""Where a median may be: the interval of the sign test, and claims that are held to its upper end."""

from __future__ import annotations

import math

import pytest
from measuring import report
from measuring.claims import Claim, judge
from measuring.intervals import median_interval
from measuring.rounds import Measured, Row

from codemode.measurement import Samples


@pytest.mark.parametrize(
    ("count", "ranks"),
    # From the printed tables of the sign test at 95 %.
    [(6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (25, (8, 18)), (50, (18, 33)), (100, (40, 61))],
)
def test_the_ends_are_the_values_that_the_tables_name(count, ranks):
    assert ranks == median_interval([float(value) for value in range(count, 0, -1)])


@pytest.mark.parametrize("count", range(1, 6))
def test_too_few_values_say_nothing(count):
    assert (-math.inf, math.inf) == median_interval([1.0] * count)


def test_values_that_have_nothing_to_do_with_the_middle_do_not_move_it():
    usual = [float(value) for value in range(100)]
    assert median_interval(usual) == median_interval([-1e9, *usual[1:-1], 1e9])


def measured(values):
    return Measured(rows={"a/x": Row("s", Samples(values), {1: 0.0})})


CLAIM = Claim("x", "a/x", at_most=0.0145, for_certain=True)
MANY = tuple(value / 1000 for value in range(1, 22))
"""Their median is 11 ms, the interval 6 to 16 ms."""


def test_a_claim_that_is_to_hold_for_certain_is_held_to_the_upper_end():
    judged = judge(CLAIM, measured(MANY))
    assert (0.011, (0.006, 0.016), "OVER") == (judged.value, judged.interval, judged.verdict)
    assert "ok" == judge(Claim("x", "a/x", at_most=0.016, for_certain=True), measured(MANY)).verdict
    assert "ok" == judge(Claim("x", "a/x", at_most=0.0145), measured(MANY)).verdict


def test_a_claim_with_too_few_values_does_not_hold():
    assert "OVER" == judge(CLAIM, measured((-1.0, -1.0, -1.0))).verdict


def test_the_interval_is_printed_and_written():
    judged = judge(CLAIM, measured(MANY))
    assert "x 11.0 ms 6.00 ms .. 16.0 ms 14.5 ms OVER" in " ".join(report.claims_table([judged]).split())
    (claim,) = report.as_json(measured(MANY), [judged], 1)["claims"]
    assert (0.006, 0.016) == claim["interval"]
