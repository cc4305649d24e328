"""Judging a program without running it.

It goes to a worker like any other, since a program is hostile text before it is anything else, and stops
where its first statement would run.

Knows: which namespaces the program would have. Does not know: calls, events, turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemode.helpers import Helpers
from sandbox.supervisor import Stop
from sandbox.vocabulary import HostCall, HostFunctionError, Outcome, Program

if TYPE_CHECKING:
    from codemode.namespace import OfferedTools
    from sandbox.limits import Limits
    from sandbox.supervisor import Sandbox
    from sandbox.values import JsonValue


async def check_program(
    sandbox: Sandbox,
    source: str,
    offered: OfferedTools,
    limits: Limits,
    *,
    judge_arguments: bool,
) -> Outcome:
    """Return how the program's start ends; without a failure, it may start.

    Args:
        sandbox: Where it would run.
        source: The program.
        offered: The tools it would have.
        limits: Bounds of the check itself.
        judge_arguments: Whether a call fails for certain when its tool would refuse the arguments.
    """
    tools = offered.namespace(source, _refuse, judge_arguments=judge_arguments)
    helpers = Helpers(offered.definitions, None).namespace(tools.name)
    program = Program(source, (tools, helpers), offered.hints, check_only=True)
    return await sandbox.run(program, limits=limits, stop=Stop())


async def _refuse(call: HostCall) -> JsonValue:
    raise HostFunctionError(f"the program is only checked; {call.member} is not called")
