"""Every hostile program of the corpus, with the language wall alone, the kernel wall alone, and both.

Judged as the design says: with the language wall, no `must_not` holds and every outcome is an accepted one.
With the kernel wall alone the language-level outcomes are not judged: the host survives, the next run
works, and nothing of the host was read.
"""

from __future__ import annotations

import harness
import pytest
import real

from sandbox import values
from sandbox.testing import open_test_sandbox
from sandbox.vocabulary import ABSENT

pytestmark = pytest.mark.needs_linux
CANARY = "canary-of-the-host-7c1d"


def judge_language(item, outcomes):
    found = [problem for outcome in outcomes for problem in real.violations(item["must_not"], outcome)]
    if not real.accepted(item, outcomes[0]):
        found.append(
            f"ended {real.category(outcomes[0])}, which is not in {item['accept']}: {outcomes[0].failure}"
        )
    return found


def judge_kernel(item, outcomes):
    found = []
    for outcome in outcomes:
        value = b"" if outcome.value is ABSENT else values.encode(outcome.value)
        text = f"{value!r} {outcome.logs!r} {outcome.failure!r}"
        if CANARY in text or "root:x:" in text:
            found.append(f"read the host: {text[:200]}")
        if "/etc/passwd" in (item["program"] or "") and b"ESCAPED" in value:
            found.append("read a file of the host")
    return found


@pytest.mark.parametrize(
    ("language", "kernel", "judge"),
    [(True, False, judge_language), (False, True, judge_kernel), (True, True, judge_language)],
    ids=["language wall only", "kernel wall only", "both walls"],
)
async def test_no_hostile_program_gets_out(language, kernel, judge, monkeypatch):
    monkeypatch.setenv("SANDBOX_CANARY", CANARY)
    items = harness.load("hostile.jsonl")
    async with open_test_sandbox(real.SETTINGS, language_wall=language, kernel_wall=kernel) as sandbox:
        # In plain CPython anything may run on; how it ends is not judged there.
        faults = await real.run_each(sandbox, items, judge, hasty=real.may_be_late if language else bool)
    assert {} == faults
    assert len(items) >= 299
