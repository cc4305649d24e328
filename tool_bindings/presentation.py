"""What is sent to a model: tool schemas and prompt sections, by presentation mode.

Knows: the three modes and the instructions that go with programs.
Does not know: models, or how `run_code` works; it is handed in as one more definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sandbox.values import thaw
from tool_bindings.errors import DefinitionError
from tool_bindings.stubs import render_stubs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tool_bindings.definition import ToolDefinition
    from tool_bindings.registry import Scope, ToolRegistry

__all__ = ["Assembly", "PromptSection", "assemble"]


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One piece of the system prompt; sections are placed by ascending `order`."""

    name: str
    order: int
    text: str


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything about tools that one request to a model carries."""

    tools: list[dict[str, Any]]
    sections: list[PromptSection]


CODE_ONLY_ORDER: Final = 99
SDK_ORDER: Final = 150
"""Places of the two sections: the rule comes before other guidance on tools, the stubs after it."""

_CODE_ONLY: Final = (
    "Every tool is called from a program that you pass to `run_code`. No other tool can be called directly."
)

_INSTRUCTIONS: Final = """\
`run_code` takes two arguments: `code`, the body of an async Python function, and `description`, five \
to ten words on what it does.
- Only `tools` and `ToolCallError` are bound. The TypedDict classes below describe plain dicts and lists; \
they are not names a program can use.
- Call a tool as `await tools.name(key=value)`; where the stub shows `tools["name"]`, write it so.
- A call returns a canonical JSON value that cannot be changed in place; copy it with `dict(x)`, \
`list(x)` or `copy.deepcopy(x)`.
- A failed call raises `ToolCallError`, which has `tool_name`.
- Reads may overlap under `asyncio.gather`; others run alone, in submission order.
- Answer with `print(...)` and a top-level `return` of a JSON value. Images are shown after the run.
"""


def assemble(
    registry: ToolRegistry,
    run_code: ToolDefinition | None = None,
    *,
    scope: Scope | None = None,
    language: str = "python",
    tool_order: Sequence[str] = (),
) -> Assembly:
    """Return what a model is sent about the tools visible through a scope.

    Args:
        registry: The tools.
        run_code: The tool that runs programs; needed unless the mode is native.
        scope: The scope to see tools through.
        language: Language of programs; `python` is the only one there is.
        tool_order: Names to put first, in this order; the rest follows by name.

    Raises:
        DefinitionError: The mode needs a way to run programs that is not there, or `tool_order` names
            a tool that is not sent.
    """
    mode = registry.presentation(scope)
    if mode != "native":
        if run_code is None:
            raise DefinitionError(f"presentation mode {mode!r} needs run_code, and no runtime is set up")
        if language != "python":
            raise DefinitionError(f"there are no stubs for programs in {language!r}; use 'python'")
    tools = [] if mode == "code" else registry.schemas(scope)
    if run_code is not None and mode != "native":
        tools.append(
            {
                "name": run_code.name,
                "description": run_code.description,
                "parameters": thaw(run_code.parameters),  # type: ignore[arg-type]  # a schema is JSON
            }
        )
    sections = []
    if mode == "code":
        sections.append(PromptSection("tools:code-only", CODE_ONLY_ORDER, _CODE_ONLY))
    if mode != "native":
        stubs = render_stubs(registry.definitions(scope))
        sections.append(PromptSection("tools:sdk", SDK_ORDER, f"{_INSTRUCTIONS}\n```python\n{stubs}```\n"))
    return Assembly(_ordered(tools, tool_order, mode), sections)


def _ordered(tools: list[dict[str, Any]], order: Sequence[str], mode: str) -> list[dict[str, Any]]:
    by_name = {tool["name"]: tool for tool in tools}
    unknown = [name for name in order if name not in by_name]
    if unknown:
        raise DefinitionError(
            f"tool_order names tools that are not sent in mode {mode!r}: {', '.join(unknown)}"
        )
    first = dict.fromkeys(order)
    return [by_name[name] for name in first] + [tool for tool in tools if tool["name"] not in first]
