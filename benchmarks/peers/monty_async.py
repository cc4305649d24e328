"""pydantic-monty, asynchronous: its interpreter in a worker process, a pool kept open, a checkout per run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pydantic_monty
import shared
from measuring.protocol import serve_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from measuring.protocol import Case

# As many calls as the workloads make; it counts every call as a suspension and allows 1000 by default.
LIMITS: Any = {"max_suspensions": 1_000_000}


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield all workloads."""
    async with pydantic_monty.AsyncMonty() as pool:

        async def run(program: str) -> Any:
            async with pool.checkout(limits=LIMITS) as session:
                return await session.feed_run(
                    program, external_lookup={"add": shared.add, "rows": shared.rows}
                )

        yield shared.cases(run, shared.returning("{}"))


if __name__ == "__main__":
    serve_asyncio(open_cases(), version=pydantic_monty.__version__)
