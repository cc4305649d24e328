"""Lines of a batch, cut out of a stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codemode.batch import BatchResult, ToolCall
from codemode.cli.batch_lines import MAX_ID_CHARS, LineSplitter, parse_line


def split(chunks, max_bytes=10):
    splitter = LineSplitter(max_bytes)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, *splitter.finish()]


@given(st.lists(st.binary(max_size=8)), st.integers(min_value=1, max_value=5))
def test_lines_are_the_same_however_the_stream_is_cut(pieces, size):
    data = b"\n".join(pieces)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    expected = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    if expected[-1] == b"" and not data.endswith(b"\r"):
        expected.pop()
    assert list(enumerate(expected, 1)) == split(chunks)


def test_a_line_at_the_bound_is_given_and_one_above_it_is_only_counted():
    assert [(1, b"x" * 10), (2, b"y" * 10), (3, None), (4, b"z")] == split(
        [b"x" * 10 + b"\n", b"y" * 10 + b"\r\n" + b"w" * 11 + b"\nz"]
    )


def test_no_more_of_a_line_is_held_than_the_bound():
    splitter = LineSplitter(10)
    for _ in range(1000):
        assert [] == list(splitter.feed(b"x" * 7))
        assert len(splitter._held) <= 11
    assert [(1, None)] == list(splitter.finish())


def parse(text):
    return parse_line(2, text.encode(), {"add"}, ["add"])


def test_a_call_has_the_callers_id_or_a_made_up_one():
    entry = parse('{"tool": "add", "arguments": {"a": 1}, "id": "x"}')
    assert ToolCall("add", {"a": 1}, "x") == entry.call("batch:2")
    assert ToolCall("add", {}, "batch:2") == parse('{"tool": "add", "arguments": {}}').call("batch:2")
    assert ToolCall("add", {}, "batch:2") == parse('{"tool": "add", "arguments": {}, "id": null}').call(
        "batch:2"
    )


def test_a_bad_line_keeps_what_could_be_read_of_it():
    record = parse('{"tool": "dad", "arguments": {"a": 1}, "id": "x"}').call("batch:2")
    assert isinstance(record, BatchResult)
    assert {"id": "x", "tool": "dad", "arguments": {"a": 1}, "status": "not_started"}.items() <= (
        record.to_json().items()
    )


def test_an_id_has_a_bound():
    assert parse('{"tool": "add", "arguments": {}, "id": "%s"}' % ("x" * MAX_ID_CHARS)).problem is None
    for bad in (f'"{"x" * (MAX_ID_CHARS + 1)}"', '""', "1.5", "false", "[]", "9" * (MAX_ID_CHARS + 1)):
        entry = parse(f'{{"tool": "add", "arguments": {{}}, "id": {bad}}}')
        assert '"id" must be text of 1 to 1000 characters, or a whole number' == entry.problem


def test_keys_may_stand_twice_in_different_objects():
    assert parse('{"tool": "add", "arguments": {"a": {"a": 1}, "b": {"a": 1}}}').problem is None
    assert "'a' stands twice" in parse('{"tool": "add", "arguments": {"b": [{"a": 1, "a": 1}]}}').problem


def test_integers_of_any_size_are_taken():
    entry = parse('{"tool": "add", "arguments": {"a": %s}}' % ("9" * 5000))
    assert entry.problem is None
    assert entry.arguments["a"] > 10**4999
