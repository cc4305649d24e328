"""NVIDIA NeMo Relay: one tool lifecycle per call, those of a program's calls inside that of its run.

Knows: Relay's manual lifecycle, its propagated scopes, and how an annotation becomes the metadata that
Relay's own exporters read.
Does not know: where events go; that is what the application has registered with Relay.

Source:
    nemo-relay 0.10, `tools.call`, `create_scope_stack_from_propagation`, `subscribers.flush`; decision 0301.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from codemode.exporters.calls import CallWatch, error_type, shown_members, watch_calls
from sandbox.values import thaw
from tool_bindings.annotated import DEFAULT_POLICY, annotation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from nemo_relay import ScopeStack, ToolHandle

    from tool_bindings import Dispatch, ToolRegistry, ToolResult
    from tool_bindings.annotated import ProjectionPolicy

__all__ = ["RelayCall", "missing_from_relay", "relay_exporter"]

FLUSH_SECONDS: Final = 5.0
"""How long closing waits for Relay to deliver (arbitrary: an application wants to end)."""

MAX_PENDING_EVENTS: Final = 20_000
"""Events that Relay may have taken and not delivered; beyond it calls are left out (arbitrary)."""

_NEEDED: Final = (
    "PropagationContext",
    "ToolExecutionResult",
    "capture_propagation_context",
    "create_scope_stack",
    "create_scope_stack_from_propagation",
    "get_scope_stack",
    "scope_stack_active",
    "subscribers.flush",
    "tools.call",
    "tools.call_end",
    "use_scope_stack",
)
_STATUS_CODE: Final = {"succeeded": "OK", "failed": "ERROR", "unknown": "UNSET"}
"""Words that Relay's OpenTelemetry exporters understand in `otel.status_code`."""

_log = logging.getLogger("codemode.exporters")


@dataclasses.dataclass(frozen=True, slots=True)
class RelayCall:
    """One call, as Relay knows it.

    Attributes:
        handle: What ends its lifecycle.
        stack: The scope it began in.
        inner: The scope its nested calls begin in, propagated from it.
    """

    handle: ToolHandle
    stack: ScopeStack
    inner: ScopeStack


@contextlib.contextmanager
def relay_exporter(
    registry: ToolRegistry,
    *,
    annotation: ProjectionPolicy = DEFAULT_POLICY,
    flush_seconds: float = FLUSH_SECONDS,
    max_pending: int = MAX_PENDING_EVENTS,
) -> Iterator[CallWatch[RelayCall] | None]:
    """Tell NeMo Relay of every call through the registry for as long as the block runs.

    Never gets in the way of a call: when Relay is missing, or lacks something this needs, nothing is
    told, and a warning says so; what fails is logged once and counted. Arguments and values are not
    told, unless the policy shows them in the annotation.

    Args:
        registry: What calls go through; a program's run is one of them, named `run_code`.
        annotation: What of the annotation the end of a call carries.
        flush_seconds: How long leaving the block waits, without letting other tasks run, for what Relay
            has not delivered yet.
        max_pending: Events that Relay may have taken and not delivered; beyond it calls are left out.

    Yields:
        The watch, which counts open calls and failures, or None when nothing is told.
    """
    missing = missing_from_relay()
    if missing is not None:
        _log.warning("NeMo Relay is told nothing: %s", missing)
        yield None
        return
    import nemo_relay  # noqa: PLC0415  # an extra, needed only by who installs the exporter

    delivery = _Delivery(nemo_relay.subscribers.flush, max_pending)
    try:
        with watch_calls(registry, "NeMo Relay", _Lifecycles(nemo_relay, annotation, delivery)) as watch:
            yield watch
    finally:
        delivery.flush(flush_seconds)


def missing_from_relay() -> str | None:
    """Say why the installed NeMo Relay cannot be used and what to do, or None when it can."""
    try:
        import nemo_relay  # noqa: PLC0415  # an extra, needed only by who installs the exporter
    except Exception as error:  # noqa: BLE001  # it has native code, which may fail to load in any way
        return f"it cannot be imported ({type(error).__name__}); pip install 'codemode[relay]'"
    absent = [name for name in _NEEDED if not _has(nemo_relay, name)]
    if absent:
        return f"the installed version has no {', '.join(absent)}; pip install --upgrade 'codemode[relay]'"
    return None


def _has(module: ModuleType, path: str) -> bool:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found is not None


class _Lifecycles:
    """Begins and ends the lifecycles.

    Relay keeps the current scope per thread as well as per context. Every scope is therefore entered and
    left without a pause in between: trio's tasks share a thread, and would see each other's.
    """

    def __init__(self, relay: Any, policy: ProjectionPolicy, delivery: _Delivery) -> None:
        self._relay = relay
        self._policy = policy
        self._delivery = delivery

    def begin(self, call: Dispatch, parent: RelayCall | None) -> RelayCall | None:
        if not self._delivery.admits():
            return None
        relay = self._relay
        if parent is not None:
            stack = parent.inner
        elif relay.scope_stack_active():
            stack = relay.get_scope_stack()
        else:
            # Without a scope of the application's own, every direct call is a trace of its own.
            stack = relay.create_scope_stack()
        with relay.use_scope_stack(stack):
            handle = relay.tools.call(call.name, {}, tool_call_id=call.call_id)
            root = relay.capture_propagation_context().root_uuid
        inner = relay.create_scope_stack_from_propagation(relay.PropagationContext(handle.uuid, root))
        return RelayCall(handle, stack, inner)

    def within(self, span: RelayCall) -> contextlib.AbstractContextManager[object]:
        del span
        return contextlib.nullcontext()

    def end(self, span: RelayCall, call: Dispatch, result: ToolResult) -> None:
        metadata = {"otel.status_code": "UNSET"}
        shown: dict[str, Any] | None = None
        try:
            status = annotation_of(call, result).status
            members = shown_members(call, result, self._policy)
            metadata["otel.status_code"] = _STATUS_CODE[status]
            if status == "failed":
                metadata["error.type"] = error_type(members)
            shown = {name: thaw(member) for name, member in members.items()}
        finally:
            self._end(span, shown, metadata)

    def give_up(self, span: RelayCall) -> None:
        self._end(span, None, {"otel.status_code": "UNSET"})

    def _end(self, span: RelayCall, shown: dict[str, Any] | None, metadata: dict[str, str]) -> None:
        relay = self._relay
        self._delivery.sent += 1
        with relay.use_scope_stack(span.stack):
            relay.tools.call_end(span.handle, relay.ToolExecutionResult(None, shown), metadata=metadata)


class _Delivery:
    """Keeps what Relay has taken and not delivered within bounds.

    Relay's queue has no bound and cannot be measured, but it can be waited for. A thread does that from
    time to time; what was sent before it began to wait has then been delivered.
    """

    def __init__(self, flush: Callable[[], None], max_pending: int) -> None:
        self._flush = flush
        self._max_pending = max_pending
        self._delivered = 0
        self._waiting: threading.Thread | None = None
        self.sent = 0
        self.left_out = 0
        """Calls that Relay was not told of."""

    def admits(self) -> bool:
        """Say whether one more call may begin, and count its first event if so."""
        pending = self.sent - self._delivered
        if pending * 2 >= self._max_pending and (self._waiting is None or not self._waiting.is_alive()):
            self._wait()
        if pending >= self._max_pending:
            self.left_out += 1
            if self.left_out == 1:
                _log.warning(
                    "NeMo Relay has not delivered %d events yet; calls are left out until it has", pending
                )
            return False
        self.sent += 1
        return True

    def flush(self, seconds: float) -> None:
        """Wait for everything sent, at most that long."""
        if self.sent == self._delivered:
            return
        waiting = self._wait()
        waiting.join(seconds)
        if waiting.is_alive():
            _log.warning("NeMo Relay has not delivered everything within %g s", seconds)

    def _wait(self) -> threading.Thread:
        sent = self.sent

        def wait() -> None:
            try:
                self._flush()
            except Exception as error:  # noqa: BLE001  # nothing that Relay does may reach a call
                _log.warning("NeMo Relay could not be flushed (%s)", type(error).__name__)
            else:
                self._delivered = max(self._delivered, sent)

        # A daemon: a subscriber that hangs must not keep the process from ending.
        self._waiting = threading.Thread(target=wait, name="codemode-relay-flush", daemon=True)
        self._waiting.start()
        return self._waiting
