"""Ordinary programs run, and give what plain CPython gives."""

from __future__ import annotations

import corpus
import harness
import plain
import pytest

from sandbox import values

LEGIT = harness.load("legit.jsonl")
MODELS = harness.load("models.jsonl")
COMPARABLE = [
    item
    for item in LEGIT
    if item["expect"]["status"] == "ok" and "return" in item["program"].splitlines()[-1]
]
"""Programs whose value a plain module can tell too: it has no value of the last statement."""


@pytest.mark.parametrize("item", LEGIT, ids=lambda item: item["id"])
def test_a_corpus_program_gives_its_expected_outcome(item):
    outcome = harness.run_program(item["program"])
    text = f"{outcome.error_type} {outcome.message} {outcome.hint}"
    ending = corpus.Ending(
        "ok" if outcome.status == "ok" else "error", outcome.result, outcome.logs, outcome.error_type, text
    )
    assert None is corpus.mismatch(item["expect"], ending)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("item", [*MODELS, *COMPARABLE], ids=lambda item: item["id"])
def test_a_program_gives_the_same_under_the_policy_and_in_plain_cpython(item):
    outcome = harness.run_program(item["program"])
    assert ("ok", "") == (outcome.status, outcome.message)
    result, logs = plain.run_plain(item["program"])
    assert values.encode(result) == values.encode(outcome.result)
    assert logs == outcome.logs


def test_there_are_enough_programs_of_the_kind_models_write():
    assert len({item["program"] for item in MODELS}) >= 60
