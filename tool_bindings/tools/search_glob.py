"""The `glob` tool: find files by a pattern of their path.

Knows: the tool's arguments, value, text and metadata.
Does not know: how the search program is run, or how its path is confined.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import trio

from sandbox.values import json_size
from tool_bindings.content import text_block
from tool_bindings.definition import Output, ToolDefinition
from tool_bindings.tools.errors import ToolUsageError
from tool_bindings.tools.overflow import Overflow, SearchLimits
from tool_bindings.tools.paths import printable
from tool_bindings.tools.ripgrep import RipgrepLimits, run_ripgrep
from tool_bindings.tools.search_place import SearchPlace, check_pattern_argument, open_place, require_unmoved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolRunContext
    from tool_bindings.tools.confinement import ConfinedRoot

__all__ = ["glob_overflow", "glob_tool"]

_REPOSITORY_DIRECTORIES = (".git", ".svn", ".hg", ".bzr", ".jj", ".sl")
_UNSAVED = "The complete result could not be saved; use a narrower pattern or path."

_VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "root": {
            "type": "string",
            "description": 'The directory searched, relative to the root; "." is the root.',
        },
        "paths": {
            "type": "array",
            "items": {"type": "string"},
            "description": "All files found, relative to the root, the least recently modified first.",
        },
    },
    "required": ["root", "paths"],
    "additionalProperties": False,
}


def glob_tool(root: ConfinedRoot, *, limits: SearchLimits, process_limits: RipgrepLimits) -> ToolDefinition:
    """Define the `glob` tool over one root.

    Args:
        root: The confined root.
        limits: The caps of what is shown.
        process_limits: The bounds of the search program.
    """
    globber = _Globber(root, limits, process_limits)
    return ToolDefinition(
        name="glob",
        description=(
            "Find files by a glob pattern of their path. A pattern without a slash matches file names at any "
            "depth. Hidden and ignored files are included; version control directories such as .git are not. "
            "Symbolic links are not followed. The least recently modified file comes first."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": 'The pattern, such as "*.py" or "src/**/test_*.py".',
                },
                "path": {
                    "type": "string",
                    "description": "The directory to search. Default: the root directory.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        output=Output(
            schema=_VALUE_SCHEMA, render=globber.render, presentation_meta=globber.presentation_meta
        ),
        execute=globber.execute,
    )


def glob_overflow(value: dict[str, Any], limits: SearchLimits) -> Overflow | None:
    """Return the complete text of a glob result, or None when its page shows everything.

    Args:
        value: The canonical value.
        limits: The caps the tool was made with.
    """
    paths = value["paths"]
    if len(paths) <= limits.shown_paths:
        return None

    def stored(locator: str, hint: str) -> list[ContentBlock]:
        return [text_block(_page_text(value, limits, f"Full sorted result stored at: {locator}. {hint}"))]

    return Overflow("glob-results.txt", "\n".join(map(printable, paths)), stored)


class _Globber:
    def __init__(self, root: ConfinedRoot, limits: SearchLimits, process_limits: RipgrepLimits) -> None:
        self._root = root
        self._limits = limits
        self._process_limits = process_limits

    async def execute(self, args: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        pattern: str = args["pattern"]
        if not pattern.strip():
            raise ToolUsageError('pattern must not be blank; give a glob such as "*.py"')
        check_pattern_argument(pattern, "pattern")
        with ExitStack() as stack:
            opening = open_place(self._root, args.get("path"), allow_file=False)
            place = await trio.to_thread.run_sync(stack.enter_context, opening)
            output = await run_ripgrep(
                _arguments(pattern, place),
                directory_fd=self._root.fd,
                stdin_fd=None,
                abort=context.abort,
                limits=self._process_limits,
            )
            paths = await trio.to_thread.run_sync(self._paths, output, place)
        return {"root": place.shown, "paths": paths}

    def render(self, _args: Mapping[str, Any], value: dict[str, Any]) -> list[ContentBlock]:
        return [text_block(_page_text(value, self._limits, _UNSAVED))]

    def presentation_meta(self, _args: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
        total = len(value["paths"])
        page, _ = _page(value, self._limits)
        meta: dict[str, Any] = {
            "shape": "paths",
            "paths": page,
            "truncated": len(page) < total,
            "total": total,
        }
        while len(page) > 1 and json_size(meta) > self._limits.meta_bytes:
            page.pop()
            meta["truncated"] = True
        return meta

    def _paths(self, output: bytes, place: SearchPlace) -> list[str]:
        require_unmoved(self._root, place)
        # A name that is not UTF-8 keeps its bytes as lone surrogates, so that read can open it again.
        return [place.show(item.decode("utf-8", "surrogateescape")) for item in output.split(b"\0") if item]


def _arguments(pattern: str, place: SearchPlace) -> list[str]:
    globs = [pattern]
    # The program matches a pattern with a slash against the whole path from the root. Whoever names a
    # directory to search also means its own paths, so both count.
    if place.names and "/" in pattern and not pattern.startswith(("!", "**/")):
        globs.append(f"/{_escaped('/'.join(place.names))}/{pattern.lstrip('/')}")
    excluded = [glob for name in _REPOSITORY_DIRECTORIES for glob in (f"!**/{name}", f"!**/{name}/**")]
    return [
        "--no-config",
        "--files",
        *(f"--glob={glob}" for glob in globs),
        "--sort=modified",
        "--no-ignore",
        "--hidden",
        *(f"--glob={glob}" for glob in excluded),
        "--null",  # A name may hold a line break.
        "--",
        place.argument,
    ]


def _escaped(path: str) -> str:
    return "".join(f"\\{character}" if character in "*?[]{}\\!" else character for character in path)


def _page_text(value: dict[str, Any], limits: SearchLimits, recovery: str) -> str:
    paths = value["paths"]
    if not paths:
        return "No files found"
    page, basis = _page(value, limits)
    text = "\n".join(map(printable, page))
    if len(page) == len(paths):
        return text
    return f"{text}\n\n(Showing {len(page)} of {len(paths)} paths{basis} {recovery})"


def _page(value: dict[str, Any], limits: SearchLimits) -> tuple[list[str], str]:
    """Choose the paths to show, and say how they were chosen."""
    paths: list[str] = list(value["paths"])
    if len(paths) <= limits.shown_paths or not limits.sample_over_cap:
        return paths[: limits.shown_paths], "."
    entries: dict[str, list[str]] = {}
    start = 0 if value["root"] == "." else len(value["root"]) + 1
    for path in paths:
        entries.setdefault(path[start:].partition("/")[0], []).append(path)
    if len(entries) in (1, len(paths)):
        return paths[: limits.shown_paths], "."
    chosen = _shares([len(members) for members in entries.values()], limits.shown_paths)
    page = [path for members, share in zip(entries.values(), chosen, strict=True) for path in members[:share]]
    shown = sum(1 for share in chosen if share)
    basis = f", sampled across {shown} of {len(entries)} top-level entries."
    if shown < len(entries):
        basis += " Set path to a directory to see the others."
    return page, basis


def _shares(sizes: list[int], total: int) -> list[int]:
    """Deal out `total` places one by one, in rounds; nobody gets more than its size."""
    shares = [0] * len(sizes)
    while total:
        for index, size in enumerate(sizes):
            if total and shares[index] < size:
                shares[index] += 1
                total -= 1
    return shares
