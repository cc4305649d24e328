"""The `codemode` command."""

from codemode.cli.entry import main

__all__ = ["main"]
