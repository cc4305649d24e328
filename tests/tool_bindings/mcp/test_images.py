"""Pictures in answers: all of a result are shown, or none and why."""

from __future__ import annotations

import base64

import pytest

from tool_bindings.attachments import attachments
from tool_bindings.mcp.images import MAX_IMAGES, has_images, shown_content

PNG = {
    "type": "image",
    "mimeType": "image/png",
    "data": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(),
}


def text(words):
    return {"type": "text", "text": words}


def test_texts_between_pictures_are_joined_and_stay_in_place():
    blocks = shown_content("t", [text("a"), text("b"), PNG, text("c")])
    assert [text("a\nb"), "image", text("c")] == [
        "image" if block["type"] == "image" else block for block in blocks
    ]
    assert attachments.find(blocks[1]).data.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({**PNG, "mimeType": "image/tiff"}, "[image unavailable: image/tiff; only image/png, "),
        ({"type": "image"}, "[image unavailable: unknown media type; only image/png, "),
        ({**PNG, "data": "AAAA"}, "[image unavailable: image/png; its data is no image/png; "),
    ],
)
def test_one_picture_that_cannot_be_shown_keeps_back_the_others(bad, reason):
    """spec/mcp 4.6."""
    (block,) = shown_content("t", [PNG, bad])
    first, second = block["text"].splitlines()
    assert "image/png; another image of the same result cannot be shown; raw image data remains" in first
    assert second.startswith(reason)


def test_too_many_or_too_large_together_are_only_named():
    (block,) = shown_content("t", [PNG] * (MAX_IMAGES + 1))
    assert MAX_IMAGES + 1 == block["text"].count("a result may show at most 20 images")
    large = {**PNG, "data": base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(4_000_000)).decode()}
    (block,) = shown_content("t", [large] * 5)
    assert "may have at most 16777216 bytes" in block["text"]


def test_long_texts_around_pictures_are_cut_like_all_others():
    blocks = shown_content("t", [text("x" * 20_000), PNG, text("y" * 20_000), PNG])
    assert ["text", "image", "text", "image"] == [block["type"] for block in blocks]
    assert sum(len(block["text"]) for block in blocks if block["type"] == "text") < 18_000


@pytest.mark.parametrize("content", [[], ["image"], [text("image")], [{"type": "audio"}], [None]])
def test_only_image_blocks_are_pictures(content):
    assert not has_images(content)
