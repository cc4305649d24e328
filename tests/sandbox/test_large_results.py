"""Large results on their way from a host function to a program, with real workers."""

from __future__ import annotations

import pytest

from sandbox.limits import Limits
from sandbox.testing import open_test_sandbox
from sandbox.values import encode, freeze
from sandbox.vocabulary import ErrorClass, Namespace, Program, SandboxSettings

pytestmark = pytest.mark.needs_linux

ROWS = freeze([{"id": number, "name": f"row {number}", "score": number / 7} for number in range(5_000)])
BYTES = len(encode(ROWS))


@pytest.fixture
async def sandbox():
    async with open_test_sandbox(SandboxSettings(parked_workers=1)) as opened:
        yield opened


async def result_of(sandbox, source, results, **limits):
    async def get(call):
        return results[call.arguments["key"]]

    space = Namespace("host", {"get": "get(*, key)"}, get, ErrorClass("HostError", ("member",)))
    outcome = await sandbox.run(
        Program(source, (space,)), limits=Limits(wall_seconds=200).tightened(**limits)
    )
    assert outcome.failure is None, outcome.failure
    return outcome.value


async def test_a_program_gets_what_the_function_returned(sandbox):
    value = freeze(
        {"rows": ROWS, "deep": {"texts": ["\ud800\0é", ""] * 500}, "big": [10**30] * 300, "n": None}
    )
    got = await result_of(sandbox, "return await host.get(key='a')", {"a": value})
    assert encode(value) == encode(got)


async def test_a_program_cannot_change_it(sandbox):
    source = """
rows = await host.get(key='a')
said = []
for change in (lambda: rows.append(1), lambda: rows[0].update(id=5), lambda: rows[-1]["tags"].append(1)):
    try:
        change()
    except TypeError as error:
        said.append("read-only" in str(error))
return [said, rows[0]["id"], list(rows[-1]), rows[-1]["tags"]]
"""
    rows = freeze([{"id": number, "tags": ["t", number]} for number in range(2_000)])
    assert [[True] * 3, 0, ["id", "tags"], ["t", 1999]] == await result_of(sandbox, source, {"a": rows})


async def test_answers_that_come_together_are_each_callers_own(sandbox):
    source = """
import asyncio
found = await asyncio.gather(*[host.get(key=key) for key in 'ababcab'])
return [item if isinstance(item, int) else [len(item), item[-1]["id"]] for item in found]
"""
    results = {"a": ROWS, "b": freeze([{"id": 1}] * 300), "c": 5}
    assert [[5000, 4999], [300, 1]] * 2 + [5] + [[5000, 4999], [300, 1]] == await result_of(
        sandbox, source, results
    )


async def test_the_limit_counts_bytes_of_json_and_the_next_result_is_whole(sandbox):
    source = """
try:
    said = len(await host.get(key='a'))
except HostError as error:
    said = str(error)
rows = await host.get(key='b')
return [said, len(rows), rows[-1]]
"""
    results = {"a": ROWS, "b": freeze([{"new": number} for number in range(600)])}
    rest = [600, {"new": 599}]
    assert [5000, *rest] == await result_of(sandbox, source, results, max_call_bytes=BYTES)
    refusal = (
        f"the result of get has {BYTES} bytes of JSON; the limit is max_call_bytes={BYTES - 1}:"
        " ask for less at a time"
    )
    assert [refusal, *rest] == await result_of(sandbox, source, results, max_call_bytes=BYTES - 1)


async def test_timers_of_a_program_go_on_while_a_result_arrives(sandbox):
    source = """
import asyncio
async def tick():
    for _ in range(20):
        await asyncio.sleep(0.0001)
    return "ticked"
rows, said = await asyncio.gather(host.get(key='a'), tick())
return [len(rows), said]
"""
    assert [5000, "ticked"] == await result_of(sandbox, source, {"a": ROWS})
