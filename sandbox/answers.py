"""What a worker is answered to its calls, and what calls may ask.

Knows: messages, limits. Does not know: what answers a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sandbox import packed, values, wire
from sandbox.errors import WireProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox.limits import Limits
    from sandbox.values import JsonValue
    from sandbox.vocabulary import HostCall

_CONTAINERS: Final = frozenset({values.FrozenDict, values.FrozenList})
_RESULT: Final = b'["%b",%%d,%%b]' % wire.RESULT.encode()


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


def require_bounded_arguments(messages: list[Any], limits: Limits) -> None:
    """Check the arguments of calls in a long frame; our worker refuses longer ones by itself.

    Raises:
        WireProtocolError: They are over the bound.
    """
    for message in messages:
        if type(message) is list and message[:1] == [wire.CALL]:
            call = wire.parse_message(message)
            assert isinstance(call, wire.Call)
            size = len(values.encode(call.arguments))
            if size > limits.max_call_bytes:
                raise WireProtocolError(f"a worker sent arguments of {size} bytes")
