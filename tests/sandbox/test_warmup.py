"""The runs before the first run: they go the way a program goes, and leave nothing of themselves."""

from __future__ import annotations

import asyncio

import pytest

from sandbox import values
from sandbox.facades import seals
from sandbox.limits import Limits
from sandbox.run_message import Offer, run_message
from sandbox.vocabulary import Namespace, Program
from sandbox.worker import plain, restricted, warmup
from sandbox.worker.program import Stage


@pytest.fixture(autouse=True)
def nothing_is_sealed(monkeypatch):
    """Sealing changes the standard library of its process, which here runs other tests as well."""
    monkeypatch.setattr(seals, "seal", lambda: None)


LANGUAGES = pytest.mark.parametrize("language", [restricted, plain], ids=["restricted", "plain"])


@LANGUAGES
@pytest.mark.parametrize("source", [warmup._RICH, warmup._SHORT], ids=["rich", "short"])
def test_the_samples_end_well_in_both_languages(language, source):
    # It asserts so itself: a sample that the language refuses would warm up nothing.
    warmup._run(source, language)


@LANGUAGES
def test_no_loop_is_left_running(language):
    warmup.touch_pages(language)
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


def test_a_sample_that_fails_is_a_mistake_of_ours_and_not_a_cold_worker():
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        warmup._run("1 / 0", restricted)


def test_what_is_offered_and_asked_has_the_form_of_the_real_messages(monkeypatch):
    said = []

    class Noting(Stage):
        def __init__(self, channel, offer, language):
            said.append(offer)
            super().__init__(channel, offer, language)

        def run(self, request):
            said.append(request)
            return super().run(request)

    monkeypatch.setattr(warmup, "Stage", Noting)
    warmup.touch_pages(restricted)

    async def never(call):
        raise AssertionError

    program = Program("1", (Namespace("host", {}, never),))
    offer = values.decode(Offer(program).message)[1]
    assert [offer.keys(), values.decode(run_message(program, Limits()))[1].keys()] == [
        body.keys() for body in said
    ]
    assert offer["namespaces"][0].keys() == said[0]["namespaces"][0].keys()


@LANGUAGES
@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "not told yet"])
def test_a_rehearsal_leaves_nothing_a_program_could_meet(language, is_prepared):
    offer = {"namespaces": [], "hints": {}}
    stage = Stage(warmup._Mirror(), offer, language) if is_prepared else None
    before = dict(stage._globals) if stage else {}
    warmup.rehearse(language, stage, lambda: False)
    assert before == (stage._globals if stage else {})


@pytest.mark.parametrize("steps", range(4))
def test_a_rehearsal_ends_where_the_program_comes(steps, monkeypatch):
    seen = []

    class Noting(Stage):
        def foresee(self, source):
            seen.append("foresee")

    def compile_program(source, provided):
        seen.append("compile")

    monkeypatch.setattr(plain, "compile_program", compile_program)
    stage = Noting(warmup._Mirror(), {"namespaces": [], "hints": {}}, plain)
    asked = iter([False] * steps + [True])
    warmup.rehearse(plain, stage, lambda: next(asked, True))
    assert ["compile", "foresee"][: max(steps - 1, 0)] == seen
