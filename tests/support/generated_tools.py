"""Seeded random tools: every kind of schema the vocabulary has, and names of every kind."""

from __future__ import annotations

import random
from typing import Any

from tool_bindings import Output, ToolDefinition

_WORDS = "get set list make find item user page row file total state kind naïve größe データ 搜索 ключ"
WORDS = _WORDS.split()
ODD_NAMES = [
    "class", "await", "self", "None", "_private", "__init__", "exotic-name", "ns.get", "2fa", "x y", "ﬁ",
    "match", "print", "!!!", 'quo"te', "back\\slash", "new\nline", "tools", "type", "日本", "a" * 300,
]  # fmt: skip
ODD_KEYS = [
    "from", "self", "a-b", "__token", "__meta__", "_", "match", "ÿ", "1st", "", "x y", "Any", "str", "list",
]  # fmt: skip
ODD_TEXTS = [
    'say "hi"', 'ends with quote"', "backslash\\", '"""', "nul\x00", "\ud800", "a\n\nb", "```", "#", "\u202e",
]  # fmt: skip


def generated_tools(count: int, seed: int = 0) -> list[ToolDefinition]:
    """Return `count` tools, the same for the same seed in every process."""
    source = random.Random(seed)
    tools = {}
    while len(tools) < count:
        name = source.choice(ODD_NAMES) if source.random() < 0.15 else "_".join(source.sample(WORDS, 3))
        if name not in tools:
            tools[name] = ToolDefinition(
                name, _text(source), _record(source, 2), Output(_schema(source, 4)), _nothing
            )
    return list(tools.values())


def _schema(source: random.Random, depth: int) -> dict[str, Any]:
    kinds = ["string", "number", "integer", "boolean", "null", "any", "enum", "const"]
    kind = source.choice(kinds + (["array", "object", "object", "oneOf", "map"] if depth else []))
    if kind == "any":
        return {}
    if kind == "enum":
        return {"type": "string", "enum": source.sample([*WORDS, *ODD_TEXTS[:4]], 3)}
    if kind == "const":
        return {"type": "integer", "const": source.choice([0, -1, 2**60])}
    if kind == "array":
        return (
            {"type": "array", "items": _schema(source, depth - 1)}
            if source.random() < 0.9
            else {"type": "array"}
        )
    if kind == "object":
        return _record(source, depth)
    if kind == "map":
        return {"type": "object", "additionalProperties": _schema(source, depth - 1)}
    if kind == "oneOf":
        return {"oneOf": [_schema(source, depth - 1) for _ in range(source.randint(2, 3))]}
    return {"type": kind} | ({"description": _text(source)} if source.random() < 0.3 else {})


def _record(source: random.Random, depth: int) -> dict[str, Any]:
    keys = [source.choice(ODD_KEYS) if source.random() < 0.1 else source.choice(WORDS) for _ in range(4)]
    properties = {key: _schema(source, depth - 1) for key in keys[: source.randint(0, 4)]}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if source.random() < 0.7:
        schema["additionalProperties"] = False
    if properties and source.random() < 0.7:
        schema["required"] = [key for key in properties if source.random() < 0.5]
    return schema


def _text(source: random.Random) -> str:
    return source.choice([*ODD_TEXTS, "", "Do one thing.", "Do one thing.\nWell."])


async def _nothing(_arguments: object, _context: object) -> object:
    return None
