"""The text a client's model reads of `run_code`: how a program is written, and which tools it has.

The same tools give the same bytes, so that a client's prompt cache holds.

Knows: wording and its bound. Does not know: MCP, registries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tool_bindings.stubs import render_stubs, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tool_bindings.definition import ToolDefinition

__all__ = ["describe_run_code"]

INLINE_BYTES: Final = 24_576
"""UTF-8 bytes of declarations given in full, or else of one-line signatures. Arbitrary: 6 000 tokens."""

_INTRODUCTION: Final = """\
Run one Python program instead of many tool calls. The program is the body of an async function in a
restricted sandbox: `await tools.name(key=value)` calls a tool and gives its JSON value to loop over, filter
and combine; `asyncio.gather` calls several at once. Only what you `print` or `return` (one JSON value) comes
back, so return the answer and not the raw data. A failed tool call raises ToolCallError. Nothing is kept
between programs. The common pure modules of the standard library can be imported; files, processes and
the network are reached through tools only."""


def describe_run_code(definitions: Sequence[ToolDefinition]) -> str:
    """Return the description for a set of tools."""
    if not definitions:
        return f"{_INTRODUCTION}\n\nThere are no tools."
    stubs = render_stubs(definitions)
    if len(stubs.encode("utf-8", "replace")) <= INLINE_BYTES:
        return f"{_INTRODUCTION}\n\nThe tools:\n\n```python\n{stubs}```"
    lines: list[str] = []
    room = INLINE_BYTES
    ordered = sorted(definitions, key=lambda definition: definition.name)
    for definition in ordered:
        line = signature(definition)
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        lines.append(line)
    rest = len(ordered) - len(lines)
    more = f"\nand {rest} more, which codemode.search finds." if rest else ""
    return (
        f'{_INTRODUCTION}\n\nThe tools, as members of `tools`. In a program, `await codemode.search("words")`'
        ' finds tools and `await codemode.describe("name")` gives the full declaration of one.\n\n'
        + "\n".join(lines)
        + more
    )
