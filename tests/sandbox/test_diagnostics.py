"""What a failed program is told."""

from __future__ import annotations

import pytest

from sandbox.diagnostics import MAX_FRAMES, MAX_MESSAGE_CHARS, describe_exception
from sandbox.guards import build_globals
from sandbox.policy import compile_program
from sandbox.values import freeze


def failure_of(source, **bindings):
    compiled = compile_program(source, provided=frozenset(bindings))
    namespace = build_globals(bindings=bindings, stdout_write=lambda stream, text: None)
    exec(compiled.code, namespace)
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # whatever the program raises
        namespace[compiled.entry_name]().send(None)
    assert not isinstance(caught.value, StopIteration)
    return describe_exception(caught.value, source)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("r['itmes']", "did you mean 'items'? the keys are: 'items', 'nextPage'"),
        ("r['items'][0]['idd']", "did you mean 'id'? the keys are: 'id'"),
        ("r.items[0]", 'value["items"]'),
        ("r.nextPage", 'value["nextPage"]'),
        ("r['items'].id", 'value[0]["id"]'),
        ("r['items']['id']", "take one item by number"),
        ("None.x", "the value is None"),
        ("import json\njson.loads(r)", "decoded already"),
        ("import json\njson.dumps({1, 2})", "convert it first"),
        ("json.dumps(1)", "add: import json"),
        ("x = null", "write None"),
        ("x = true", "write True"),
        ("total = 1\nprint(totl)", "did you mean 'total'?"),
        ("def f():\n    print(y)\n    y = 1\nf()", "it is assigned later"),
        ("'abc'['x']", "the value is text"),
        ("list = [1]\nlist('a')", "hides the builtin"),
        ("{[]: 1}", "must be immutable"),
        ("def f(): return f()\nf()", "the recursion has no end"),
    ],
)
def test_typical_mistakes_get_a_hint(source, hint):
    assert hint in failure_of(source, r=freeze({"items": [{"id": 1}], "nextPage": None})).hint


def test_a_forgotten_await_is_named():
    async def call():
        return {}

    coroutine = call()
    assert "write await" in failure_of("pending['x']", pending=coroutine).hint
    coroutine.close()


def test_frozen_values_are_called_what_they_look_like():
    assert "'dict' object has no attribute 'x'" == failure_of("r.x", r=freeze({"a": 1})).message


def test_only_program_frames_are_shown_with_their_own_names():
    source = """\
class A:
    def m(self):
        return sorted([3, 1], key=self.k)
    def k(self, x):
        raise KeyError(x)
A().m()"""
    found = failure_of(source)
    assert [(6, "<module>"), (3, "A.m"), (5, "A.k")] == [frame[:2] for frame in found.frames]
    assert ("KeyError", 5, "raise KeyError(x)") == (found.error_type, found.line, found.frames[-1].text)


def test_a_guard_leaves_no_trace():
    found = failure_of("x = len._secret")
    assert ["<module>"] == [frame.function for frame in found.frames]
    assert ":" not in found.message.replace("here", "")


def test_a_text_that_cannot_be_computed_is_replaced():
    for body in ("raise ValueError('inner')", "raise SystemExit", "return 5", "return str(self)"):
        found = failure_of(f"class E(Exception):\n    def __str__(self):\n        {body}\nraise E()")
        assert "E" == found.error_type
        assert found.message.startswith("<its text could not be computed")


def test_text_names_and_tracebacks_are_bounded():
    assert MAX_MESSAGE_CHARS + 100 > len(failure_of("raise ValueError('x' * 10_000_000)").message)
    assert 200 == len(failure_of("class E(Exception): pass\nE.__name__ = 'E' * 100_000\nraise E").error_type)
    assert MAX_FRAMES == len(failure_of("def f(): return f()\nf()").frames)


def test_looking_for_a_hint_runs_no_program_code():
    source = """\
class D(dict):
    def __iter__(self): raise SystemExit('ran')
    def keys(self): raise SystemExit('ran')
d = D()
d['x']"""
    found = failure_of(source)
    assert ("KeyError", None) == (found.error_type, found.hint)
