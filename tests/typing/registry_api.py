"""What a type checker says about the tool API; read by test_registry_api.py, never run.

A line that ends in `# E: <code>` must give exactly that mypy error, every other line none.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_type

from tool_bindings import (
    Accept,
    Block,
    ContentBlock,
    Deny,
    Dispatch,
    JsonValue,
    Output,
    ToolDefinition,
    ToolFailure,
    ToolRegistry,
    ToolRunContext,
    text_block,
)
from tool_bindings.policy import PostDecision, PreDecision

registry = ToolRegistry()


@registry.tool
async def add(a: int, b: int = 0) -> int:
    """Keep the type of a decorated function."""
    return a + b


@registry.tool(name="other", concurrency_safe=True)
def plain(text: str) -> list[str]:
    """Keep it with options too."""
    return [text]


async def use_the_functions() -> None:
    assert_type(await add(1, b=2), int)
    assert_type(plain("x"), list[str])
    await add("1")  # E: arg-type
    await add()  # E: call-arg
    plain(1)  # E: arg-type


def good_renderer(arguments: Mapping[str, Any], value: JsonValue) -> Sequence[ContentBlock]:
    return [text_block(f"{arguments} gave {value}")]


def renders_text(arguments: Mapping[str, Any], value: JsonValue) -> str:
    return "not a list of blocks"


def takes_one(value: JsonValue) -> list[ContentBlock]:
    return []


@registry.tool(render=good_renderer)
async def rendered() -> int:
    return 1


@registry.tool(render=renders_text)  # E: arg-type
async def rendered_as_text() -> int:
    return 1


@registry.tool(render=takes_one)  # E: arg-type
async def rendered_from_one() -> int:
    return 1


Output({}, render=good_renderer)
Output({}, render=renders_text)  # E: arg-type
Output({}, render=takes_one)  # E: arg-type


async def body(arguments: Mapping[str, Any], context: ToolRunContext) -> JsonValue:
    context.progress(1, note="half")
    context.defer_context({"role": "user", "content": []})
    return {"seen": list(arguments)}


registry.register(ToolDefinition("raw", "", {"type": "object"}, Output({}), body))
registry.register(ToolDefinition("raw", "", {"type": "object"}, {}, body))  # E: arg-type
ToolDefinition("raw", "", {}, Output({}), body, concurrency_safe="yes")  # E: arg-type


async def pre(call: Dispatch, proceed: Any) -> PreDecision:
    return Deny("no") if call.name == "raw" else await proceed()


async def post(call: Dispatch, result: Any, proceed: Any) -> PostDecision:
    return Block() if result.is_error else Accept(value=None)


def guard(call: Dispatch) -> str | None:
    call.name = "other"  # E: misc
    return None


registry.on_pre_execute(pre)
registry.on_post_execute(post)
registry.add_guard(guard)
registry.on_pre_execute(guard)  # E: arg-type


async def narrow() -> None:
    result = await registry.dispatch("raw", {})
    if isinstance(result, ToolFailure):
        assert_type(result.error.message, str)
        print(result.value)  # E: attr-defined
    else:
        assert_type(result.concludes_turn, bool)
    if result.is_error:
        assert_type(result, ToolFailure)
