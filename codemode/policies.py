"""What a service puts into its registry while it is open: timeouts, and spilling of long texts.

Knows: which policies there are and when they are needed. Does not know: how they work.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codemode.log_shaping import DispatchLogEntry, LogListener
    from tool_bindings.registry import ToolRegistry
    from tool_bindings.spill import SpillPolicy, SpillStore

    OnDispatchLog = Callable[[LogListener], Callable[[], None]]
    """Registers a listener that shapes what the log keeps; returns what takes it back."""


@contextlib.contextmanager
def installed(
    registry: ToolRegistry, on_dispatch_log: OnDispatchLog, spill: SpillStore | None, max_inline_bytes: int
) -> Iterator[None]:
    """Keep the service's policies in the registry for as long as the block runs."""
    with contextlib.ExitStack() as stack:
        _enforce_timeouts_when_declared(registry, stack)
        if spill is not None:
            from tool_bindings.spill import SpillPolicy  # noqa: PLC0415  # most services spill nothing

            _spill(registry, on_dispatch_log, SpillPolicy(spill, max_inline_bytes), stack)
        yield


def _enforce_timeouts_when_declared(registry: ToolRegistry, stack: contextlib.ExitStack) -> None:
    # A policy around every body costs every call; most registries declare no timeout at all.
    enforced = False

    def look() -> None:
        nonlocal enforced
        if not enforced and any(each.timeout_seconds is not None for each in registry.definitions()):
            from tool_bindings.timeouts import enforce_timeouts  # noqa: PLC0415  # most have none

            enforced = True
            stack.callback(enforce_timeouts(registry))

    look()
    stack.callback(registry.on_change(look))


def _spill(
    registry: ToolRegistry, on_dispatch_log: OnDispatchLog, policy: SpillPolicy, stack: contextlib.ExitStack
) -> None:
    async def shape(entry: DispatchLogEntry) -> Sequence[Any] | None:
        return policy.replace(entry.content, entry.session, entry.name)

    stack.callback(registry.on_post_execute(policy, first=True))
    stack.callback(on_dispatch_log(shape))
