"""What a client of our MCP server learns of an annotation when it calls a tool directly."""

from __future__ import annotations

import pytest

from codemode.server.answers import RUN_OUTPUT, tool_answer
from tool_bindings import Output, ToolDefinition, ToolRegistry
from tool_bindings.annotated import MCP_ANNOTATION, SCHEMA
from tool_bindings.results import ToolSuccess


@pytest.fixture
def answer_of():
    """Call a tool through a registry of its own and return the MCP answer."""

    async def answer_of(body, around=None):
        registry = ToolRegistry()
        definition = ToolDefinition("tool", "", {"type": "object"}, Output({"type": "object"}), body)
        registry.register(definition)
        if around is not None:
            registry.around(around)
        return tool_answer(definition, await registry.dispatch("tool", {}))

    return answer_of


async def plain(_arguments, _context):
    return {"n": 1}


def annotated(status, *, raises=False):
    async def body(_arguments, context):
        context.annotate(
            {"schema": SCHEMA, "status": status, "content": [], "vendor": 1, "raw": {"relation": "adjacent"}}
        )
        if raises:
            raise ValueError("boom")
        return {"n": 1}

    return body


async def test_an_ordinary_result_says_success_and_nothing_else(answer_of):
    answer = await answer_of(plain)
    assert ({"n": 1}, False, False) == (answer["structuredContent"], answer["isError"], "_meta" in answer)


async def test_a_value_annotated_as_failed_is_an_error_with_its_value(answer_of):
    answer = await answer_of(annotated("failed"))
    assert ({"n": 1}, True) == (answer["structuredContent"], answer["isError"])
    assert ("failed", 1) == (
        answer["_meta"][MCP_ANNOTATION]["status"],
        answer["_meta"][MCP_ANNOTATION]["vendor"],
    )


async def test_an_unknown_status_has_no_is_error_and_the_loss_is_stated(answer_of):
    async def replace(_call, proceed):
        await proceed()
        return ToolSuccess({"n": 2}, [])

    answer = await answer_of(plain, replace)
    assert ({"n": 2}, False) == (answer["structuredContent"], "isError" in answer)
    assert "unknown" == answer["_meta"][MCP_ANNOTATION]["status"]


async def test_a_failure_says_what_its_body_added(answer_of):
    answer = await answer_of(annotated("failed", raises=True))
    assert (True, 1) == (answer["isError"], answer["_meta"][MCP_ANNOTATION]["vendor"])


def test_the_advertised_receipt_has_room_for_an_annotation():
    assert "annotation" in RUN_OUTPUT["properties"]["calls"]["items"]["properties"]
