"""What a failed program is told."""

from __future__ import annotations

import pytest

from sandbox.diagnostics import MAX_FRAMES, MAX_LINE_CHARS, MAX_MESSAGE_CHARS, describe_exception, place_in
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


def test_frozen_values_are_called_what_they_look_like():
    assert "'dict' object has no attribute 'x'" == failure_of("r.x", r=freeze({"a": 1})).message


def test_a_class_name_with_control_characters_stays_on_one_line():
    source = "class E(Exception):\n    pass\nE.__name__ = 'E\\nx\\x1b'\nraise E()"
    assert "E?x?" == failure_of(source).error_type


def test_lines_are_counted_as_python_counts_them():
    found = failure_of("x = '\x0c\u2028'\nraise ValueError(x)")
    assert [(2, "<module>", "raise ValueError(x)")] == list(found.frames)


NESTED = """\
class A:
    x = 1
    def m(self, a=(
        2
    )):
        def inner():
            return 3
        return inner
if True:
    async def f():
        return 4
"""


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("A", 2),
        ("A", 4),
        ("A.m.<locals>.inner", 7),
        ("A.m", 8),
        ("<module>", 9),
        ("<module>", 10),
        ("f", 11),
        ("<module>", 99),
    ],
)
def test_a_line_is_placed_in_the_function_that_would_execute_it(function, line):
    text = (NESTED.splitlines()[line - 1 : line] or [""])[0].strip()
    assert (line, function, text) == place_in(NESTED, line)


def test_a_text_that_is_not_python_has_lines_but_no_functions():
    assert (2, "<module>", "return (") == place_in("def f():\n    return (", 2)
    assert MAX_LINE_CHARS == len(place_in("(" * 10_000, 1).text)


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
