"""Approval providers by themselves."""

from __future__ import annotations

import io

import pytest
import trio

from sandbox.values import freeze
from tool_bindings import AbortSignal, ApprovalRequest, ScriptedApproval, TerminalApproval


class Terminal(io.StringIO):
    def isatty(self):
        return True


def request(**changes):
    fields = {
        "tool": "write",
        "arguments": freeze({"path": "notes.txt"}),
        "reason": "it changes a file",
        "call_id": "c1",
        "root_call_id": "c1",
        "parent_call_id": None,
        "provenance": "code",
        "run_id": "run-1",
        "session": "s",
        "abort": AbortSignal(),
    }
    return ApprovalRequest(**{**fields, **changes})


class TestTerminal:
    @pytest.mark.parametrize(
        ("typed", "expected"),
        [
            ("y\n", "allowed-once"),
            ("YES\n", "allowed-once"),
            ("n\n", "rejected"),
            ("\n", "rejected"),
            ("", "rejected"),
        ],
    )
    async def test_only_a_plain_yes_allows(self, typed, expected):
        assert expected == await TerminalApproval(Terminal(typed), io.StringIO()).request(request())

    async def test_the_question_shows_tool_route_reason_and_arguments(self):
        shown = io.StringIO()
        await TerminalApproval(Terminal("n\n"), shown).request(request())
        assert (
            'Allow write from code (it changes a file)?\n{\n  "path": "notes.txt"\n}\n[y/N] '
            == shown.getvalue()[1:]
        )

    async def test_hostile_text_cannot_redraw_the_terminal(self):
        """DESIGN section 10."""
        shown = io.StringIO()
        hostile = request(tool="w\x1b[2J", arguments=freeze({"a": "\u202ex\x07"}), reason="\x1b]0;t")
        await TerminalApproval(Terminal("n\n"), shown).request(hostile)
        assert not {"\x1b", "\x07", "\u202e"} & set(shown.getvalue())

    async def test_without_a_terminal_nobody_can_be_asked(self):
        assert "unavailable" == await TerminalApproval(io.StringIO("y\n"), io.StringIO()).request(request())

    async def test_an_abort_takes_the_question_back(self):
        signal = AbortSignal()

        class Slow(Terminal):
            def readline(self, *_args):
                trio.from_thread.run_sync(signal.abort)
                return "y\n"

        signalled = AbortSignal()
        signalled.abort()
        assert "cancelled" == await TerminalApproval(Slow(), io.StringIO()).request(request(abort=signalled))

    async def test_questions_are_asked_one_at_a_time(self):
        shown = io.StringIO()
        approval = TerminalApproval(Terminal("y\nn\n"), shown)
        answers = []

        async def ask():
            answers.append(await approval.request(request()))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
        assert ["allowed-once", "rejected"] == answers


class TestScripted:
    async def test_answers_come_in_order_and_then_nobody_is_there(self):
        approval = ScriptedApproval(["allowed-once", "rejected"])
        assert ["allowed-once", "rejected", "unavailable"] == [
            await approval.request(request()) for _ in range(3)
        ]
        assert 3 == len(approval.requests)

    async def test_a_rule_may_decide(self):
        approval = ScriptedApproval(lambda asked: "allowed-once" if asked.tool == "read" else "rejected")
        assert "rejected" == await approval.request(request())
        assert "allowed-once" == await approval.request(request(tool="read"))
