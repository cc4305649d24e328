"""The official SDK's client against `codemode serve` over standard input and output."""

from __future__ import annotations

import sys

import processes
import psutil
import pytest
import trio
from mcp import Client, StdioServerParameters

TIMEOUT_SECONDS = 300

pytestmark = pytest.mark.needs_linux


async def test_the_sdks_client_lists_and_calls_run_code_and_leaves_nothing(noisy_arguments):
    server = StdioServerParameters(command=sys.executable, args=["-m", "codemode", "serve", *noisy_arguments])
    before = set(psutil.Process().children(recursive=True))
    with trio.fail_after(TIMEOUT_SECONDS):
        async with Client(server) as client:
            family = set(psutil.Process().children(recursive=True)) - before
            assert family
            tools = (await client.list_tools()).tools
            assert tools == (await client.list_tools()).tools
            program = {"code": "print('hi')\nreturn {'n': 1}", "description": "say hi"}
            good = await client.call_tool("run_code", program)
            bad = await client.call_tool("run_code", {"code": "x = 1\n1 / 0", "description": "divide"})
    assert ["run_code"] == [tool.name for tool in tools]
    assert not good.is_error
    assert {"logs": ["hi"], "result": {"n": 1}, "calls": []} == good.structured_content
    assert bad.is_error
    assert ("exception", 2) == (
        bad.structured_content["error"]["kind"],
        bad.structured_content["error"]["line"],
    )
    assert [] == [process for process in family if processes.is_alive(process)]
