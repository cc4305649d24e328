"""Pictures that results show: kept in memory while they are likely to be asked for, named by blocks.

A content block has only a reference, `{"type": "image", "attachment": {"id", "mediaType", "bytes"}}`, so that
base64 data reaches no event log; whoever shows the block to a model asks here for what it stands for.

Knows: bytes, media types, bounds. Does not know: tools, files.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox.values import JsonValue
    from tool_bindings.content import ContentBlock

__all__ = ["MAX_IMAGE_BYTES", "MEDIA_TYPES", "Attachments", "Image", "attachments", "decoded_image"]

MAX_IMAGE_BYTES: Final = 4_194_304
"""Bytes of one picture; most models take 5 MiB of base64."""
KEPT_BYTES: Final = 67_108_864
"""Bytes of all pictures kept. Arbitrary; the oldest are forgotten first."""
MEDIA_TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")
"""What models can look at."""
_ID_BYTES: Final = 16


class Image(NamedTuple):
    """A picture."""

    media_type: str
    data: bytes


def decoded_image(media_type: object, data: object) -> Image | str:
    """Return the picture that base64 data is, or why it is not shown.

    Args:
        media_type: What the sender says it is; the data must begin as such a file does.
        data: Canonical base64: what encoding it again gives.
    """
    if media_type not in MEDIA_TYPES:
        return f"only {', '.join(MEDIA_TYPES)} can be shown"
    if not isinstance(data, str):
        return "it has no data"
    if len(data) > MAX_IMAGE_BYTES * 4 // 3 + 4:
        return f"it has more than {MAX_IMAGE_BYTES} bytes"
    try:
        plain = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "its data is not base64"
    if base64.b64encode(plain).decode("ascii") != data:
        return "its data is not canonical base64"
    if len(plain) > MAX_IMAGE_BYTES:
        return f"it has more than {MAX_IMAGE_BYTES} bytes"
    if _begins_as(plain) != media_type:
        return f"its data is no {media_type}"
    return Image(str(media_type), plain)


def _begins_as(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


class Attachments:
    """Pictures by id. An id is random, so who was not given it cannot name it.

    Args:
        kept_bytes: Bytes kept at most.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._images: OrderedDict[str, Image] = OrderedDict()
        self._size = 0

    def keep(self, image: Image) -> ContentBlock:
        """Keep a picture and return the block that shows it; the oldest make room."""
        name = f"image-{secrets.token_hex(_ID_BYTES)}"
        self._images[name] = image
        self._size += len(image.data)
        while self._size > self._kept_bytes and len(self._images) > 1:
            _, oldest = self._images.popitem(last=False)
            self._size -= len(oldest.data)
        reference: dict[str, JsonValue] = {
            "id": name,
            "mediaType": image.media_type,
            "bytes": len(image.data),
        }
        return {"type": "image", "attachment": reference}

    def find(self, block: Mapping[str, Any]) -> Image | None:
        """Return the picture that a block shows, or None when it is kept no longer or never was."""
        reference = block.get("attachment")
        name = reference.get("id") if isinstance(reference, dict) else None
        return self._images.get(name) if isinstance(name, str) else None


attachments: Final = Attachments()
"""Those of this process. In memory only: a log that is read later names them and no more."""
