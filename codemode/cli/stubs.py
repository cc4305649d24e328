"""`codemode stubs`: the tools as a model reads them.

Knows: which tools. Does not know: how their text is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemode.cli import status
from codemode.cli.servers import connected_toolset
from tool_bindings.stubs import render_stubs

if TYPE_CHECKING:
    import argparse

    from codemode.cli.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the declarations."""
    toolset = connected_toolset(options, console)
    text = render_stubs(
        definition for definition in toolset.registry.definitions() if definition.name in toolset.allowed
    )
    console.print_foreign(text.rstrip("\n"))
    return status.OK
