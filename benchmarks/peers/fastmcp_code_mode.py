"""fastmcp's CodeMode: an in-process client calls the `execute` tool of an in-process server.

It starts a pydantic-monty pool for every execution. Its limit of 50 calls is lifted.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import fastmcp
import shared
from fastmcp import Client, FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode, MontySandboxProvider
from measuring.protocol import serve_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from measuring.protocol import Case


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield all workloads."""
    limits: Any = {"max_suspensions": 1_000_000, "max_memory": 500_000_000}
    mode = CodeMode(sandbox_provider=MontySandboxProvider(limits=limits), max_tool_calls=None)
    server = FastMCP("benchmark", transforms=[mode])
    server.tool(shared.add)
    server.tool(shared.rows)
    async with Client(server) as client:

        async def run(program: str) -> Any:
            return await client.call_tool("execute", {"code": program})

        # A tool that returns no object has its value wrapped in one.
        programs = shared.returning(
            "return {}",
            add='await call_tool("add", {{"a": {a}, "b": 2}})',
            rows='(await call_tool("rows", {}))["result"]',
        )
        sequential = programs[shared.SEQUENTIAL]
        programs[shared.SEQUENTIAL] = sequential.replace("return last", 'return last["result"]')
        slow = frozenset({shared.SEQUENTIAL, shared.GATHERED})
        yield shared.cases(run, programs, unpack=unpack, slow=slow)


def unpack(result: Any) -> Any:
    """Return the program's result."""
    structured = result.structured_content
    if isinstance(structured, dict) and set(structured) == {"result"}:
        return structured["result"]
    import json  # noqa: PLC0415

    return json.loads(result.content[0].text)


if __name__ == "__main__":
    serve_asyncio(open_cases(), version=fastmcp.__version__)
