"""Attempts to break out, written for this project against the documented language, with the kernel wall down.

Each returns "ESCAPED" if it got hold of something it must not have. What an attempt found when it was
written is fixed as a kind, in the policy or the guards; the attempt stays.
"""

from __future__ import annotations

import harness
import pytest
import real

from sandbox.testing import open_test_sandbox

pytestmark = pytest.mark.needs_linux


def judge(item, outcomes):
    del item
    found = real.violations({"returns_contains": "ESCAPED", "logs_contains": "ESCAPED"}, outcomes[0])
    failure = outcomes[0].failure
    if failure is not None and failure.kind not in ("policy", "exception"):
        found.append(f"ended {failure.kind}: {failure.message}")
    return found


async def test_no_attempt_gets_out():
    items = harness.load("breakouts.jsonl")
    async with open_test_sandbox(real.SETTINGS, kernel_wall=False) as sandbox:
        faults = await real.run_each(sandbox, items, judge)
    assert {} == faults
    assert len(items) >= 100
    assert len(items) == len({item["program"] for item in items})
