"""What a tool is: a described callable with declared parameters and a declared output.

Knows: the definition record, its own consistency, and the context a body receives.
Does not know: registries, dispatches, or how a schema is applied.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sandbox.values import NotJsonError, snapshot_frozen
from tool_bindings.abort import AbortSignal
from tool_bindings.annotated.envelope import AnnotatedToolResult
from tool_bindings.annotated.shapes import DATA_SCHEMA
from tool_bindings.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox.values import JsonValue
    from tool_bindings.content import ContentBlock
    from tool_bindings.results import ToolResult
    from tool_bindings.schema import JsonSchema

    Render: TypeAlias = Callable[[Mapping[str, Any], Any], Sequence[ContentBlock]]
    """Pure function from (frozen arguments, canonical value) to content blocks; may truncate."""

    PresentationMeta: TypeAlias = Callable[[Mapping[str, Any], Any], JsonValue]
    """Pure function from (frozen arguments, canonical value) to metadata for a direct call's card."""

    Execute: TypeAlias = Callable[[Mapping[str, Any], "ToolRunContext"], Any]
    """A tool's body: takes frozen arguments and a context, returns only the canonical value.

    A plain function runs in a thread; an async one in the dispatch's task."""

    ConcurrencySafe: TypeAlias = bool | Callable[[Mapping[str, Any]], bool]
    """Whether a call may overlap with other such calls; a callable decides per arguments."""

    ReportProgress: TypeAlias = Callable[[float, float | None, str | None], object]
    """Receives `done`, `total` and `note` of a running body."""

__all__ = ["Output", "ToolDefinition", "ToolRunContext"]


@dataclass(frozen=True, slots=True)
class Output:
    """A tool's output declaration.

    Attributes:
        schema: What the canonical value looks like; any root is allowed.
        render: Makes the content blocks. None gives the default rendering, at most 16 KiB of text.
        presentation_meta: Makes metadata for the card of a direct call; not called for nested calls.
        data_schema: Identifier of the application's own schema of the value, for the annotation: a
            string, or `{"name": ..., "version": ...}`. Nobody fetches or interprets it.
    """

    schema: JsonSchema
    render: Render | None = None
    presentation_meta: PresentationMeta | None = None
    data_schema: str | Mapping[str, JsonValue] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Mapping):
            msg = f"Output.schema must be a JSON schema as a dict, not {type(self.schema).__name__}"
            raise DefinitionError(msg)
        for field in ("render", "presentation_meta"):
            function = getattr(self, field)
            if function is not None and not callable(function):
                raise DefinitionError(
                    f"Output.{field} must be a function (arguments, value) or None: {_SHAPE}"
                )
        if self.data_schema is not None:
            try:
                problem = DATA_SCHEMA(snapshot_frozen(self.data_schema), "/data_schema")
            except NotJsonError as error:
                raise DefinitionError(f"Output.data_schema must be JSON: {error}") from None
            if problem is not None:
                raise DefinitionError(f"Output, {problem.pointer}: {problem.reason}")


_SHAPE = "output=Output(schema={...}, render=..., presentation_meta=...)"


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A described callable.

    Attributes:
        name: Unique inside one registry layer.
        description: Text for the model.
        parameters: JSON schema of the arguments, an object.
        output: What the body returns and how it is shown.
        execute: The body, `execute(arguments, context)`; returns only the canonical value.
        finalize_content: `(call, result) -> blocks | None`: last change to the content of any
            outcome; None keeps it.
        timeout_seconds: Deadline that the timeout policy enforces; None for none.
        concurrency_safe: True, or a pure function of the arguments that returns True, lets calls
            overlap. Anything else makes a call run alone.
        present_call: Pure function of the arguments to a UI card; None for the generic one.
        present_result: Pure function of arguments and result to a UI card; None for the generic one.
    """

    name: str
    description: str
    parameters: JsonSchema
    output: Output
    execute: Execute
    finalize_content: Callable[[Any, ToolResult], Sequence[ContentBlock] | None] | None = None
    timeout_seconds: float | None = None
    concurrency_safe: ConcurrencySafe = False
    present_call: Callable[[Mapping[str, Any]], JsonValue] | None = None
    present_result: Callable[[Mapping[str, Any], ToolResult], JsonValue] | None = None
    known_signature: str | None = dataclasses.field(default=None, init=False, repr=False, compare=False)
    """What `stubs.signature` said: every run sends all signatures, and writing one takes some 50 µs."""

    def __post_init__(self) -> None:
        if type(self.name) is not str or not self.name:
            raise DefinitionError(f"a tool's name must be a non-empty string, not {self.name!r}")
        where = f"tool {self.name!r}"
        if type(self.description) is not str:
            raise DefinitionError(f"{where}: description must be a string")
        if not isinstance(self.parameters, Mapping):
            raise DefinitionError(f"{where}: parameters must be a JSON schema as a dict")
        if not isinstance(self.output, Output):
            raise DefinitionError(f"{where}: a tool must declare its output: {_SHAPE}")
        if not callable(self.execute):
            raise DefinitionError(f"{where}: execute must be a function (arguments, context)")
        for field in ("finalize_content", "present_call", "present_result"):
            function = getattr(self, field)
            if function is not None and not callable(function):
                raise DefinitionError(f"{where}: {field} must be a function or None")
        check_timeout(self.timeout_seconds, where)
        if type(self.concurrency_safe) is not bool and not callable(self.concurrency_safe):
            raise DefinitionError(
                f"{where}: concurrency_safe must be True, False, or a function of the arguments"
            )


def check_timeout(seconds: float | None, where: str) -> None:
    """Refuse a timeout that is not a positive, finite number of seconds."""
    if seconds is None:
        return
    if type(seconds) not in (int, float) or not math.isfinite(seconds) or seconds <= 0:
        raise DefinitionError(
            f"{where}: timeout_seconds must be a finite number of seconds above 0, not {seconds!r}"
        )


class ToolRunContext:
    """What a body may know and ask for while it runs.

    Attributes:
        call_id: Identity of this call.
        root_call_id: Identity of the direct call that this one is part of.
        parent_call_id: Identity of the enclosing call, or None for a direct call.
        session: The caller's session, or None.
        abort: Fires when the caller wants the call to stop. An async body is also cancelled.
        report: Receives what `progress` is given, or None.
    """

    __slots__ = (
        "abort",
        "annotation",
        "call_id",
        "concludes_turn",
        "deferred_contexts",
        "parent_call_id",
        "report",
        "root_call_id",
        "session",
    )

    def __init__(
        self,
        call_id: str = "call",
        root_call_id: str | None = None,
        parent_call_id: str | None = None,
        session: object = None,
        abort: AbortSignal | None = None,
        report: ReportProgress | None = None,
    ) -> None:
        self.call_id = call_id
        self.root_call_id = call_id if root_call_id is None else root_call_id
        self.parent_call_id = parent_call_id
        self.session = session
        self.abort = AbortSignal() if abort is None else abort
        self.report = report
        self.deferred_contexts: list[JsonValue] = []
        self.concludes_turn = False
        self.annotation: AnnotatedToolResult | None = None

    def annotate(self, annotation: AnnotatedToolResult | Mapping[str, Any]) -> None:
        """Say what this call's result means, beside the result and whether it succeeds or fails.

        A body that raises has failed, whatever it said here.

        Raises:
            AnnotationError: It breaks the envelope's rules; the message says which and where.
        """
        if not isinstance(annotation, AnnotatedToolResult):
            annotation = AnnotatedToolResult.from_json(annotation)
        self.annotation = annotation

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Report how far the call is; dropped when nobody listens."""
        if self.report is not None:
            self.report(done, total, note)

    def defer_context(self, message: JsonValue) -> None:
        """Add a user message to the conversation after this call, whether it succeeds or fails.

        Args:
            message: `{"id": ..., "role": "user", "content": [...], "source": {"kind": ...}}`; the content is
                content blocks. Whoever keeps the conversation leaves out a message of another shape.

        Raises:
            NotJsonError: The message is not lossless JSON.
        """
        self.deferred_contexts.append(snapshot_frozen(message, "message"))

    def conclude_turn(self) -> None:
        """Ask for the turn to end after this call, if it succeeds."""
        self.concludes_turn = True
