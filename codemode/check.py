"""Judging a program without running it.

It goes to a worker like any other, since a program is hostile text before it is anything else, and stops
where its first statement would run.

Knows: which namespaces the program would have. Does not know: calls, events, turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemode.helpers import Helpers
from codemode.hints import hints_for
from codemode.namespace import tools_namespace
from sandbox.supervisor import Stop
from sandbox.vocabulary import HostCall, HostFunctionError, Outcome, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandbox.limits import Limits
    from sandbox.supervisor import Sandbox
    from sandbox.values import JsonValue
    from tool_bindings.definition import ToolDefinition


async def check_program(
    sandbox: Sandbox,
    source: str,
    definitions: Sequence[ToolDefinition],
    limits: Limits,
    *,
    judge_arguments: bool,
) -> Outcome:
    """Return how the program's start ends; without a failure, it may start.

    Args:
        sandbox: Where it would run.
        source: The program.
        definitions: The tools it would have.
        limits: Bounds of the check itself.
        judge_arguments: Whether a call fails for certain when its tool would refuse the arguments.
    """
    tools = tools_namespace(definitions, source, _refuse, judge_arguments=judge_arguments)
    helpers = Helpers(definitions, None).namespace(tools.name)
    names = [definition.name for definition in definitions]
    program = Program(source, (tools, helpers), hints_for(names), check_only=True)
    return await sandbox.run(program, limits=limits, stop=Stop())


async def _refuse(call: HostCall) -> JsonValue:
    raise HostFunctionError(f"the program is only checked; {call.member} is not called")
