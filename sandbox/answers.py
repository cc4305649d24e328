"""What a worker is answered to its calls, and what calls may ask.

Knows: messages, limits. Does not know: what answers a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sandbox import values, wire
from sandbox.errors import WireProtocolError

if TYPE_CHECKING:
    from sandbox.limits import Limits
    from sandbox.values import JsonValue

_RESULT: Final = b'["%b",%%d,%%b]' % wire.RESULT.encode()


def result_message(call: wire.Call, value: JsonValue, limits: Limits) -> bytes:
    """Return the message with a call's result, or that it is too large."""
    encoded = values.encode(value)
    if len(encoded) > limits.max_call_bytes:
        return error_message(
            call.id,
            f"the result of {call.member} has {len(encoded)} bytes of JSON; the limit is"
            f" max_call_bytes={limits.max_call_bytes}: ask for less at a time",
        )
    return _RESULT % (call.id, encoded)


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
