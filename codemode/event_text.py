"""Words for what events hold: arguments, content, times, sizes.

Knows: how one thing reads. Does not know: where it is shown.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final, Literal

from sandbox.values import JsonValue, decode, encode
from tool_bindings.annotated import EVENT_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterable


OUTCOME_UNKNOWN: Final = "TOOL_OUTCOME_UNKNOWN"
"""Code of a call that may still take effect: its thread was abandoned, or its server lost."""


def text_of(blocks: Iterable[dict[str, Any]]) -> str:
    """Return the text of content blocks; what is no text is named."""
    parts = [
        block["text"] if isinstance(block.get("text"), str) else f"[{block['type']}]" for block in blocks
    ]
    return "\n".join(parts)


def error_code(data: dict[str, Any]) -> str | None:
    """Return the code a call failed with, from the data of its end, if it is recorded."""
    annotation = data.get(EVENT_FIELD)
    error = annotation.get("error") if isinstance(annotation, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


def ending_of(data: dict[str, Any]) -> Literal["succeeded", "failed", "unknown"]:
    """Return how a nested call ended, from the data of its end, as its run's receipt says."""
    if not data["isError"]:
        return "succeeded"
    return "unknown" if error_code(data) == OUTCOME_UNKNOWN else "failed"


def call_summary(name: str, raw: str) -> str:
    """Return what tells one call from another; a program is summed up, since its text fills pages."""
    try:
        arguments: Any = decode(raw)
    except ValueError:
        return raw
    if name == "run_code" and isinstance(arguments, dict) and isinstance(arguments.get("code"), str):
        lines = len(arguments["code"].splitlines())
        described = arguments.get("description")
        return f"{described if isinstance(described, str) else ''} ({plural(lines, 'line')})".strip()
    return raw


def arguments_preview(arguments: JsonValue) -> str:
    """Return arguments as a Python call would show them."""
    if isinstance(arguments, dict):
        return ", ".join(f"{name}={_json_preview(value)}" for name, value in arguments.items())
    return _json_preview(arguments)


def _json_preview(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        # Too deep, or an integer longer than the interpreter writes: the codec knows how.
        return encode(value).decode("ascii")


def moment(milliseconds: int, *, day: bool = False) -> str:
    """Return a time of day, or day and time to the second."""
    try:
        moment = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC" if day else "%H:%M:%S") + (
        "" if day else f".{milliseconds % 1000:03d}"
    )


def duration(milliseconds: int) -> str:
    """Return how long something took."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def size(count: int) -> str:
    """Return a number of bytes."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


def plural(count: int, noun: str) -> str:
    """Return a count and its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
