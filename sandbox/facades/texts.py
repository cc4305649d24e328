"""`ast` and `codecs`: the functions of theirs that turn text into values and back.

Knows: those functions. Does not know: syntax trees, codec registries, which stay out.
"""

from __future__ import annotations

import ast
import codecs
from typing import Any

from sandbox.facades.exact import exact

_TREES = "syntax trees are not part of the language; ast.literal_eval reads a value, json.loads reads JSON"

AST_MISSING = dict.fromkeys(("parse", "walk", "dump", "unparse", "NodeVisitor", "NodeTransformer"), _TREES)
"""What to write instead of the names left out."""

_MARKS = "BOM BOM_BE BOM_LE BOM_UTF8 BOM_UTF16 BOM_UTF16_BE BOM_UTF16_LE BOM_UTF32 BOM_UTF32_BE BOM_UTF32_LE"


def literal_eval(node_or_string: Any) -> Any:
    """Return the value that a literal stands for."""
    text = exact(node_or_string)
    if type(text) is not str:
        raise TypeError(f"literal_eval takes a string, not {type(node_or_string).__name__!r}")
    return ast.literal_eval(text)


def _coded(obj: Any) -> Any:
    if not isinstance(obj, str | bytes | bytearray | memoryview):
        raise TypeError(f"text or bytes are needed, not {type(obj).__name__!r}")
    return exact(obj)


def encode(obj: Any, encoding: str = "utf-8", errors: str = "strict") -> Any:
    """Encode by the name of a codec."""
    return codecs.encode(_coded(obj), exact(encoding), exact(errors))


def decode(obj: Any, encoding: str = "utf-8", errors: str = "strict") -> Any:
    """Decode by the name of a codec."""
    return codecs.decode(_coded(obj), exact(encoding), exact(errors))


def ast_members() -> dict[str, object]:
    """Return what `import ast` offers."""
    return {"literal_eval": literal_eval}


def codecs_members() -> dict[str, object]:
    """Return what `import codecs` offers."""
    return {**{name: getattr(codecs, name) for name in _MARKS.split()}, "decode": decode, "encode": encode}
