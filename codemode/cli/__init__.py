"""The `codemode` command."""

from codemode.cli.entry import main, script

__all__ = ["main", "script"]
