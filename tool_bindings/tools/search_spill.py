"""Store the complete result of a search that is too long to show, and show where it is.

Knows: which calls qualify, and how the page is replaced.
Does not know: how the store keeps it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from tool_bindings.policy import UNCHANGED, Accept
from tool_bindings.spill import SpillError
from tool_bindings.tools.search_glob import glob_overflow
from tool_bindings.tools.search_grep import grep_overflow
from tool_bindings.tools.spilled import session_id_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from tool_bindings.definition import ToolDefinition
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.policy import PostDecision
    from tool_bindings.registry import ToolRegistry
    from tool_bindings.results import ToolResult
    from tool_bindings.spill import SpillStore
    from tool_bindings.tools.overflow import SearchLimits

__all__ = ["attach_search_spill"]

_log = logging.getLogger("tool_bindings")

_OVERFLOWS = {"glob": glob_overflow, "grep": grep_overflow}


def attach_search_spill(
    registry: ToolRegistry, definitions: Iterable[ToolDefinition], store: SpillStore, limits: SearchLimits
) -> Callable[[], None]:
    """Let a store keep what glob and grep do not show.

    Only a direct, successful call of one of `definitions` qualifies, when nothing else replaced its result.
    A nested call's value is complete in the program's hands, so nothing is stored for it. Storing is extra:
    if it fails, the page stays as it was.

    Args:
        registry: Where the tools are registered.
        definitions: The tools; others of the same name are left alone.
        store: Keeps the texts.
        limits: The caps the tools were made with.

    Returns:
        What detaches it.
    """
    live = {definition.name: definition for definition in definitions if definition.name in _OVERFLOWS}

    async def replace_page(
        call: Dispatch, result: ToolResult, proceed: Callable[[], Awaitable[PostDecision]]
    ) -> PostDecision:
        decision = await proceed()
        if not isinstance(decision, Accept) or not (decision.content is UNCHANGED is decision.value):
            return decision
        session_id = session_id_of(call.session)
        if result.is_error or call.parent is not None or session_id is None:
            return decision
        definition = live.get(call.name)
        if definition is None or registry.get(call.name, call.scope) is not definition:
            return decision
        overflow = _OVERFLOWS[call.name](result.value, limits)
        if overflow is None:
            return decision
        try:
            spilled = await trio.to_thread.run_sync(
                store.save_text, session_id, overflow.suggested_name, overflow.content
            )
        except SpillError as error:
            _log.warning("the complete result of call %s could not be stored: %s", call.call_id, error)
            return decision
        return Accept(content=overflow.stored(spilled.locator, spilled.hint), contexts=decision.contexts)

    return registry.on_post_execute(replace_page)
