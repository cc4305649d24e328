"""The collector stands still for a while, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from sandbox.collector import uncollected


@pytest.fixture(params=[True, False])
def collecting(request):
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_the_collector_is_off_meanwhile_and_as_before_afterwards(collecting):
    assert [False, 5] == uncollected(lambda value: [gc.isenabled(), value], 5)
    assert collecting == gc.isenabled()


@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyboardInterrupt])
def test_the_collector_is_as_before_after_any_error(collecting, error):
    def fail(_value):
        raise error

    with pytest.raises(error):
        uncollected(fail, None)
    assert collecting == gc.isenabled()
