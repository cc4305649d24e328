"""Text as files hold it: UTF-8, with one of two line ends.

Knows: decoding, line ends, and what counts as binary.
Does not know: paths, tools.
"""

from __future__ import annotations

from tool_bindings.tools.errors import ToolUsageError

__all__ = ["decode_or_none", "encode_argument", "to_lf", "uses_crlf"]

_STYLE_CHARACTERS = 4096  # As much of a file as decides its line ends.


def to_lf(text: str) -> str:
    """Turn CRLF line ends into LF; a lone CR is left alone."""
    return text.replace("\r\n", "\n")


def uses_crlf(text: str) -> bool:
    """Tell whether most line ends at the start of a text are CRLF."""
    head = text[:_STYLE_CHARACTERS]
    crlf = head.count("\r\n")
    return crlf > head.count("\n") - crlf


def decode_or_none(content: bytes) -> str | None:
    """Decode a file's content, or return None when it is not text (a NUL, or invalid UTF-8)."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def encode_argument(text: str, name: str) -> bytes:
    """Encode an argument that is to become a file's content.

    Args:
        text: The argument.
        name: Its parameter name, for the message.

    Raises:
        ToolUsageError: It holds a lone surrogate, which UTF-8 cannot write.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolUsageError(
            f"{name} holds a lone surrogate (U+{ord(text[error.start]):04X}) at position {error.start}, "
            "which UTF-8 cannot write; remove or replace it"
        ) from None
