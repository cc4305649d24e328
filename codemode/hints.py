"""What to write instead of something a program cannot have, given the tools it can call.

Knows: which tool stands in for what. Does not know: how errors are worded around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_SUBSTITUTES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("open", "pathlib", "shutil", "tempfile", "fileinput"), ("read", "write")),
    (("os",), ("glob", "grep", "read", "bash")),
    (("glob", "fnmatch"), ("glob", "grep", "read")),
    (("subprocess", "pty", "sh", "pexpect", "signal"), ("bash", "terminal_open")),
    (
        ("requests", "urllib.request", "http", "httpx", "aiohttp", "socket", "urllib3", "bs4", "websockets"),
        ("web_fetch", "web_search"),
    ),
)
"""What programs look for, and the tools that do it, the likeliest first."""


def hints_for(tools: Collection[str]) -> Mapping[str, str]:
    """Return, by the name that is not there, the advice that these tools make possible."""
    hints: dict[str, str] = {}
    for names, substitutes in _SUBSTITUTES:
        usable = [tool for tool in substitutes if tool in tools]
        if usable:
            advice = "use " + " or ".join(f"`await tools.{tool}(...)`" for tool in usable)
            hints.update(dict.fromkeys(names, advice))
    return hints
