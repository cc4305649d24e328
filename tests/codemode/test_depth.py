from __future__ import annotations

import pytest

from codemode.depth import depth_of


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (0, None),
        (0, "text"),
        (1, []),
        (1, {"a": 1}),
        (2, [1, []]),
        (3, {"a": [{}], "b": 1}),
    ],
)
def test_depth_counts_lists_and_objects_inside_each_other(expected, value):
    assert expected == depth_of(value)


def test_any_depth_is_counted():
    assert 100_000 == depth_of(nested(100_000))
