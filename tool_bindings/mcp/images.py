"""Pictures in answers of MCP servers: shown where all of a result can be, else named with the reason.

Knows: content blocks of answers, bounds. Does not know: who looks at them, connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tool_bindings.attachments import Image, attachments, decoded_image
from tool_bindings.content import DEFAULT_RENDER_BYTES, render_value, text_block
from tool_bindings.mcp.conversion import projected_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tool_bindings.content import ContentBlock

__all__ = ["has_images", "shown_content"]

MAX_IMAGES: Final = 20
"""Pictures of one result. Arbitrary: more than anybody compares."""
MAX_RESULT_BYTES: Final = 16_777_216
"""Bytes of all pictures of one result."""


def has_images(content: Sequence[Any]) -> bool:
    """Whether there is a picture among the blocks of an answer."""
    return any(isinstance(block, dict) and block.get("type") == "image" for block in content)


def shown_content(raw_name: str, content: Sequence[Any]) -> list[ContentBlock]:
    """Return what a model is shown of an answer with pictures.

    They are all shown or none: a model that compares two pictures must not compare one with nothing.
    """
    images, reasons = _admitted(content)
    blocks: list[ContentBlock] = []
    run: list[str] = []
    room = DEFAULT_RENDER_BYTES

    def end_run() -> None:
        nonlocal room
        if run:
            text = render_value("\n".join(run), max(room, _LEAST_TEXT_BYTES))
            room -= len(text.encode("utf-8", "surrogatepass"))
            blocks.append(text_block(text))
            run.clear()

    for index, piece in projected_pieces(raw_name, content, reasons):
        if index in images:
            end_run()
            blocks.append(attachments.keep(images[index]))
        else:
            run.append(piece)
    end_run()
    return blocks


_LEAST_TEXT_BYTES: Final = 256
"""What a text between two pictures may always have, however long the texts before it were."""


def _admitted(content: Sequence[Any]) -> tuple[Mapping[int, Image], Mapping[int, str]]:
    """Return all pictures by the index of their blocks, or why none of them is shown."""
    found = {
        index: decoded_image(block.get("mimeType"), block.get("data"))
        for index, block in enumerate(content)
        if isinstance(block, dict) and block.get("type") == "image"
    }
    images = {index: image for index, image in found.items() if isinstance(image, Image)}
    if len(images) < len(found):
        sibling = "another image of the same result cannot be shown"
        return {}, {index: image if isinstance(image, str) else sibling for index, image in found.items()}
    if len(found) > MAX_IMAGES:
        return {}, dict.fromkeys(found, f"a result may show at most {MAX_IMAGES} images")
    if sum(len(image.data) for image in images.values()) > MAX_RESULT_BYTES:
        return {}, dict.fromkeys(found, f"the images of a result may have at most {MAX_RESULT_BYTES} bytes")
    return images, {}
