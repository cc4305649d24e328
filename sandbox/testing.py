"""For tests: a sandbox with one wall taken down, so that the other is proven alone.

Never for anything else: a sandbox without both walls runs hostile code behind one mistake.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from sandbox.supervisor import Sandbox, open_sandbox_with_walls
from sandbox.vocabulary import SandboxSettings
from sandbox.workers import Walls


@contextlib.asynccontextmanager
async def open_test_sandbox(
    settings: SandboxSettings | None = None, *, language_wall: bool = True, kernel_wall: bool = True
) -> AsyncIterator[Sandbox]:
    """Open a sandbox whose named walls stand.

    Without the language wall programs are plain CPython; without the kernel wall workers keep their
    resource limits and deadlines and nothing else.
    """
    walls = Walls(language=language_wall, kernel=kernel_wall)
    async with open_sandbox_with_walls(settings or SandboxSettings(), walls) as sandbox:
        yield sandbox
