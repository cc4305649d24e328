"""What a model is told about `run_code`: how to write a program, and which tools it can call.

Few tools are declared in full, so that no turn is spent on looking for them. Of many, as much as fits a
byte budget is listed, and the program finds the rest with `codemode.search`. The text depends on the set
of tools and the settings only: the same set gives the same bytes, in whatever order it was registered.

Knows: words and budgets. Does not know: how a stub is written, how a search ranks.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from codemode.discovery import first_line
from codemode.settings import Settings
from tool_bindings.aliases import aliases_of
from tool_bindings.stubs import is_attribute_name, render_stubs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tool_bindings.definition import ToolDefinition

PROMPT_BYTES: Final = 24 * 1024
"""Longest prompt by default, in UTF-8 bytes: about 6 000 tokens. Arbitrary; see decision 0283."""
_LEAST_LISTED_BYTES: Final = 512
"""Room that a list of tools always gets, however small the budget is."""
_FAMILY_BYTES: Final = 60
"""Fewest bytes for one family of tools: its name, its size, one of its tools."""

_INSTRUCTIONS: Final = """\
run_code runs one Python program that calls tools, in place of many single tool calls.
It takes two arguments, both required: `code`, the program, and `description`, what it is for in 5 to 10\
 words.

- The program is the body of an async function: `await` and `return` work at its top level.
- Call a tool with `await tools.NAME(key=value)`. A name that is no plain identifier, is a Python \
keyword or begins with an underscore is reached as `await tools["NAME"](key=value)`.
- Bound are `tools`, `ToolCallError`, `codemode` and Python's safe builtins; import the rest (json, re, \
math, datetime, asyncio, ...). There are no files, network or processes but through tools, and nothing \
is kept from earlier runs.
- The classes in the declarations only describe values. Write plain dicts and lists: `FooArgs(...)` is a\
 NameError.
- A call gives its result as JSON data: dict (`value["key"]`, never `value.key`), list, str, int, float,\
 bool or None. It is read-only; change a copy, `dict(value)` or `list(value)`.
- A call that fails raises ToolCallError, whose `toolName` says which. Calls made before it have had \
their effect.
- Calls whose arguments are known already and that do not need each other's results may run together: \
after `import asyncio`, `await asyncio.gather(tools.a(...), tools.b(...), return_exceptions=True)`, \
where a failure becomes an item and the others go on. Up to {parallel} calls of reading tools overlap; \
those of tools that change something run alone, in the order they were made.
- Answer with `print(...)`, with `return VALUE` at the top level, or both. VALUE is JSON data. Nothing \
else is shown, so print or return only what you need to read. Images from tools are attached after the \
run.
- `await codemode.batch([tools.a(...), ...])` makes many calls at once and gives results and errors in a \
list; `codemode.progress(done, total, "note")` says how far the program is.
- One run has {wall} s, {compute} s of them for computing, {calls} calls and {output} bytes of output.
"""
_ALIASES: Final = "- Tools of servers have short names as well: `tools.{alias}` is `{public}`.\n"
_ALL: Final = "\nThese are all tools:\n\n{fence}python\n{stubs}{fence}\n"
_MANY: Final = """
There are {count} tools, too many to declare here. In a program,
`await codemode.search("what it should do", limit=5)` gives a list of {{"name", "signature", \
"description"}}, and
`await codemode.describe("NAME")` the full declaration of one. Search, read and call in the same program\
 where the signature leaves no doubt.
"""
_LISTED: Final = "\nAll of them:\n"
_FAMILIES: Final = "\nSome of them, by the first word of the name:\n"


def render_prompt(
    definitions: Iterable[ToolDefinition], settings: Settings | None = None, *, max_bytes: int = PROMPT_BYTES
) -> str:
    """Write the prompt.

    Args:
        definitions: The tools a program can call.
        settings: Where the limits come from that the text names.
        max_bytes: Longest text, in UTF-8 bytes. Instructions and the way to search are never cut, so
            the text is longer where these alone are.
    """
    settings = settings or Settings()
    tools = sorted(definitions, key=lambda definition: definition.name)
    head = _INSTRUCTIONS.format(
        parallel=settings.max_parallel_sub_calls,
        wall=f"{settings.wall_seconds:g}",
        compute=f"{settings.compute_seconds:g}",
        calls=settings.max_calls,
        output=settings.max_output_bytes,
    )
    short = min((alias for alias, names in aliases_of(tools).items() if _is_short(alias, names)), default="")
    if short:
        head += _ALIASES.format(alias=short, public=_reach(aliases_of(tools)[short][0]))
    room = max_bytes - _size(head)
    if sum(len(tool.name) + len(tool.description) for tool in tools) <= room:
        stubs = render_stubs(tools)
        # A description may hold fences of its own.
        longest = max((len(ticks) for ticks in re.findall("`+", stubs)), default=0)
        whole = _ALL.format(fence="`" * max(3, longest + 1), stubs=stubs)
        if _size(whole) <= room:
            return head + whole
    many = _MANY.format(count=len(tools))
    room = max(room - _size(many), _LEAST_LISTED_BYTES)
    listed = _LISTED + "".join(f"- {_reach(tool.name)}: {first_line(tool)}\n" for tool in tools)
    return head + many + (listed if _size(listed) <= room else _families(tools, room))


def _is_short(alias: str, names: Sequence[str]) -> bool:
    """Whether an alias is an attribute of an attribute that stands for one tool only."""
    return len(names) == 1 and "." in alias and alias.replace(".", "_", 1).isidentifier()


def _families(tools: Sequence[ToolDefinition], room: int) -> str:
    """List as many names as fit, each family of tools getting the same room."""
    families: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        families[_family(tool.name)].append(tool.name)
    room -= _size(_FAMILIES)
    shown = dict(list(families.items())[: max(room // _FAMILY_BYTES, 1)])
    lines = [_family_line(name, members, room // len(shown)) for name, members in shown.items()]
    hidden = sum(map(len, families.values())) - sum(map(len, shown.values()))
    if hidden:
        lines[-1:] = [f"- and {hidden + len(families[list(shown)[-1]])} tools of other names\n"]
    return _FAMILIES + "".join(lines)


def _family_line(name: str, members: Sequence[str], room: int) -> str:
    start = f"- {name} ({len(members)}): "
    line = start
    for text in _spread(members):
        longer = f"{line}{', ' if line != start else ''}{text}"
        if _size(longer) + len(", ...\n") > room and line != start:
            return f"{line}, ...\n"
        line = longer
    return f"{line}\n"


def _spread(members: Sequence[str]) -> Iterator[str]:
    """Yield names from all over a sorted list, so that the first few stand for the rest."""
    step = 1
    while step < len(members):
        step *= 2
    seen: set[int] = set()
    while step:
        for index in range(0, len(members), step):
            if index not in seen:
                seen.add(index)
                yield members[index] if is_attribute_name(members[index]) else json.dumps(members[index])
        step //= 2


def _family(name: str) -> str:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^\W_]+", name)
    return words[0].lower() if words else "other"


def _reach(name: str) -> str:
    return f"tools.{name}" if is_attribute_name(name) else f"tools[{json.dumps(name)}]"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
