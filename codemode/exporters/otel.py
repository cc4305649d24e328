"""OpenTelemetry: one `execute_tool` span per call, those of a program's calls inside that of its run.

Knows: the semantic conventions for generative AI, and how an annotation becomes a span's status.
Does not know: where spans go; that is the application's tracer provider.

Source:
    OpenTelemetry semantic conventions for generative AI, "Execute tool span"; decision 0300.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from codemode.exporters.calls import CallWatch, error_type, shown_members, watch_calls
from sandbox.values import encode
from tool_bindings.annotated import DEFAULT_POLICY, ProjectionPolicy, annotation_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from tool_bindings import Dispatch, ToolRegistry, ToolResult

__all__ = ["otel_exporter"]

ATTRIBUTE_PREFIX: Final = "codemode.annotation"
"""In front of the members of the annotation that the application wants as attributes."""

MAX_ATTRIBUTES: Final = 64
"""Members of one annotation that become attributes (arbitrary; half of what the SDK keeps by default)."""

MAX_ATTRIBUTE_CHARACTERS: Final = 4_096
"""Longest text of an attribute; what is longer is cut (arbitrary)."""

_MAX_INTEGER: Final = 2**63
"""Integers of attributes have 64 bits."""

_log = logging.getLogger("codemode.exporters")


@contextlib.contextmanager
def otel_exporter(
    registry: ToolRegistry,
    *,
    tracer_provider: TracerProvider | None = None,
    attributes: bool | ProjectionPolicy = False,
) -> Iterator[CallWatch[Span] | None]:
    """Write a span of every call through the registry for as long as the block runs.

    Never gets in the way of a call: without the library nothing is written, and a warning says so;
    what fails is logged once and counted.

    Args:
        registry: What calls go through; a program's run is one of them, named `run_code`.
        tracer_provider: Where spans go; the process-wide one by default.
        attributes: What of the annotation becomes attributes: True for what may be seen by default, or
            a policy of your own. Status, `error.type`, the tool's name and the call's id are always
            there, and `error.type` says what the policy lets it.

    Yields:
        The watch, which counts open calls and failures, or None when the library is missing.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415  # an extra, needed only by who installs the exporter
    except ImportError:
        _log.warning("no spans are written: OpenTelemetry is missing; pip install 'codemode[otel]'")
        yield None
        return
    tracer = trace.get_tracer("codemode", tracer_provider=tracer_provider)
    with watch_calls(registry, "OpenTelemetry", _Spans(tracer, attributes)) as watch:
        yield watch


class _Spans:
    """Writes the spans."""

    def __init__(self, tracer: Tracer, attributes: bool | ProjectionPolicy) -> None:
        # Imported here and not above: only who makes one needs the extra, and an import per call would cost.
        from opentelemetry import trace  # noqa: PLC0415  # as said

        self._trace = trace
        self._tracer = tracer
        self._policy = attributes if isinstance(attributes, ProjectionPolicy) else DEFAULT_POLICY
        self._wanted = attributes is not False
        self._status = {
            "succeeded": trace.StatusCode.OK,
            "failed": trace.StatusCode.ERROR,
            "unknown": trace.StatusCode.UNSET,
        }

    def begin(self, call: Dispatch, parent: Span | None) -> Span:
        # A direct call belongs to what the application is doing; a program's call only to its run.
        context: Context | None = None if parent is None else self._trace.set_span_in_context(parent)
        return self._tracer.start_span(
            f"execute_tool {call.name}",
            context,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call.call_id,
            },
        )

    def within(self, span: Span) -> contextlib.AbstractContextManager[object]:
        # Exceptions are not this span's to record: what a body raises is its call's result.
        return self._trace.use_span(span, record_exception=False, set_status_on_exception=False)

    def end(self, span: Span, call: Dispatch, result: ToolResult) -> None:
        try:
            if span.is_recording():
                self._describe(span, call, result)
        finally:
            span.end()

    def give_up(self, span: Span) -> None:
        span.end()  # Its status stays unset: nobody knows.

    def _describe(self, span: Span, call: Dispatch, result: ToolResult) -> None:
        status = annotation_of(call, result).status
        code = self._status[status]
        if code is not self._trace.StatusCode.UNSET:
            span.set_status(code)
        if status != "failed" and not self._wanted:
            return
        shown = shown_members(call, result, self._policy)
        if status == "failed":
            span.set_attribute("error.type", error_type(shown))
        if self._wanted:
            for name, value in list(_flat(shown, ATTRIBUTE_PREFIX))[:MAX_ATTRIBUTES]:
                span.set_attribute(name, value)


def _flat(members: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str | bool | int | float]]:
    """Yield objects member by member, everything else as one attribute: text, number, or JSON text."""
    for name, value in members.items():
        path = f"{prefix}.{name}"
        if isinstance(value, dict):
            yield from _flat(value, path)
        elif isinstance(value, bool | float) or (
            isinstance(value, int) and -_MAX_INTEGER <= value < _MAX_INTEGER
        ):
            yield path, value
        else:
            text = value if isinstance(value, str) else encode(value).decode("ascii")
            yield path, text[:MAX_ATTRIBUTE_CHARACTERS]
