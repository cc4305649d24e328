"""Hints: what they look at, how far, and when there is none. What each slip gets is in the slip table."""

from __future__ import annotations

import builtins

import pytest

from sandbox.advice import Surroundings, advise, unknown_name
from sandbox.preflight.spaces import Space
from sandbox.values import freeze

FILE = "<program>"
TOOLS = Space(
    {"add": "add(*, a: int)", "exotic-name": "exotic-name()", "read_file": "read_file()"},
    {},
    positional={},
    eager=(),
    coroutines=(),
    noun="tool",
    label=lambda name: f"tools.{name}" if name.isidentifier() else f'tools["{name}"]',
    unknown=str,
)
AROUND = Surroundings(
    names={*dir(builtins), "tools", "ToolCallError"},
    spaces={"tools": TOOLS},
    modules={"json", "collections", "datetime"},
    absent={"os": "programs have no file system", "numpy": "no packages"},
    substitutes={"os": "use `await tools.read_file(...)`"},
)


def hint_of(source, **variables):
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is the subject
        exec(compile(source, FILE, "exec"), dict(variables))
    return advise(caught.value, source, FILE, AROUND)


seen: list[str] = []


class Sly(dict):
    """Notes every operation on it."""

    def __getitem__(self, key):
        seen.append("getitem")
        raise KeyError(key)

    def __iter__(self):
        seen.append("iter")
        return iter(())

    def __len__(self):
        seen.append("len")
        return 0

    def __contains__(self, key):
        seen.append("contains")
        return True


def test_objects_of_the_program_are_not_touched():
    seen.clear()
    assert None is hint_of("x['a']", x=Sly())
    assert None is hint_of("x['a']['b']", x={"a": Sly()})
    assert ["getitem", "getitem"] == seen


def test_an_exception_that_lies_about_itself_gives_no_hint_and_no_error():
    class LiarError(KeyError):
        @property
        def args(self):
            raise ValueError

    assert None is hint_of("raise LiarError('x')", LiarError=LiarError)
    assert None is hint_of("raise AttributeError('x')")
    assert None is hint_of("raise NameError('x')")
    assert None is hint_of("raise KeyError")


@pytest.mark.parametrize("count", [1, 19, 20, 21, 5000])
@pytest.mark.parametrize("length", [1, 100, 5000])
def test_a_hint_stays_short_however_large_the_value_is(count, length):
    value = {f"{'k' * length}{number}": number for number in range(count)}
    hint = hint_of("x['missing']", x=freeze(value))
    assert "its keys are" in hint or f"it has {count} keys" in hint
    assert len(hint) < 500


def test_the_place_is_found_in_a_line_with_more_than_one_candidate():
    assert "`y`" in hint_of("z = x['a'] + y['b']", x={"a": 1}, y={"c": 1})
    assert '`x["a"]`' in hint_of("z = [x['a'], x['a']['b'], y['b']]", x={"a": {"c": 1}}, y={})
    assert "`größe`" in hint_of("'日本', größe['b']", größe={"c": 1})


def test_without_a_place_or_a_known_value_there_is_no_hint():
    assert None is hint_of("f()['a']", f=dict)
    assert None is hint_of("(lambda: {}['a'])()")


@pytest.mark.parametrize(
    ("name", "bound", "part"),
    [
        ("null", (), "write None"),
        ("add", (), "`await tools.add(...)`"),
        ("exotic_name", (), '`await tools["exotic-name"](...)`'),
        ("readfile", (), "`await tools.read_file(...)`"),
        ("read_fil", (), "did you mean `await tools.read_file(...)`"),
        ("json", (), "add `import json`"),
        ("Counter", (), "add `from collections import Counter`"),
        ("os", (), "programs have no file system; use `await tools.read_file(...)`"),
        ("np", (), "no packages"),
        ("resluts", ("results",), "did you mean `results`"),
        ("pritn", (), "did you mean `print`"),
        ("call_tool", (), "await tools.NAME("),
        ("AddArgs", (), "plain dict"),
    ],
)
def test_an_unknown_name_is_taken_for_what_it_was_meant_to_be(name, bound, part):
    assert part in unknown_name(name, frozenset(bound), AROUND)


@pytest.mark.parametrize("name", ["main", "file", "rows", "dicts", "lists", "ids", "item", "x", "data", "df"])
def test_a_name_that_is_like_no_other_was_of_an_earlier_run(name):
    assert "earlier runs" in unknown_name(name, frozenset({"result", "total"}), AROUND)


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("{[1]: 2}", "a key must not change"),
        ("sum = 3\nsum([1])", "another value"),
        ("x = {}\nx['a'] = {}.fromkeys([[]])", "a key must not change"),
        ("for i in [1]:\n    rows[i + index]", "earlier runs"),
        ("[1, 2].sort(key='a')", "key=lambda item"),
        ("[1].index(2)", None),
        ("a, b = 1, 2, 3", None),
        ("{}['x']", None),
        ("'{name}'.format(x=1)", None),
        ("raise TypeError('unhashable type: this is mine')", None),
        ("raise TypeError('this value is read-only, says the program')", None),
        ("raise IndexError('pop from my own list')", None),
    ],
)
def test_one_rule_does_not_speak_for_another(source, part):
    hint = hint_of(source, rows=[1])
    if part is None:
        assert None is hint
    else:
        assert part in hint
