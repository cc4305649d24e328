"""The seam through which a person, or a test, approves a call.

Knows: what is asked, what may be answered, and two providers.
Does not know: which calls need approval; a pre-execute listener says so with `Ask`.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TextIO, TypeAlias

import trio

from tool_bindings.content import render_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tool_bindings.abort import AbortSignal

__all__ = ["ApprovalOutcome", "ApprovalProvider", "ApprovalRequest", "ScriptedApproval", "TerminalApproval"]

ApprovalOutcome: TypeAlias = Literal["allowed-once", "rejected", "cancelled", "unavailable"]
"""`cancelled`: nobody decided before the question was taken back. `unavailable`: nobody could be asked."""

OUTCOMES: Final = ("allowed-once", "rejected", "cancelled", "unavailable")

_SHOWN_BYTES: Final = 2000
"""Bytes of the arguments shown on a terminal (arbitrary: about a screen)."""


class ApprovalRequest(NamedTuple):
    """One question.

    Attributes:
        tool: Name of the tool.
        arguments: The frozen arguments the body would get.
        reason: Why approval is needed, or None.
        call_id: Identity of the call; `root_call_id` and `parent_call_id` place it.
        provenance: Which route the call came by: direct, code, batch or mcp.
        run_id: The run whose program made the call, or None.
        session: The caller's session, or None.
        abort: Fires when the call is no longer wanted; answer `cancelled` then.
    """

    tool: str
    arguments: Mapping[str, Any]
    reason: str | None
    call_id: str
    root_call_id: str
    parent_call_id: str | None
    provenance: str
    run_id: str | None
    session: object
    abort: AbortSignal


class ApprovalProvider(Protocol):
    """Whoever can answer."""

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Decide one call; an answer is good for this call only."""
        ...


class ScriptedApproval:
    """Answers from a list, in order; for tests and for fixed rules.

    Attributes:
        requests: Every question asked so far.
    """

    def __init__(
        self, answers: Iterable[ApprovalOutcome] | Callable[[ApprovalRequest], ApprovalOutcome]
    ) -> None:
        self.requests: list[ApprovalRequest] = []
        self._decide = answers if callable(answers) else None
        self._answers: deque[ApprovalOutcome] = deque(() if callable(answers) else answers)

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Give the next answer; `unavailable` when there is none left."""
        self.requests.append(request)
        await trio.lowlevel.checkpoint()
        if self._decide is not None:
            return self._decide(request)
        return self._answers.popleft() if self._answers else "unavailable"


class TerminalApproval:
    """Asks on a terminal, one question at a time.

    Anything but `y` or `yes` rejects. Without a terminal the answer is `unavailable`.
    """

    def __init__(self, stdin: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self._stdin = stdin if stdin is not None else sys.stdin
        self._stderr = stderr if stderr is not None else sys.stderr
        self._one_at_a_time = trio.Lock()

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Show the call and read the answer from a thread, which is left behind if the call is aborted."""
        if not self._stdin.isatty():
            return "unavailable"
        async with self._one_at_a_time:
            if request.abort.aborted:
                return "cancelled"
            self._stderr.write(self._question(request))
            self._stderr.flush()
            with trio.CancelScope() as scope:
                remove = request.abort.add_callback(scope.cancel)
                try:
                    line = await trio.to_thread.run_sync(self._stdin.readline, abandon_on_cancel=True)
                finally:
                    remove()
            if scope.cancelled_caught:
                return "cancelled"
        return "allowed-once" if line.strip().lower() in ("y", "yes") else "rejected"

    def _question(self, request: ApprovalRequest) -> str:
        why = f" ({request.reason})" if request.reason else ""
        arguments = printable(render_json(dict(request.arguments), _SHOWN_BYTES))
        head = f"Allow {printable(request.tool)} from {request.provenance}{printable(why)}?"
        return f"\n{head}\n{arguments}\n[y/N] "


def printable(text: str) -> str:
    """Escape control, escape-sequence and direction characters, which could fake what a person reads."""
    return "".join(
        char if char == "\n" or char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
