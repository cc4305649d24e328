"""What observers, events and exporters get to see of an envelope.

Knows: the allow-list, the redactor, and that a doubt shows nothing.
Does not know: who observes. The application's own record is handed back as it came, whatever happens.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from sandbox.values import FrozenDict, JsonValue, snapshot, thaw
from tool_bindings.annotated.envelope import SCHEMA
from tool_bindings.annotated.errors import AnnotationError
from tool_bindings.annotated.intercepts import read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tool_bindings.annotated.envelope import AnnotatedToolResult

__all__ = ["DEFAULT_KEEP", "EVENT_FIELD", "Projection", "ProjectionPolicy", "project"]

EVENT_FIELD: Final = "tool_result_annotation"
"""Field of an event that holds the projection."""

Member: TypeAlias = str | tuple[str, ...]
"""A member to keep: `status`, `error.code`, or the names as a tuple where one has a dot in it."""

DEFAULT_KEEP: Final[tuple[Member, ...]] = (
    "schema",
    "status",
    "isError",
    "dataSchema",
    "correlation",
    "error.code",
)
"""Nothing of these is payload. Add `content` to show what a model reads, `structuredContent` for values."""

_log = logging.getLogger("tool_bindings")


def _is_member(member: object) -> bool:
    return isinstance(member, str) or (
        isinstance(member, tuple) and bool(member) and all(isinstance(name, str) for name in member)
    )


def _names(member: Member) -> tuple[str, ...]:
    return member if isinstance(member, tuple) else tuple(member.split("."))


def _tree(paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for *path, last in paths:
        branch: Any = tree
        for name in path:
            branch = branch.setdefault(name, {})
            if branch is None:
                break  # Something around it may be seen whole already.
        else:
            branch[last] = None
    return tree


@dataclass(frozen=True, slots=True)
class ProjectionPolicy:
    """What may be seen.

    Attributes:
        keep: The members to show; all others stay out, known or not.
        redact: Gets the projection as a plain copy and returns what to show instead. If it raises, or
            returns anything but a JSON object, nothing is shown.
    """

    keep: Sequence[Member] = DEFAULT_KEEP
    redact: Callable[[dict[str, Any]], object] | None = None
    allowed: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """`keep` as a tree: a member's name to the tree below it, or to None where all of it may be seen."""
    hides_payload: bool = field(init=False, repr=False, compare=False)
    """Whether what is shown of an envelope says nothing of the value: only whole members that describe it."""

    def __post_init__(self) -> None:
        if isinstance(self.keep, str) or not all(map(_is_member, self.keep)):
            msg = 'keep must be a sequence of members such as "status", "error.code" or ("_meta", "a.b/c")'
            raise TypeError(msg)
        if self.redact is not None and not callable(self.redact):
            msg = "redact must be a function of the projection, or None"
            raise TypeError(msg)
        allowed = _tree(map(_names, self.keep))
        object.__setattr__(self, "allowed", allowed)
        partly = {name for name, below in allowed.items() if below is not None}
        plain = self.redact is None and partly <= {"error"} and allowed.keys() <= _DESCRIBING
        object.__setattr__(self, "hides_payload", plain)


_DESCRIBING: Final = frozenset({"schema", "status", "isError", "dataSchema", "correlation", "error"})

DEFAULT_POLICY: Final = ProjectionPolicy()


class Projection(TypedDict):
    """What `project` returns."""

    event: dict[str, JsonValue]
    """Fields to add to an event: `tool_result_annotation`, or none at all."""
    record: Mapping[str, Any]
    """The very record that was given."""


def project(
    record: Mapping[str, Any], policy: ProjectionPolicy | Mapping[str, Any] | None = None
) -> Projection:
    """Show an observer as much of a record's annotation as the policy allows. Never fails.

    Args:
        record: `{"result": ..., "annotation": ...}`, never changed.
        policy: A `ProjectionPolicy`, its members as an object, or None for the default. A policy that
            cannot be understood shows nothing.
    """
    try:
        if policy is None:
            policy = DEFAULT_POLICY
        elif not isinstance(policy, ProjectionPolicy):
            policy = ProjectionPolicy(**policy)
        annotation = None if record.get("annotation") is None else read_record(record, "reject")[1]
    except (AnnotationError, TypeError, AttributeError) as error:
        _closed(error)
        return {"event": {}, "record": record}
    fields = {} if annotation is None else event_fields(annotation, policy)
    return {"event": {name: thaw(shown) for name, shown in fields.items()}, "record": record}


def event_fields(annotation: AnnotatedToolResult, policy: ProjectionPolicy) -> dict[str, JsonValue]:
    """Return the fields an event gets of an envelope, partly frozen; none when the redactor fails."""
    shown = _shown(annotation.members, policy.allowed)
    if policy.redact is not None:
        try:
            redacted = policy.redact({name: thaw(item) for name, item in shown.items()})
            if type(redacted) is not dict and type(redacted) is not FrozenDict:
                msg = f"it must return a JSON object, not {type(redacted).__name__}"
                raise TypeError(msg)
            shown = snapshot(redacted, "projection")  # type: ignore[assignment]  # an object stays one
        except Exception as error:  # noqa: BLE001  # whatever a redactor does, what it was to hide stays hidden
            _closed(error)
            return {}
    return {EVENT_FIELD: shown}


def success_fields(
    policy: ProjectionPolicy, data_schema: JsonValue, correlation: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return what `event_fields` would for the envelope of a tool's own success, without making it.

    Args:
        policy: One that `hides_payload`.
        data_schema: What the tool declares of its value, or None.
        correlation: The call's identifiers.
    """
    allowed = policy.allowed
    shown: dict[str, Any] = {}
    if "schema" in allowed:
        shown["schema"] = SCHEMA
    if "status" in allowed:
        shown["status"] = "succeeded"
    if "isError" in allowed:
        shown["isError"] = False
    if data_schema is not None and "dataSchema" in allowed:
        shown["dataSchema"] = data_schema
    if correlation and "correlation" in allowed:
        shown["correlation"] = correlation
    return {EVENT_FIELD: shown}


def _shown(members: Mapping[str, Any], allowed: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Pick the allowed members, in the envelope's own order."""
    shown: dict[str, Any] = {}
    for name, item in members.items():
        if name in allowed:
            below = allowed[name]
            if below is None:
                shown[name] = item
            elif isinstance(item, dict):
                inner = _shown(item, below)
                if inner:
                    shown[name] = inner
    return shown


def _closed(error: Exception) -> None:
    # Only the type: the text may quote what was to be hidden.
    _log.warning("a tool result's annotation is not shown: its projection failed (%s)", type(error).__name__)
