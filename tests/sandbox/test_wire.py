"""The supervisor's end of the wire, fed by a hostile peer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import values, wire
from sandbox.errors import WireProtocolError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def payload_of(framed: bytes) -> bytes | None:
    buffer = wire.FrameBuffer(1 << 20)
    buffer.feed(framed)
    return buffer.next_payload()


@given(st.lists(JSON, max_size=5))
def test_packed_messages_come_out_as_they_went_in(messages):
    framed = wire.pack([values.encode(message) for message in messages])
    payload = payload_of(framed)
    assert payload is not None
    assert messages == wire.decode_payload(payload)


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 7))
def test_frames_survive_any_split_of_the_stream(payloads, step):
    stream = b"".join(len(payload).to_bytes(4, "little") + payload for payload in payloads)
    buffer = wire.FrameBuffer(64)
    received = []
    for start in range(0, len(stream), step):
        buffer.feed(stream[start : start + step])
        while (payload := buffer.next_payload()) is not None:
            received.append(payload)
    assert payloads == received


@given(st.binary(max_size=200))
def test_decoding_junk_raises_nothing_but_a_protocol_error(junk):
    try:
        messages = wire.decode_payload(junk)
        for message in messages:
            wire.parse_message(message)
    except WireProtocolError:
        pass


@given(JSON)
def test_parsing_any_json_raises_nothing_but_a_protocol_error(value):
    try:
        wire.parse_message(value)
    except WireProtocolError:
        pass


@given(
    st.sampled_from([wire.READY, wire.CALL, wire.CANCEL, wire.LOG, wire.DONE]),
    st.lists(JSON, max_size=6),
)
def test_parsing_a_known_name_with_any_rest_raises_nothing_but_a_protocol_error(name, rest):
    try:
        wire.parse_message([name, *rest])
    except WireProtocolError:
        pass


def test_an_announced_frame_above_the_bound_is_refused_before_its_bytes_arrive():
    buffer = wire.FrameBuffer(100)
    buffer.feed((101).to_bytes(4, "little"))
    with pytest.raises(WireProtocolError, match="101 bytes"):
        buffer.next_payload()


@pytest.mark.parametrize(
    "message",
    [
        [],
        "log",
        ["unknown", 1],
        ["log"],
        ["log", 3],
        ["call", 1, "tools", "add", {}],
        ["call", 0, "tools", "add", {}, None],
        ["call", -1, "tools", "add", {}, None],
        ["call", True, "tools", "add", {}, None],
        ["call", 1.0, "tools", "add", {}, None],
        ["call", 2**53 + 1, "tools", "add", {}, None],
        ["call", 1, 5, "add", {}, None],
        ["call", 1, "tools", "add", {}, -4],
        ["call", 1, "tools", "add", {}, "7"],
        ["cancel", "1"],
        ["done", None],
        ["done", {"failure": {"kind": "timeout", "message": "forged"}}],
        ["done", {"failure": {"kind": "abort", "message": "forged"}}],
        ["done", {"failure": {"kind": "exception", "message": 7}}],
        ["done", {"failure": {"kind": "exception", "message": "x", "traceback": [[1, "f"]]}}],
        ["done", {"failure": {"kind": "exception", "message": "x", "traceback": [[None, "f", "t"]]}}],
        ["ready", [["seccomp", 1, ""]]],
    ],
)
def test_a_message_without_its_form_is_refused(message):
    with pytest.raises(WireProtocolError):
        wire.parse_message(message)


def test_a_worker_cannot_claim_both_a_value_and_a_failure():
    done = wire.parse_message(["done", {"value": 1, "failure": {"kind": "exception", "message": "x"}}])
    assert isinstance(done, wire.Done)
    assert (False, "x") == (done.has_value, done.failure and done.failure.message)


def test_names_and_texts_of_a_failure_are_cut():
    body = {"kind": "exception", "message": "m", "errorType": "E" * 9999, "hint": "h" * 999_999}
    done = wire.parse_message(["done", {"failure": body}])
    assert isinstance(done, wire.Done)
    assert done.failure is not None
    assert (512, 64 * 1024) == (len(done.failure.error_type), len(done.failure.hint))


@pytest.mark.parametrize(
    "text", ["NaN", "[NaN]", '[["log", Infinity]]', "[1] x", "{}", '"text"', "[", "\xff"]
)
def test_a_frame_that_is_not_a_json_list_is_refused(text):
    with pytest.raises(WireProtocolError):
        wire.decode_payload(text.encode("latin-1"))


def test_a_deeply_nested_frame_does_not_overflow_the_host():
    depth = 200_000
    messages = wire.decode_payload(b"[" + b"[" * depth + b"]" * depth + b"]")
    with pytest.raises(WireProtocolError):
        wire.parse_message(messages[0])


def test_messages_are_plain_json_to_anyone_who_reads_the_wire():
    assert [["log", "é"]] == json.loads(wire.pack([values.encode(["log", "é"])])[4:])


# ---- frames that make no calls

LOG_FRAME = wire.pack([b'["log","a"]', b'["log","b"]'])
DONE_FRAME = wire.pack([b'["done",{"value":1}]'])
CALL_FRAME = wire.pack([b'["call",1,"tools","t",{},null]'])


def plain(data, most_bytes=1000):
    """Return the plain messages in front, and the payloads that are left for others."""
    buffer = wire.FrameBuffer(10_000)
    buffer.feed(data)
    messages = list(buffer.plain_messages(most_bytes))
    left = []
    while (payload := buffer.next_payload()) is not None:
        left.append(payload)
    return messages, left, len(buffer)


def test_plain_messages_of_several_frames_are_taken_at_once():
    messages, left, rest = plain(LOG_FRAME + DONE_FRAME)
    assert [wire.Log("a"), wire.Log("b"), wire.Done(True, 1, None, None)] == messages
    assert ([], 0) == (left, rest)


def test_a_frame_that_is_not_plain_stays_with_all_that_follow():
    messages, left, rest = plain(LOG_FRAME + CALL_FRAME + DONE_FRAME)
    assert [wire.Log("a"), wire.Log("b")] == messages
    assert ([CALL_FRAME[4:], DONE_FRAME[4:]], 0) == (left, rest)


@pytest.mark.parametrize("cut", [1, 4, 5, 20])
def test_a_part_of_a_frame_stays(cut):
    messages, left, rest = plain(LOG_FRAME + DONE_FRAME[:cut])
    assert (2, [], cut) == (len(messages), left, rest)


def test_a_long_frame_stays():
    assert ([], [LOG_FRAME[4:]], 0) == plain(LOG_FRAME, most_bytes=10)


@pytest.mark.parametrize("payload", [b"{}", b"[", b'[["log"]]', b'[["nothing"]]', b'["log"]'])
def test_what_no_worker_sends_stays_to_be_refused(payload):
    frame = len(payload).to_bytes(4, "little") + payload
    assert ([], [payload], 0) == plain(frame)


def test_a_frame_announced_as_too_long_stays_to_be_refused():
    buffer = wire.FrameBuffer(10)
    buffer.feed((11).to_bytes(4, "little"))
    assert [] == list(buffer.plain_messages(1000))
    with pytest.raises(WireProtocolError):
        buffer.next_payload()


def call(number, **wrong):
    return ["call", number, "tools", "add", {}, wrong.get("line")]


def test_calls_that_came_together_are_a_batch_whatever_the_worker_says_of_them():
    (batch,) = wire.parse_messages([call(1), call(2), call(5)])
    assert [1, 2, 5] == [each.id for each in batch.calls]
    assert [wire.Call] == [type(each) for each in wire.parse_messages([call(1)])]
    mixed = [call(1), call(2), ["cancel", 1]]
    assert [wire.Call, wire.Call, wire.Cancel] == [type(each) for each in wire.parse_messages(mixed)]


def test_a_batch_is_never_longer_than_a_worker_of_ours_makes_one():
    numbers = range(1, 3 * wire.MAX_BATCH_CALLS)
    batches = list(wire.parse_messages([call(number) for number in numbers]))
    assert [*numbers] == [each.id for batch in batches for each in batch.calls]
    assert {len(batch.calls) for batch in batches} <= {wire.MAX_BATCH_CALLS, wire.MAX_BATCH_CALLS - 1}


def test_messages_are_looked_at_no_earlier_than_they_are_asked_for():
    many = [call(number) for number in range(1, 2 * wire.MAX_BATCH_CALLS)]
    messages = wire.parse_messages([*many, "no message"])
    assert wire.MAX_BATCH_CALLS == len(next(messages).calls)
    with pytest.raises(WireProtocolError):
        list(messages)


@pytest.mark.parametrize("broken", [call(0), call(2, line=0), call(2)[:5], ["call"], [], None, "call"])
def test_a_broken_call_among_others_is_refused(broken):
    with pytest.raises(WireProtocolError):
        list(wire.parse_messages([call(1), broken]))
