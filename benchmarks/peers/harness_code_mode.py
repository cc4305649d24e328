"""pydantic-ai-harness' CodeMode: an agent whose model is a function that asks for one `run_code` at once.

The time of a run is that of the agent run around it; the function stands in for a model that answers in no
time. Its limits on calls and suspensions are lifted.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

import shared
from measuring.protocol import serve_asyncio
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness import CodeMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from measuring.protocol import Case


def model(messages: Any, info: Any) -> ModelResponse:
    """Ask for the program first, and be done when it has run."""
    returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if returned:
        return ModelResponse(parts=[TextPart("done")])
    program = messages[0].parts[-1].content
    return ModelResponse(parts=[ToolCallPart("run_code", {"code": program})])


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield all workloads."""
    limits: Any = {"max_suspensions": 1_000_000}
    agent = Agent(
        FunctionModel(model),
        tools=[shared.add, shared.rows],
        capabilities=[CodeMode(max_tool_calls=1_000_000, resource_limits=limits, max_retries=0)],
    )

    async def run(program: str) -> Any:
        return await agent.run(program)

    slow = frozenset({shared.SEQUENTIAL, shared.GATHERED})
    yield shared.cases(run, shared.returning("{}"), unpack=unpack, slow=slow)


def unpack(result: Any) -> Any:
    """Return what the program gave, as the model would see it."""
    (value,) = [
        part.content
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    return value["result"] if isinstance(value, dict) and "result" in value else value


if __name__ == "__main__":
    serve_asyncio(open_cases(), version=importlib.metadata.version("pydantic-ai-harness"))
