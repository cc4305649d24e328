"""Keys that stand twice in JSON text."""

from __future__ import annotations

import pytest

from tool_bindings.repeated_keys import repeated_key, repeated_key_problem


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("a", '{"a": 1, "a": 1}'),
        ("b", '{"a": [{"b": 1, "c": {}, "b": {}}]}'),
        ("a", '{"a": 1, "\\u0061": 2}'),
        ("", '{"": 1, "": 2}'),
        (None, '{"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}'),
        (None, '"a"'),
        (None, '{"n": ' + "1" * 10_000 + "}"),
        (None, '{"a": ' * 100_000 + "1" + "}" * 100_000),
    ],
)
def test_the_first_key_that_an_object_has_twice_is_found(expected, text):
    assert expected == repeated_key(text)


def test_the_problem_names_the_key():
    expected = "the key 'a' stands twice in one object, so it is not clear which one is meant"
    assert expected == repeated_key_problem('{"a": 1, "a": 2}')
    assert None is repeated_key_problem("{}")
