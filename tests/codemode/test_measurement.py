"""Samples and quantities: medians, quartiles, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemode.measurement import Samples, write_quantity


def test_the_median_and_the_quartiles_lie_between_neighbours_in_proportion():
    samples = Samples((4.0, 1.0, 3.0, 2.0))
    assert 2.5 == samples.median
    assert (1.75, 3.25) == samples.quartiles
    assert (1.0, 4.0) == (samples.percentile(0), samples.percentile(100))


def test_one_sample_is_its_own_median_and_spread():
    assert (7.0, (7.0, 7.0)) == (Samples((7.0,)).median, Samples((7.0,)).quartiles)


def test_no_sample_is_an_error_and_not_a_nought():
    with pytest.raises(ValueError, match="no sample was taken"):
        Samples(())


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_quartiles_enclose_the_median_and_lie_within_the_values(values):
    samples = Samples(tuple(values))
    low, high = samples.quartiles
    assert min(values) <= low <= high <= max(values)
    slack = 1e-9 * max(map(abs, values))
    assert low - slack <= samples.median <= high + slack


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0.00 ns"),
        (4.16e-7, "s", "416 ns"),
        (9.996e-6, "s", "10.0 us"),
        (0.0009997, "s", "1.00 ms"),
        (0.0123, "s", "12.3 ms"),
        (75.0, "s", "75.0 s"),
        (-0.0012, "s", "-1.20 ms"),
        (999.7, "B", "1.00 kB"),
        (5_930_000, "B", "5.93 MB"),
        (85.64, "1/s", "85.6/s"),
        (1234.0, "count", "1234"),
    ],
)
def test_a_quantity_has_three_digits_and_the_prefix_that_suits_it(value, unit, text):
    assert text == write_quantity(value, unit)
