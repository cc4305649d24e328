"""Shared ways to register small tools and take calls through the pipeline."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tool_bindings import Output, ToolDefinition, ToolRegistry

# Examples have no deadline: a busy machine would turn slow ones into failures.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def make_tool(name="echo", execute=None, *, schema=None, parameters=None, render=None, **options):
    """Define a tool that returns its argument `x`, unless told otherwise."""

    async def echo(arguments, _context):
        return arguments.get("x")

    return ToolDefinition(
        name=name,
        description=f"The tool {name}.",
        parameters={"type": "object"} if parameters is None else parameters,
        output=Output({} if schema is None else schema, render, options.pop("presentation_meta", None)),
        execute=echo if execute is None else execute,
        **options,
    )


@pytest.fixture
def registry():
    return ToolRegistry()


@pytest.fixture
def define():
    return make_tool
