"""Whatever callers, tools and policies make up: the log can be opened again, and says what happened."""

from __future__ import annotations

import pytest

from codemode import SessionLog, open_service
from tool_bindings import Accept, Output, ToolDefinition, ToolRegistry
from tool_bindings.results import ErrorInfo, ToolErrorRecord, ToolFailure

pytestmark = pytest.mark.needs_linux

SHAPELESS = [[{"type": ""}], [{"type": 5}], [{"text": "no type"}], ["no block"], [[]]]


def registry_of(blocks=None):
    registry = ToolRegistry()

    async def execute(_arguments, _context):
        return 1

    render = None if blocks is None else lambda _arguments, _value: blocks
    registry.register(
        ToolDefinition("odd", "Be odd.", {"type": "object"}, Output(schema={}, render=render), execute)
    )
    return registry


def failing_with(*info):
    async def around(_call, _proceed):
        return ToolFailure(
            ToolErrorRecord("refused", ErrorInfo(*info)), [{"type": "text", "text": "refused"}]
        )

    return around


def showing(blocks):
    async def after(_call, _result, _proceed):
        return Accept(content=blocks)

    return after


async def outcomes(tmp_path, registry, *, name="odd"):
    """Call a tool directly and from a program; return both failures, once the log has been read again."""
    path = tmp_path / "events.jsonl"
    with SessionLog.open(path) as log:
        async with open_service(registry, session_log=log) as service:
            direct = await service.call(name, {})
            run = await service.run_code(
                f"try:\n    return await tools[{name!r}]()\n"
                "except (ToolCallError, LookupError) as error:\n    return str(error)"
            )
    with SessionLog.load(path) as log:
        ends = [event["data"] for event in log.events() if event["type"] == "tool/result"]
    assert 2 == len(ends)
    return direct, run, ends


@pytest.mark.parametrize("name", ["", "no such tool"])
async def test_a_name_that_stands_for_no_tool(tmp_path, name):
    direct, _, _ = await outcomes(tmp_path, registry_of(), name=name)
    assert "unknown tool" in direct.error.message


@pytest.mark.parametrize("blocks", SHAPELESS)
async def test_a_rendering_that_is_no_list_of_blocks(tmp_path, blocks):
    direct, run, _ = await outcomes(tmp_path, registry_of(blocks))
    assert "content blocks such as" in direct.error.message
    assert "content blocks such as" in run.result


@pytest.mark.parametrize("blocks", SHAPELESS)
async def test_a_policy_that_shows_no_list_of_blocks(tmp_path, blocks):
    registry = registry_of()
    registry.on_post_execute(showing(blocks))
    direct, _run, _ = await outcomes(tmp_path, registry)
    assert "must be a list of blocks" in direct.error.message


@pytest.mark.parametrize("info", [("", "C"), ("N", ""), ("N", 5), (None, "C")])
async def test_a_failure_whose_name_or_code_cannot_be_recorded_has_none(tmp_path, info):
    registry = registry_of()
    registry.around(failing_with(*info))
    direct, _, (direct_end, _) = await outcomes(tmp_path, registry)
    assert "refused" in direct.error.message
    assert "error" not in direct_end
