"""What a worker is answered to its calls, and what calls may ask.

Knows: messages, limits. Does not know: what answers a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sandbox import packed, values, wire
from sandbox.errors import WireProtocolError
from sandbox.vocabulary import HostFunctionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.limits import Limits
    from sandbox.values import JsonValue
    from sandbox.vocabulary import Answer, HostCall

_CONTAINERS: Final = frozenset({values.FrozenDict, values.FrozenList})
_NOT_IN_A_ROW: Final = _CONTAINERS | {HostFunctionError}
_CALL_STARTS: Final = ([wire.CALL], [wire.BATCH])
_RESULT: Final = b'["%b",%%d,%%b]' % wire.RESULT.encode()
_RESULTS: Final = b'["%b",%%d,%%b]' % wire.RESULTS.encode()


def result_message(call: HostCall, value: JsonValue, limits: Limits) -> bytes | Iterator[bytes]:
    """Return the message with a call's result, or that it is too large.

    Args:
        call: The call.
        value: Its result, deep-frozen.
        limits: The run's.

    Returns:
        The message, or frames that take its place: what is worth it goes in parts.
    """
    if type(value) in _CONTAINERS and (parts := packed.pack(wire.RESULT, call.id, value)) is not None:
        return _bounded(parts, call, value, limits)
    encoded = values.encode(value)
    return _refusal(call, len(encoded), limits) or _RESULT % (call.id, encoded)


def messages_together(
    answers: list[tuple[HostCall, Answer]], limits: Limits
) -> Iterator[bytes | Iterator[bytes]]:
    """Give the messages that answer calls of a batch: in one what fits into one.

    Args:
        answers: The calls, by growing numbers, and what each is answered.
        limits: The run's.

    Yields:
        Messages, and frames in the place of one, as `result_message` returns them.
    """
    if len(answers) > 1 and answers[-1][0].id - answers[0][0].id == len(answers) - 1:
        results: list[Any] = [answer for _, answer in answers]
        # Containers may be worth packing, and an error says which call it is of.
        if _NOT_IN_A_ROW.isdisjoint(map(type, results)):
            encoded = values.encode(results)
            # Longer, and it is not clear which of them is too long.
            if len(encoded) <= limits.max_call_bytes:
                yield _RESULTS % (answers[0][0].id, encoded)
                return
    for call, answer in answers:
        if isinstance(answer, HostFunctionError):
            yield error_message(call.id, str(answer))
        else:
            yield result_message(call, answer, limits)


def _bounded(
    parts: Iterator[packed.Part], call: HostCall, value: JsonValue, limits: Limits
) -> Iterator[bytes]:
    most_json_bytes = 0
    is_measured = False
    for part in parts:
        most_json_bytes += part.most_json_bytes
        if most_json_bytes > limits.max_call_bytes and not is_measured:
            # The limit counts JSON text. Only when that may be too long, it is written to see how long.
            if (refusal := _refusal(call, len(values.encode(value)), limits)) is not None:
                yield wire.pack([refusal])
                return
            is_measured = True
        yield part.frame


def _refusal(call: HostCall, size: int, limits: Limits) -> bytes | None:
    """Return what is said in place of a result of so many bytes of JSON, None when it may be sent."""
    if size <= limits.max_call_bytes:
        return None
    return error_message(
        call.id,
        f"the result of {call.member} has {size} bytes of JSON; the limit is"
        f" max_call_bytes={limits.max_call_bytes}: ask for less at a time",
    )


def error_message(call_id: int, message: str) -> bytes:
    """Return the message that a call failed."""
    return values.encode([wire.ERROR, call_id, message])


def too_many_pending_message(call: wire.Call, limits: Limits) -> bytes:
    """Return the message that refuses one more call at the same time."""
    return error_message(
        call.id,
        f"{limits.max_pending_calls} calls are waiting for their results already;"
        " the limit is max_pending_calls: await some before making more",
    )


def makes_calls(messages: list[Any]) -> bool:
    """Return whether one of a frame's messages, which need not have been checked, is a call or a batch."""
    return any(type(message) is list and message[:1] in _CALL_STARTS for message in messages)


def decoded_frame(payload: bytes, limits: Limits) -> list[Any]:
    """Return the messages of a frame as plain JSON values, of calls with bounded arguments.

    Raises:
        WireProtocolError: It is no list of messages, or the arguments of a call are over the bound.
    """
    messages = wire.decode_payload(payload)
    if len(payload) > limits.max_call_bytes:
        _require_bounded_arguments(messages, limits)
    return messages


def _require_bounded_arguments(messages: list[Any], limits: Limits) -> None:
    # Our worker refuses longer ones by itself.
    for message in messages:
        if not makes_calls([message]):
            continue
        parsed = wire.parse_message(message)
        for call in parsed.calls if isinstance(parsed, wire.Batch) else (parsed,):
            assert isinstance(call, wire.Call)
            size = len(values.encode(call.arguments))
            if size > limits.max_call_bytes:
                raise WireProtocolError(f"a worker sent arguments of {size} bytes")
