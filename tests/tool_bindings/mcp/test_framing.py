"""JSON-RPC as lines: bounded, exact, and never silent about an answer that cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from tool_bindings.mcp.framing import (
    LineSplitter,
    LineTooLongError,
    MalformedLineError,
    message_from_line,
    message_line,
)


@settings(deadline=None)  # Other work on the machine is no failure.
@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_are_the_same_however_they_arrive(lines, data):
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found.extend(splitter.feed(stream[:size]))
        stream = stream[size:]
    assert lines == found


def test_a_line_beyond_the_bound_is_skipped_once_and_the_next_one_read():
    splitter = LineSplitter(max_bytes=10)
    found = [item for _ in range(50) for item in splitter.feed(b"xxxx")]
    found.extend(splitter.feed(b"\nok\n" + b"y" * 20 + b"\nfine\n"))
    assert [LineTooLongError, bytes, LineTooLongError, bytes] == [type(item) for item in found]
    assert [b"ok", b"fine"] == [item for item in found if isinstance(item, bytes)]


def test_a_message_survives_with_surrogates_and_large_integers():
    params = {"a": "\ud800\u20ac", "n": 10**40, "z": -0.0}
    line = message_line(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params=params)))
    assert line.isascii()
    assert params == message_from_line(line).message.params


@pytest.mark.parametrize(
    ("line", "code", "request_id", "answers"),
    [
        (b"Starting up", -32700, None, False),
        (b"\xff", -32700, None, False),
        (b"[1]", -32600, None, False),
        (b'{"jsonrpc": "1.0", "id": 3, "method": "x"}', -32600, 3, False),
        (b'{"jsonrpc": "2.0", "id": 4}', -32600, 4, True),
        (b'{"id": true}', -32600, None, True),
    ],
)
def test_what_is_no_message_says_what_it_was_meant_for(line, code, request_id, answers):
    with pytest.raises(MalformedLineError) as caught:
        message_from_line(line)
    error = caught.value
    assert (code, request_id, answers) == (error.code, error.request_id, error.answers)
    assert (code, request_id) == (error.as_error().message.error.code, error.as_error().message.id)


def test_an_answer_with_a_number_json_does_not_have_still_ends_its_request():
    with pytest.raises(MalformedLineError) as caught:
        message_from_line(b'{"jsonrpc":"2.0","id":7,"result":{"n":NaN}}')
    assert (7, True) == (caught.value.request_id, caught.value.answers)
