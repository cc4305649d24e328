"""Our own service as the benchmarks use it: complete pipeline, both events of a call in a real file."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemode import SessionLog, Settings, open_service
from codemode.benchmark import run_seconds, wait_parked
from tool_bindings import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codemode.service import CodeService


def new_registry(tools: int = 1) -> ToolRegistry:
    """Return a registry with `add`, and as many others as are missing from the number asked for."""
    registry = ToolRegistry()

    @registry.tool(concurrency_safe=True)
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    def another(number: int) -> None:
        @registry.tool(name=f"tool_{number}", concurrency_safe=True)
        async def tool(text: str, count: int = 1) -> str:
            """Repeat a text."""
            return text * count

    for number in range(1, tools):
        another(number)
    return registry


@contextlib.asynccontextmanager
async def open_logged_service(
    registry: ToolRegistry | None = None, **settings: Any
) -> AsyncIterator[CodeService]:
    """Open a service that records everything in a file."""
    with tempfile.TemporaryDirectory() as folder, SessionLog.open(Path(folder) / "events.jsonl") as log:
        async with open_service(
            new_registry() if registry is None else registry,
            settings=Settings(**settings),
            session_log=log,
        ) as service:
            yield service


__all__ = ["new_registry", "open_logged_service", "run_seconds", "wait_parked"]
