"""The slip table: every typical slip gets the answer that helps, in every variant."""

from __future__ import annotations

import pytest
import slips


def test_the_table_is_as_large_as_it_should_be():
    table = slips.load()
    assert len(table) >= 200
    assert {3} == {len(set(slip["programs"])) for slip in table}
    assert len(table) == len({slip["id"] for slip in table})


@pytest.mark.needs_linux
async def test_every_variant_of_every_slip_is_answered_with_its_hint():
    assert {} == await slips.judge(slips.load())
