"""Attempts to break out, written for this project against the documented language, with the kernel wall down.

One file was written with the sources at hand, one by an attacker who saw the language from inside only.
Each attempt returns "ESCAPED" if it got hold of something it must not have. What an attempt found when it was
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
    if failure is not None and failure.kind not in ("policy", "exception", "invalid-output"):
        found.append(f"ended {failure.kind}: {failure.message}")
    return found


@pytest.mark.parametrize(("name", "at_least"), [("breakouts.jsonl", 400), ("breakouts-outsider.jsonl", 188)])
async def test_no_attempt_gets_out(name, at_least):
    items = harness.load(name)
    async with open_test_sandbox(real.SETTINGS, kernel_wall=False) as sandbox:
        faults = await real.run_each(sandbox, items, judge, hasty=lambda _: False)
    assert {} == faults
    assert len(items) >= at_least
    assert len(items) == len({item["program"] for item in items})
