"""Call the file tools through the dispatch pipeline."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.values import thaw
from tool_bindings.abort import AbortSignal
from tool_bindings.content import blocks_text
from tool_bindings.registry import ToolRegistry
from tool_bindings.tools import first_party_tools

if TYPE_CHECKING:
    from pathlib import Path

    from tool_bindings.definition import ToolDefinition
    from tool_bindings.results import ToolResult


session_numbers = itertools.count(1)


class Session:
    """Stands for whatever the caller's session is: an object with an identity and an id."""

    def __init__(self):
        self.id = f"session-{next(session_numbers)}"


@dataclass
class Answer:
    """All that one successful call produced."""

    value: Any
    text: str
    meta: Any


@dataclass
class Refusal:
    """How one failed call was recorded."""

    name: str | None
    code: str | None
    text: str


@dataclass
class Toolbox:
    """Calls the tools through a registry of their own."""

    root: Path
    definitions: dict[str, ToolDefinition]
    session: Any = field(default_factory=Session)
    abort: AbortSignal = field(default_factory=AbortSignal)
    registry: ToolRegistry = field(default_factory=ToolRegistry)

    def __post_init__(self):
        for definition in self.definitions.values():
            self.registry.register(definition)

    async def dispatch(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.registry.dispatch(name, arguments, session=self.session, abort=self.abort)

    async def __call__(self, name: str, /, **arguments: Any) -> Answer:
        result = await self.dispatch(name, **arguments)
        assert not result.is_error, result
        return Answer(thaw(result.value), blocks_text(result.content), thaw(result.meta))

    async def error(self, name: str, /, **arguments: Any) -> Refusal:
        result = await self.dispatch(name, **arguments)
        assert result.is_error, result
        info = result.error.info
        assert f"Error: {result.error.message}" == blocks_text(result.content)
        return Refusal(info and info.name, info and info.code, result.error.message)


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


ORDINARY_USER = 65534
_PR_SET_DUMPABLE = 4


@pytest.fixture
def permissions_count(root):
    """Give a block in which file permissions hold for us even if we are root; the files become ours."""

    @contextlib.contextmanager
    def permissions_count():
        if os.geteuid() != 0:
            yield
            return
        for path in (root, *root.iterdir()):
            os.chown(path, ORDINARY_USER, ORDINARY_USER, follow_symlinks=False)
        # Of the whole process, so also of the threads that tools run in.
        os.seteuid(ORDINARY_USER)
        try:
            yield
        finally:
            os.seteuid(0)
            # Another user may not be looked into; we may again.
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)

    return permissions_count


@pytest.fixture
def outside(tmp_path):
    """A directory beside the root, with a file nobody may see."""
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret.txt").write_text("CANARY\n")
    return directory


@pytest.fixture
def make_tools(root):
    def make(**options):
        return Toolbox(root, {tool.name: tool for tool in first_party_tools(root, **options)})

    return make


@pytest.fixture
def tools(make_tools):
    return make_tools()


@pytest.fixture
def new_session():
    return Session
