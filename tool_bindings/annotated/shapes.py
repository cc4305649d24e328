"""The parts of an envelope and what each must look like.

Knows: strings, numbers and objects with required and optional members, composed into the shapes of
content blocks, correlation, data schema and error.
Does not know: the order in which an envelope is checked, or the rules that tie its members to each
other (`envelope`).

A shape is a function from a frozen JSON value and its pointer to the first problem, or None. Shapes
go down a fixed number of levels, so no value is too deep for them. Members a shape does not list are
never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["BLOCK", "BOOLEAN", "CORRELATION", "DATA_SCHEMA", "ERROR", "LIST", "OBJECT", "STRING", "Problem"]


class Problem(NamedTuple):
    """The first thing that is wrong."""

    pointer: str
    """Where; for a missing member, where it would be."""
    reason: str
    """What is there and what must be."""
    missing: bool = False


Shape: TypeAlias = Callable[[Any, str], Problem | None]


def _plain(accepts: Callable[[Any], bool], expected: str) -> Shape:
    def check(value: Any, at: str) -> Problem | None:
        return None if accepts(value) else Problem(at, f"must be {expected}, not {_kind(value)}")

    return check


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    if isinstance(value, (int, float)):
        return "a number"
    return "an object" if isinstance(value, dict) else "an array"


def _is_number(value: Any) -> bool:
    # A bool is an int to Python, and no number to JSON.
    return isinstance(value, (int, float)) and not isinstance(value, bool)


STRING: Final = _plain(lambda value: isinstance(value, str), "a string")
BOOLEAN: Final = _plain(lambda value: isinstance(value, bool), "true or false")
OBJECT: Final = _plain(lambda value: isinstance(value, dict), "an object")
LIST: Final = _plain(lambda value: isinstance(value, list), "an array")
_NON_EMPTY: Final = _plain(lambda value: isinstance(value, str) and value != "", "a non-empty string")
_FRACTION: Final = _plain(lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1")
_BYTES: Final = _plain(lambda value: _is_number(value) and value >= 0, "a number of bytes, 0 or more")


def _each(item: Shape) -> Shape:
    def check(value: Any, at: str) -> Problem | None:
        problem = LIST(value, at)
        if problem is not None:
            return problem
        problems = (item(child, f"{at}/{index}") for index, child in enumerate(value))
        return next(filter(None, problems), None)

    return check


def _members(required: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Shape:
    shapes = {**required, **optional}

    def check(value: Any, at: str) -> Problem | None:
        problem = OBJECT(value, at)
        if problem is not None:
            return problem
        for name, shape in shapes.items():
            if name in value:
                problem = shape(value[name], f"{at}/{name}")
                if problem is not None:
                    return problem
            elif name in required:
                return Problem(f"{at}/{name}", "is missing", missing=True)
        return None

    return check


_ANNOTATIONS: Final = _members({}, {"audience": _each(STRING), "priority": _FRACTION, "lastModified": STRING})
_EVERY_BLOCK: Final[Mapping[str, Shape]] = {"annotations": _ANNOTATIONS, "_meta": OBJECT}


def _resource(value: Any, at: str) -> Problem | None:
    problem = _RESOURCE_MEMBERS(value, at)
    if problem is None and ("text" in value) == ("blob" in value):
        found = "has both text and blob" if "text" in value else "has neither text nor blob"
        return Problem(at, f"{found}; write exactly one of them")
    return problem


_RESOURCE_MEMBERS: Final = _members(
    {"uri": _NON_EMPTY}, {"mimeType": STRING, "text": STRING, "blob": STRING, "_meta": OBJECT}
)

# `data` and `blob` are base64 text. The envelope carries them and never decodes them, so it does not
# judge them either.
_BLOCKS: Final[Mapping[str, Shape]] = {
    "text": _members({"text": STRING}, _EVERY_BLOCK),
    "image": _members({"data": STRING, "mimeType": _NON_EMPTY}, _EVERY_BLOCK),
    "audio": _members({"data": STRING, "mimeType": _NON_EMPTY}, _EVERY_BLOCK),
    "resource_link": _members(
        {"uri": _NON_EMPTY, "name": STRING},
        {
            "title": STRING,
            "description": STRING,
            "mimeType": STRING,
            "size": _BYTES,
            "icons": _each(_members({"src": STRING}, {})),
            **_EVERY_BLOCK,
        },
    ),
    "resource": _members({"resource": _resource}, _EVERY_BLOCK),
}
"""The block types of MCP. A block of any other type is carried as it is."""

_TYPED: Final = _members({"type": _NON_EMPTY}, {})


def BLOCK(value: Any, at: str) -> Problem | None:  # noqa: N802  # a shape like its neighbours, which are constants
    """Check one content block."""
    problem = _TYPED(value, at)
    if problem is not None:
        return problem
    shape = _BLOCKS.get(value["type"])
    return None if shape is None else shape(value, at)


CORRELATION: Final = _members(
    {},
    {
        "toolCallId": _NON_EMPTY,
        "parentToolCallId": _NON_EMPTY,
        "dispatchId": _NON_EMPTY,
        "runId": _NON_EMPTY,
        "traceparent": _NON_EMPTY,
    },
)

_NAMED_SCHEMA: Final = _members({"name": _NON_EMPTY}, {"version": _NON_EMPTY})


def DATA_SCHEMA(value: Any, at: str) -> Problem | None:  # noqa: N802  # a shape like its neighbours
    """Check the identifier of an application's own schema: a string, or an object with a name."""
    if isinstance(value, dict):
        return _NAMED_SCHEMA(value, at)
    if isinstance(value, str) and value:
        return None
    return Problem(at, f"must be a non-empty string or an object with a name, not {_kind(value)}")


ERROR: Final = _members({"message": STRING}, {"name": STRING, "code": STRING})
