"""Answers of MCP servers arrive with their meaning: the bridge annotates what the pipeline returns."""

import pytest

from tool_bindings import Output, ToolDefinition
from tool_bindings.annotated import record_of, to_mcp
from tool_bindings.mcp.tools import McpTool


@pytest.fixture
def answer_with(registry):
    """Call a tool of a server that gives a fixed answer; return the result and its record."""

    async def answer_with(answer):
        class Connection:
            async def call_tool(self, *_args, **_kwargs):
                return answer

        records = []
        registry.on_result(lambda call, result: records.append(record_of(call, result)))
        body = McpTool("files", "list", Connection, needs_task=False)
        registry.register(ToolDefinition("mcp__files__list", "", {"type": "object"}, Output({}), body))
        result = await registry.dispatch("mcp__files__list", {}, call_id="call_9")
        return result, records[0]

    return answer_with


async def test_an_answer_keeps_its_blocks_and_unknown_members(answer_with):
    content = [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "x": 1}]
    result, record = await answer_with(
        {"content": content, "structuredContent": {"n": 1}, "_meta": {"a/b": 1}, "status": "odd", "x": [2]}
    )
    assert {"content": content, "structuredContent": {"n": 1}} == result.value
    annotation = record["annotation"]
    assert ("succeeded", content, {"n": 1}, {"a/b": 1}, [2], {"toolCallId": "call_9"}) == tuple(
        annotation[name] for name in ("status", "content", "structuredContent", "_meta", "x", "correlation")
    )
    out = to_mcp(record)
    assert (content, {"n": 1}, False) == (out["content"], out["structuredContent"], out["isError"])


async def test_an_error_answer_is_a_failure_with_its_blocks(answer_with):
    content = [{"type": "text", "text": "denied", "annotations": {"audience": ["user"]}}]
    result, record = await answer_with({"content": content, "isError": True})
    assert (True, "denied") == (result.is_error, result.error.message)
    assert ("failed", content, None) == (
        record["annotation"]["status"],
        record["annotation"]["content"],
        record["result"],
    )


async def test_an_answer_with_odd_blocks_costs_its_annotation_only(answer_with):
    odd = {"content": [{"type": "text"}, 5]}
    result, record = await answer_with(odd)
    assert odd == result.value
    assert ("succeeded", odd) == (
        record["annotation"]["status"],
        record["annotation"]["structuredContent"],
    )
