"""Watching calls for an exporter: when they begin and end, and which one encloses which.

Knows: the seams of the registry, how many calls may be open at once, and that an exporter's failure is
logged and goes no further.
Does not know: what an exporter writes, or where.

An exporter is out of the data path: whatever it does, a listener passes on what the next one returned.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from tool_bindings.annotated import DEFAULT_POLICY, EVENT_FIELD, ProjectionPolicy, observed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from tool_bindings import Dispatch, ToolRegistry, ToolResult
    from tool_bindings.caller import DispatchToken
    from tool_bindings.policy import PreDecision

__all__ = ["MAX_OPEN_CALLS", "CallWatch", "SpanWriter", "error_type", "shown_members", "watch_calls"]

MAX_OPEN_CALLS: Final = 10_000
"""Calls an exporter holds open at once; beyond it the oldest is closed as unfinished (arbitrary)."""

OTHER_ERROR: Final = "_OTHER"
"""The word of the semantic conventions for an error of no known type."""

_ERROR_TYPE_CHARACTERS: Final = 200
"""Longest `error.type` (arbitrary: a slug, not a text)."""

_log = logging.getLogger("codemode.exporters")

S = TypeVar("S")


class SpanWriter(Protocol[S]):
    """What an exporter does with calls. Every method may raise: the call goes on."""

    def begin(self, call: Dispatch, parent: S | None) -> S | None:
        """Open the span of a call, or leave it out, and with it the calls inside it, by returning None.

        `parent` is the span of the enclosing call, if that is being watched.
        """
        ...

    def within(self, span: S) -> contextlib.AbstractContextManager[object]:
        """Return what surrounds the body."""
        ...

    def end(self, span: S, call: Dispatch, result: ToolResult) -> None:
        """Close the span of a call that has its result."""
        ...

    def give_up(self, span: S) -> None:
        """Close the span of a call whose result will not be seen."""
        ...


class CallWatch(Generic[S]):
    """Feeds one exporter. Made by `watch_calls`.

    Args:
        name: Name of the exporter, for the log.
        writer: The exporter.
        max_open: See `MAX_OPEN_CALLS`.
    """

    def __init__(self, name: str, writer: SpanWriter[S], max_open: int) -> None:
        self._name = name
        self._writer = writer
        self._max_open = max_open
        # By token, which no two calls share; ids are the caller's to choose. In order of beginning.
        # A call that was left out stands as None, so that no call inside it is shown as if it were direct.
        self._open: dict[DispatchToken, S | None] = {}
        self._closed = False
        self.failures = 0
        """How often the exporter has raised; only the first time is logged."""

    @property
    def open_calls(self) -> int:
        """How many calls have begun and not ended."""
        return len(self._open)

    # --- the listeners --------------------------------------------------------------------------

    async def before(self, call: Dispatch, proceed: Callable[[], Awaitable[PreDecision]]) -> PreDecision:
        """Open the span before anybody decides on the call."""
        if not self._closed:
            self._begin(call)
        try:
            return await proceed()
        except BaseException as error:
            self._give_up_unless_failure(call, error)
            raise

    async def around(self, call: Dispatch, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Let the exporter surround the body."""
        span = self._open.get(call.token)
        if span is None:
            return await proceed()
        leave = self._enter(span)
        try:
            return await proceed()
        except BaseException as error:
            self._give_up_unless_failure(call, error)
            raise
        finally:
            if leave is not None:
                self._quietly(leave, None, None, None)

    def after(self, call: Dispatch, result: ToolResult) -> None:
        """Close the span; a call that no policy was asked about gets one now."""
        if call.token not in self._open:
            self._begin(call)
        span = self._open.pop(call.token)
        if span is not None:
            self._quietly(self._writer.end, span, call, result)

    def close(self) -> None:
        """Give up what is still open, inner calls first. Nothing is watched from now on."""
        self._closed = True
        while self._open:
            self._give_up(next(reversed(self._open)))

    # --- pieces ---------------------------------------------------------------------------------

    def _begin(self, call: Dispatch) -> None:
        if len(self._open) >= self._max_open:
            # Cancelled after its body, so that nobody heard of its end, or just very slow.
            self._give_up(next(iter(self._open)))
        if call.parent is None or call.parent not in self._open:
            self._open[call.token] = self._quietly(self._writer.begin, call, None)
            return
        parent = self._open[call.parent]
        self._open[call.token] = None if parent is None else self._quietly(self._writer.begin, call, parent)

    def _give_up(self, token: DispatchToken) -> None:
        span = self._open.pop(token, None)
        if span is not None:
            self._quietly(self._writer.give_up, span)

    def _enter(self, span: S) -> Callable[..., Any] | None:
        surrounding = self._quietly(self._writer.within, span)
        if surrounding is None:
            return None
        entered = self._quietly(lambda: (surrounding.__enter__(),))
        return None if entered is None else surrounding.__exit__

    def _give_up_unless_failure(self, call: Dispatch, error: BaseException) -> None:
        # What the pipeline catches becomes a result, which `after` sees; a cancellation does not.
        if not isinstance(error, Exception):
            self._give_up(call.token)

    def _quietly(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call the exporter; None when it raises."""
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001  # nothing that an exporter does may reach a call
            self.failures += 1
            if self.failures == 1:
                # The type only: the text may quote payload. Once: a broken exporter fails on every call.
                _log.warning(
                    "the %s exporter failed (%s); calls go on, and further failures are counted only",
                    self._name,
                    type(error).__name__,
                )
            return None


@contextlib.contextmanager
def watch_calls(
    registry: ToolRegistry, name: str, writer: SpanWriter[S], max_open: int = MAX_OPEN_CALLS
) -> Iterator[CallWatch[S]]:
    """Feed an exporter with every call through the registry for as long as the block runs.

    Args:
        registry: What calls go through; a program's run is one of them.
        name: Name of the exporter, for the log.
        writer: The exporter.
        max_open: See `MAX_OPEN_CALLS`.
    """
    watch = CallWatch(name, writer, max_open)
    with contextlib.ExitStack() as stack:
        stack.callback(watch.close)
        stack.callback(registry.on_result(watch.after))
        stack.callback(registry.around(watch.around, first=True))
        stack.callback(registry.on_pre_execute(watch.before, first=True))
        yield watch


def shown_members(
    call: Dispatch, result: ToolResult, policy: ProjectionPolicy = DEFAULT_POLICY
) -> Mapping[str, Any]:
    """Return the members of a result's annotation that the policy shows, partly frozen; perhaps none."""
    members: Any = observed(call, result, policy).get(EVENT_FIELD, {})
    shown: Mapping[str, Any] = members
    return shown


def error_type(shown: Mapping[str, Any]) -> str:
    """Return what `error.type` says of a failure: its code or name, as far as they are shown."""
    error = shown.get("error")
    if isinstance(error, dict):
        for member in ("code", "name"):
            if isinstance(error.get(member), str):
                return str(error[member])[:_ERROR_TYPE_CHARACTERS]
    return OTHER_ERROR
