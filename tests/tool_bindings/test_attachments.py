"""Pictures that blocks refer to: what is taken for one, and how long it is kept."""

from __future__ import annotations

import base64

import pytest

from tool_bindings.attachments import MAX_IMAGE_BYTES, Attachments, Image, decoded_image

PNG = b"\x89PNG\r\n\x1a\n"
SAMPLES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a....",
    "image/webp": b"RIFF....WEBPVP8 ",
}


def encoded(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(("media_type", "data"), SAMPLES.items())
def test_each_kind_of_picture_is_taken(media_type, data):
    assert Image(media_type, data) == decoded_image(media_type, encoded(data))


@pytest.mark.parametrize(
    ("media_type", "data", "words"),
    [
        ("image/svg+xml", encoded(b"<svg/>"), "can be shown"),
        (None, encoded(PNG), "can be shown"),
        (["image/png"], encoded(PNG), "can be shown"),
        ("image/png", None, "it has no data"),
        ("image/png", "not base64!", "not base64"),
        ("image/png", "é", "not base64"),
        ("image/png", encoded(PNG).replace("o=", "p="), "not canonical"),
        ("image/png", encoded(b"\xff\xd8\xff\xe0"), "its data is no image/png"),
        ("image/png", "", "its data is no image/png"),
        ("image/png", encoded(PNG + bytes(MAX_IMAGE_BYTES)), f"more than {MAX_IMAGE_BYTES} bytes"),
        ("image/png", encoded(PNG + bytes(MAX_IMAGE_BYTES - 7)), f"more than {MAX_IMAGE_BYTES} bytes"),
    ],
)
def test_what_is_no_picture_says_why(media_type, data, words):
    assert words in decoded_image(media_type, data)


def test_the_largest_picture_is_taken():
    data = PNG + bytes(MAX_IMAGE_BYTES - len(PNG))
    assert Image("image/png", data) == decoded_image("image/png", encoded(data))


def test_a_block_refers_to_a_picture_without_its_data():
    kept = Attachments()
    block = kept.keep(Image("image/png", PNG))
    assert {"type", "attachment"} == block.keys()
    assert {"id", "mediaType", "bytes"} == block["attachment"].keys()
    assert Image("image/png", PNG) == kept.find(block)
    assert block["attachment"]["id"] != kept.keep(Image("image/png", PNG))["attachment"]["id"]


def test_the_oldest_make_room():
    kept = Attachments(kept_bytes=20)
    first, second, third = (kept.keep(Image("image/png", PNG)) for _ in range(3))
    assert None is kept.find(first)
    assert None is not kept.find(second)
    large = kept.keep(Image("image/png", bytes(100)))
    assert (None, None) == (kept.find(second), kept.find(third))
    assert 100 == len(kept.find(large).data)


@pytest.mark.parametrize(
    "block", [{}, {"attachment": "x"}, {"attachment": {"id": 1}}, {"attachment": {"id": "image-0"}}]
)
def test_what_refers_to_nothing_finds_nothing(block):
    assert None is Attachments().find(block)
