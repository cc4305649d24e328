"""Every legitimate program of the corpus gives what the corpus says, through the public API."""

from __future__ import annotations

import corpus
import trio

from codemode import open_service


async def test_every_legitimate_program_gives_its_expected_outcome():
    items = corpus.load("legit.jsonl")
    faults: dict[str, str] = {}
    async with open_service(corpus.fixture_registry()) as service, trio.open_nursery() as nursery:
        at_once = trio.CapacityLimiter(4)

        async def run(item):
            async with at_once:
                outcome = await service.run_code(item["program"])
            fault = corpus.mismatch(item["expect"], corpus.ending_of(outcome))
            if fault is not None:
                faults[item["id"]] = fault

        for item in items:
            nursery.start_soon(run, item)
    assert {} == faults
    assert len(items) >= 125
