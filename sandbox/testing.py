"""For tests: a sandbox with one wall taken down, so that the other is proven alone.

Never for anything else: a sandbox without both walls runs hostile code behind one mistake.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sandbox.launch import Walls
from sandbox.supervisor import Sandbox, open_sandbox_with_walls
from sandbox.vocabulary import SandboxSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sandbox.stuck_calls import StuckCallListener


@contextlib.asynccontextmanager
async def open_test_sandbox(
    settings: SandboxSettings | None = None,
    *,
    language_wall: bool = True,
    kernel_wall: bool = True,
    launcher: tuple[str, ...] = (),
    on_stuck_call: StuckCallListener | None = None,
) -> AsyncIterator[Sandbox]:
    """Open a sandbox whose named walls stand.

    Without the language wall programs are plain CPython; without the kernel wall workers keep their
    resource limits and deadlines and nothing else. A launcher is a command that starts the fork server
    given as its last arguments, for example after taking a mechanism of the kernel away.
    """
    walls = Walls(language=language_wall, kernel=kernel_wall, launcher=launcher)
    async with open_sandbox_with_walls(
        settings or SandboxSettings(), walls, on_stuck_call=on_stuck_call
    ) as sandbox:
        yield sandbox
