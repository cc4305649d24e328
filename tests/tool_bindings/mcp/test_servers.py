"""Servers that behave, and servers that do not: each fault has a clear outcome and leaves nothing behind."""

from __future__ import annotations

import base64

import pytest

from sandbox.values import json_size
from tool_bindings import AbortSignal, Accept, Block, ToolRegistry, blocks_text, text_block
from tool_bindings.attachments import attachments
from tool_bindings.mcp import (
    McpConfigError,
    McpStartError,
    McpUnavailableError,
    open_mcp_servers,
    origin_of,
    parse_mcp_config,
)

FAST = {"reconnect": {"initialDelayMs": 1, "maxDelayMs": 2, "maxAttempts": 2}}


async def test_an_ordinary_server_of_the_sdk_works_from_list_to_progress(behave):
    async with behave(one=("", {})) as opened:
        assert ("MCP server 'one': connected (ordinary 1.2, 7 tools)", False) == opened.said[0]
        definition = opened.registry.get("mcp__one__add")
        assert ("one", "add") == origin_of(definition)
        assert "Add two integers." == definition.description
        result = await opened.call("mcp__one__add", {"a": 1, "b": 2})
        assert {"total": 3, "parts": [1, 2]} == result.value["structuredContent"]
        assert '"total": 3' in blocks_text(result.content)

        result = await opened.call("mcp__one__greet", {"name": "Ada"})
        assert {"content": [{"type": "text", "text": "Hello, Ada!"}]} == result.value

        result = await opened.call("mcp__one__add", {"a": "one"})
        assert "INVALID_ARGS" == result.error.info.code
        result = await opened.call("mcp__one__fail", {"reason": "because"})
        assert (True, None) == (result.is_error, result.error.info)
        assert "Error executing tool fail" in result.error.message

        result = await opened.call("mcp__one__environment")
        names = result.value["content"][0]["text"]
        assert "PATH" in names
        assert "PYTEST_CURRENT_TEST" not in names

        reported, abort = [], AbortSignal()

        def report(*progress):
            reported.append(progress)
            abort.abort("enough")

        result = await opened.call("mcp__one__slow", progress=report, abort=abort)
        assert "ABORTED" == result.error.info.code
        assert [(1, 3, "a third")] == reported

        assert not (await opened.call("mcp__one__grow")).is_error
        assert "has a new tool list (8 tools)" in await opened.wait_for("new tool list")
        result = await opened.call("mcp__one__extra")
        assert {"result": 7} == result.value["structuredContent"]


async def test_a_server_that_dies_during_a_call_leaves_the_outcome_unknown_and_comes_back(behave):
    async with behave(s=("die", FAST)) as opened:
        result = await opened.call("mcp__s__x")
        assert "TOOL_OUTCOME_UNKNOWN" == result.error.info.code
        assert "ToolOutcomeUnknownError" == result.error.info.name
        assert "went away during 'x'" in result.error.message
        assert "It said last: fatal: out of cheese" in result.error.message
        await opened.wait_for("the connection was lost; trying again in 0.001 s")
        # Its tools stay, so that a program is told the reason.
        assert ["mcp__s__x"] == opened.registry.names()
        await opened.wait_for("connected")
        assert "went away" in (await opened.call("mcp__s__x")).error.message


async def test_a_server_that_hangs_is_left_at_the_deadline_and_told_to_stop(behave):
    async with behave(s=("hang", {"toolCallTimeoutMs": 50})) as opened:
        result = await opened.call("mcp__s__x")
        assert "TOOL_OUTCOME_UNKNOWN" == result.error.info.code
        assert "did not answer 'x' within 0.05 s and was told to stop" in result.error.message
        # How this server shows that the word has arrived.
        await opened.wait_for("new tool list")
        (status,) = opened.servers.statuses()
        assert ("connected", None) == (status.state, status.error)


async def test_a_value_that_breaks_the_servers_own_schema_is_an_invalid_output(behave):
    async with behave(s=("liar", {})) as opened:
        result = await opened.call("mcp__s__x")
        assert "INVALID_TOOL_OUTPUT" == result.error.info.code
        assert '"value.structuredContent.n" must be an integer' in result.error.message


async def test_ten_megabytes_arrive_whole_and_are_shown_cut(behave):
    async with behave(s=("large", {})) as opened:
        result = await opened.call("mcp__s__x")
        assert json_size(result.value) > 10_000_000
        assert len(blocks_text(result.content)) < 17_000


async def test_tools_whose_names_meet_after_cleaning_are_both_there_under_their_own_names(behave):
    async with behave(s=("collide", {})) as opened:
        names = {origin_of(opened.registry.get(name))[1]: name for name in opened.registry.names()}
        assert {"a.b", "a_b", "a b"} == names.keys()
        for raw, name in names.items():
            result = await opened.call(name)
            assert f'"name": "{raw}"' in result.value["content"][0]["text"]
        assert 3 == len(opened.servers.aliases()["s.a_b"])


async def test_a_list_with_one_name_twice_is_not_used_at_all(behave):
    async with behave(s=("twice", FAST)) as opened:
        assert [] == opened.registry.names()
        assert "lists two tools named 'same'" in opened.said[0][0]


async def test_a_list_that_changes_is_followed_and_a_bad_one_changes_nothing(behave):
    async with behave(good=("change", {}), bad=("spoil", {})) as opened:
        await opened.call("mcp__good__x")
        await opened.wait_for("'good': has a new tool list (2 tools)")
        await opened.call("mcp__bad__x")
        await opened.wait_for("'bad': its new tool list is not used: it lists two tools named 'z'")
        assert ["mcp__bad__x", "mcp__good__x", "mcp__good__y"] == opened.registry.names()
        assert not (await opened.call("mcp__bad__x")).is_error


async def test_junk_on_standard_output_disturbs_nothing(behave):
    async with behave(s=("junk", {})) as opened:
        assert not (await opened.call("mcp__s__x")).is_error


async def test_a_slow_start_is_waited_for_and_a_quick_server_does_not_wait_with_it(behave):
    # The five seconds; real ones, since the child has no other clock.
    async with behave(slow=("late 5", {}), quick=("plain", {})) as opened:
        assert ["quick", "slow"] == [text.split("'")[1] for text, _ in opened.said]
        assert ["mcp__quick__x", "mcp__slow__x"] == opened.registry.names()


async def test_a_server_that_never_answers_is_tried_again_and_given_up_by_name(behave):
    own = {"startupTimeoutMs": 100, "reconnect": {"initialDelayMs": 1, "maxDelayMs": 2, "maxAttempts": 1}}
    async with behave(s=("never", own), t=("plain", {})) as opened:
        text = await opened.wait_for("given up")
        assert "did not complete the handshake within 0.1 s; given up after 1 attempt to reconnect" in text
        assert "given-up" == opened.servers.statuses()[0].state
        assert not (await opened.call("mcp__t__x")).is_error


async def test_a_server_that_ends_at_once_is_quoted(behave):
    async with behave(s=("dead", FAST)) as opened:
        text, problem = opened.said[0]
        assert problem
        assert "ended before the handshake was complete. It said last: cannot find my configuration" in text


async def test_a_server_that_must_be_there_fails_the_start():
    document = {"mcpServers": {"s": {"command": "/nonexistent/x", "codemode": {"failOnStartupError": True}}}}
    with pytest.raises(McpStartError, match="'s': cannot start '/nonexistent/x': no such command"):
        async with open_mcp_servers(ToolRegistry(), parse_mcp_config(document)):
            pytest.fail("the body must not run")


async def test_what_the_body_raises_comes_out_bare(behave):
    with pytest.raises(ZeroDivisionError):
        async with behave(s=("plain", {})):
            raise ZeroDivisionError


async def test_a_server_and_its_children_that_cling_to_life_are_killed(behave):
    async with behave(s=("stubborn", {})) as opened:
        assert not (await opened.call("mcp__s__x")).is_error
        assert 3 == len(opened.started)


async def test_without_reconnecting_tools_stay_and_say_why_they_fail(behave):
    async with behave(s=("die", {"reconnect": {"enabled": False}})) as opened:
        await opened.call("mcp__s__x")
        await opened.wait_for("reconnecting is switched off")
        message = (await opened.call("mcp__s__x")).error.message
        assert "not connected (the connection was lost); nothing was sent" in message


@pytest.mark.parametrize(
    ("behaviour", "value"),
    [
        ("odd", {"content": [{"type": "hologram", "z": 1}, "bare", {"type": "text"}]}),
        ("legacy", {"content": [{"type": "text", "text": '{"old":true}'}]}),
        ("surrogate", {"content": [{"type": "text", "text": "\ud800"}]}),
    ],
)
async def test_answers_of_every_age_and_shape_are_kept_as_they_came(behave, behaviour, value):
    async with behave(s=(behaviour, {})) as opened:
        assert value == (await opened.call("mcp__s__x")).value


async def test_numbers_are_exact_and_nan_fails_its_call_at_once(behave):
    async with behave(big=("integer", {}), bad=("nan", {})) as opened:
        assert 10**30 == (await opened.call("mcp__big__x")).value["structuredContent"]["n"]
        message = (await opened.call("mcp__bad__x")).error.message
        assert "refused 'x': not JSON" in message


async def test_pictures_are_shown_in_their_places_and_only_named_in_blocks(behave):
    async with behave(s=("picture", {})) as opened:
        result = await opened.call("mcp__s__x")
        assert ["text", "image", "text", "image"] == [block["type"] for block in result.content]
        assert "after" == result.content[2]["text"]
        assert ("image/png", 18) == (
            result.content[1]["attachment"]["mediaType"],
            result.content[1]["attachment"]["bytes"],
        )
        image = attachments.find(result.content[1])
        assert image.data.startswith(b"\x89PNG")
        assert "image/png" == result.value["content"][1]["mimeType"]
        assert image.data == base64.b64decode(result.value["content"][1]["data"])


@pytest.mark.parametrize(
    "decision",
    [
        Accept(content=[text_block("other")]),
        Accept(value={"content": [{"type": "text", "text": "other"}]}),
        Block([text_block("other")]),
    ],
)
async def test_what_a_policy_makes_of_a_result_beats_its_pictures(behave, decision):
    """spec/tests 153."""

    async def decide(call, result, proceed):
        return decision

    async with behave(s=("picture", {})) as opened:
        opened.registry.on_post_execute(decide)
        result = await opened.call("mcp__s__x")
        assert [text_block("other")] == list(result.content)


async def test_a_refused_call_and_a_tool_that_needs_a_task_say_so(behave):
    async with behave(s=("refuse-call", {}), t=("task", {})) as opened:
        assert "MCP server 's' refused 'x': unknown tool" == (await opened.call("mcp__s__x")).error.message
        message = (await opened.call("mcp__t__x")).error.message
        assert "only runs as a background task" in message


async def test_text_of_servers_is_cut_and_stripped(behave):
    async with behave(s=("hidden", {}), t=("refuse", FAST)) as opened:
        description = opened.registry.get("mcp__s__x").description
        assert description.startswith("plain text")
        assert 4000 == len(description)
        assert any("cannot list its tools: no tools here" in text for text, _ in opened.said)


async def test_all_pages_of_a_list_are_read_and_an_endless_one_is_left(behave):
    async with behave(s=("many", {}), t=("endless", FAST)) as opened:
        assert 250 == len(opened.registry.names())
        assert any("more than 100 pages" in text for text, _ in opened.said)


async def test_calls_overlap_only_where_the_operator_says_so(behave):
    async with behave(a=("plain", {"concurrencySafe": ["x"]}), b=("plain", {})) as opened:
        assert "parallel" == opened.registry.execution_mode("mcp__a__x", {})
        assert "exclusive" == opened.registry.execution_mode("mcp__b__x", {})


async def test_two_servers_of_one_name_are_refused():
    (config,) = parse_mcp_config({"mcpServers": {"s": {"command": "x"}}})
    with pytest.raises(McpConfigError, match="two MCP servers are named 's'"):
        async with open_mcp_servers(ToolRegistry(), [config, config]):
            pytest.fail("the body must not run")


async def test_patience_ends_the_wait_but_not_the_attempt(behave):
    opened_registry = ToolRegistry()
    document = {"mcpServers": {"s": {"command": "sleep", "args": ["3600"]}}}
    async with open_mcp_servers(opened_registry, parse_mcp_config(document), patience_seconds=0) as servers:
        assert ["connecting"] == [status.state for status in servers.statuses()]


def test_unavailable_is_no_harness_error():
    # A plain message: the receipt says "failed" and not "unknown", since nothing was sent.
    assert not hasattr(McpUnavailableError("x"), "code")
