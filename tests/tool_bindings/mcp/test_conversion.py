"""Answers of servers as canonical values and as text; spec/mcp 4.4 and 4.5."""

from __future__ import annotations

import pytest

from tool_bindings.errors import InvalidResultError
from tool_bindings.mcp import McpCallError
from tool_bindings.mcp.conversion import canonical_value, projected_text, renderer


def test_blocks_stay_as_they_were_sent():
    content = [
        {"type": "text", "text": "a", "x": 1},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        5,
    ]
    assert {"content": content} == canonical_value("t", {"content": content, "_meta": {"a": 1}})


def test_structured_content_is_there_only_when_it_was_sent():
    assert {"content": [], "structuredContent": None} == canonical_value(
        "t", {"content": [], "structuredContent": None}
    )
    assert {"content": [{"type": "text", "text": '{"n": 1}'}]} == canonical_value(
        "t", {"content": [{"type": "text", "text": '{"n": 1}'}]}
    )


def test_an_answer_from_before_content_blocks_becomes_one_text():
    assert {"content": [{"type": "text", "text": '{"a":1}'}]} == canonical_value(
        "t", {"toolResult": {"a": 1}}
    )
    assert {"content": [{"type": "text", "text": "(no output)"}]} == canonical_value("t", {})


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"content": [{"type": "text", "text": "no such city"}], "isError": True}, "no such city"),
        ({"toolResult": "old", "isError": True}, '"old"'),
        ({"content": [], "isError": True}, r"\(t returned no model-visible content\)"),
        ({"resultType": "input_required"}, "more input"),
        ([], "not an object"),
    ],
)
def test_a_failed_call_raises_what_the_server_said(result, words):
    with pytest.raises(McpCallError, match=words):
        canonical_value("t", result)


def test_a_failure_text_is_bounded():
    with pytest.raises(McpCallError) as caught:
        canonical_value("t", {"content": [{"type": "text", "text": "x" * 1_000_000}], "isError": True})
    assert 16_384 == len(str(caught.value))


def test_a_value_nested_too_deep_breaks_the_output_declaration():
    value = []
    for _ in range(600):
        value = [value]
    with pytest.raises(InvalidResultError, match="500 levels"):
        canonical_value("t", {"content": [], "structuredContent": value})


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "resource_link", "name": "n", "uri": "file:///x"}, "Resource link: n (file:///x)"),
        ({"type": "resource_link"}, "[resource link without a name or a uri]"),
        ({"type": "hologram"}, "[unsupported MCP content type: hologram]"),
        ({}, "[unsupported MCP content type: none]"),
        (7, "[malformed MCP content block: expected an object]"),
    ],
)
def test_each_block_has_its_text(block, text):
    assert text == projected_text("t", [block])


def test_data_that_is_not_text_is_named_with_its_media_type_and_not_shown():
    blocks = [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "x:1", "blob": "AAAA"}},
    ]
    text = projected_text("t", blocks)
    assert "image/png" in text
    assert "unknown media type" in text
    assert "x:1" in text
    assert "AAAA" not in text
    assert 3 == text.count("remains available to programmatic callers")


def test_texts_are_joined_and_a_text_block_without_text_is_skipped():
    assert "a\nb" == projected_text(
        "t", [{"type": "text", "text": "a"}, {"type": "text"}, {"type": "text", "text": "b"}]
    )
    assert "(t returned no model-visible content)" == projected_text("t", [{"type": "text"}])


def test_what_a_model_is_shown_is_one_text_block_of_bounded_size():
    (block,) = renderer("t")({}, {"content": [{"type": "text", "text": "x" * 1_000_000}]})
    assert "text" == block["type"]
    assert len(block["text"]) < 17_000
