"""Field reports about the host's side: threads, endings, logs, what is told. See `test_field_reports.py`."""

from __future__ import annotations

import ast
import asyncio
import json
import random
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import corpus
import psutil
import pytest
import trio

from codemode import SessionLog, Settings, open_service
from codemode.session_events import SessionFileError
from tool_bindings import Output, ToolDefinition, ToolRegistry, render_stubs
from tool_bindings.redaction import SecretMasker, redact_results

ROOT = Path(__file__).parent.parent.parent


def registry_with(name, parameters, output, body):
    registry = ToolRegistry()
    registry.register(ToolDefinition(name, "", parameters, Output(output), body))
    return registry


@pytest.mark.needs_linux
@pytest.mark.parametrize(("levels", "ok"), [(3, True), (60, True), (5000, False)])
async def test_f050_a_recursive_result_arrives_whole_or_says_that_it_is_too_deep(levels, ok):
    node = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
        "required": ["name", "kids"],
    }

    async def tree(arguments, context):
        value: dict[str, Any] = {"name": "leaf", "kids": []}
        for level in range(levels - 1):
            value = {"name": str(level), "kids": [value]}
        return value

    registry = registry_with(
        "tree", {"type": "object"}, {"$ref": "#/$defs/Node", "$defs": {"Node": node}}, tree
    )
    ast.parse(render_stubs(registry.definitions()))
    source = (
        "n = await tools.tree()\ndepth = 1\nwhile n['kids']:\n    n, depth = n['kids'][0], depth + 1\ndepth"
    )
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    if ok:
        assert levels == outcome.result
    else:
        assert "deep" in outcome.failure.message


@pytest.mark.needs_linux
def test_f082_f148_a_run_works_in_any_thread_and_below_an_asyncio_loop():
    async def run():
        async with open_service(corpus.fixture_registry()) as service:
            return (await service.run_code("return await tools.add(a=1, b=2)")).result

    results = []
    thread = threading.Thread(target=lambda: results.append(trio.run(run)))
    thread.start()
    thread.join()

    async def below():
        return await asyncio.to_thread(trio.run, run)

    assert [3, 3] == [*results, asyncio.run(below())]


@pytest.mark.needs_linux
async def test_f091_runs_cancelled_at_any_moment_leave_nothing():
    chance = random.Random(91)
    own = psutil.Process()

    async def cancelled_runs(count):
        async with open_service(corpus.fixture_registry(), settings=Settings(parked_workers=1)) as service:
            for _ in range(count):
                with trio.move_on_after(chance.random() * 0.03):
                    await service.run_code("while True:\n    await tools.add(a=1, b=2)")
            assert 1 == (await service.run_code("return 1")).result

    await cancelled_runs(1)
    before = own.num_fds(), len(own.children(recursive=True))
    await cancelled_runs(40)
    assert before == (own.num_fds(), len(own.children(recursive=True)))


@pytest.mark.needs_linux
def test_f092_a_host_that_ends_right_after_a_run_prints_nothing():
    source = (
        "import trio\nfrom codemode import open_service\nfrom tool_bindings import ToolRegistry\n"
        "async def main():\n    async with open_service(ToolRegistry()) as service:\n"
        "        assert 2 == (await service.run_code('1+1')).result\n"
        "for _ in range(2):\n    trio.run(main)\n"
    )
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", source]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (0, "", "") == (ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.needs_linux
async def test_f107_runs_that_overlap_on_one_log_stay_apart_and_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "session.jsonl"
    results = {}
    with SessionLog.open(path) as log:
        async with (
            open_service(corpus.fixture_registry(), session_log=log) as service,
            trio.open_nursery() as nursery,
        ):

            async def run(number):
                outcome = await service.run_code(f"return await tools.echo(value={number})")
                results[number] = (outcome.result, outcome.run_id)

            for number in range(8):
                nursery.start_soon(run, number)
        with pytest.raises(SessionFileError):
            SessionLog.open(path)
        receipts = [log.receipt(results[number][1]) for number in range(8)]
    assert list(range(8)) == [results[number][0] for number in range(8)]
    assert [[{"value": number}] for number in range(8)] == [
        [call.arguments for call in receipt] for receipt in receipts
    ]


@pytest.mark.needs_linux
async def test_f125_a_masked_result_is_still_the_same_data():
    registry = corpus.fixture_registry()
    redact_results(registry, SecretMasker(["sk-abc"]))
    value = {"token": "sk-abc", "note": 'say "sk-abc"', "n": 1}
    async with open_service(registry) as service:
        outcome = await service.run_code(f"return await tools.echo(value={value!r})")
    assert {"token": "[secret]", "note": 'say "[secret]"', "n": 1} == outcome.result
    assert outcome.result == json.loads(outcome.content[0]["text"])


@pytest.mark.needs_linux
async def test_f126_f131_a_call_is_told_in_order_with_its_arguments_and_its_run():
    events = []
    async with open_service(corpus.fixture_registry(), on_event=events.append) as service:
        outcome = await service.run_code("await tools.add(a=1, b=2)")
    told = [event for event in events if event["type"].startswith("tool/code-dispatch")]
    assert ["tool/code-dispatch-start", "tool/code-dispatch"] == [event["type"] for event in told]
    assert {(outcome.run_id, f"{outcome.run_id}:code:1", "add")} == {
        (event["data"]["rootCallId"], event["data"]["subCallId"], event["data"]["name"]) for event in told
    }
    assert {"a": 1, "b": 2} == told[0]["data"]["arguments"]
    assert "turn/end" == events[-1]["type"]
    assert outcome.calls[0].duration_ms >= 0


@pytest.mark.needs_linux
async def test_f134_children_of_tools_that_write_a_lot_hold_nothing_up():
    registry = ToolRegistry()

    @registry.tool(concurrency_safe=True)
    async def noisy() -> int:
        """Start a process that writes a megabyte to standard error."""
        ended = await trio.run_process(["head", "-c", "1000000", "/dev/zero"], capture_stdout=True)
        loud = await trio.run_process(["sh", "-c", "cat >&2"], stdin=ended.stdout, capture_stderr=True)
        return len(loud.stderr)

    source = "import asyncio\nreturn sum(await asyncio.gather(*[tools.noisy() for _ in range(10)]))"
    async with open_service(registry) as service:
        assert 10_000_000 == (await service.run_code(source)).result


def test_f147_dependencies_are_ranges():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"]
    assert [] == [requirement for requirement in project["dependencies"] if "==" in requirement]


@pytest.mark.needs_linux
async def test_f151_a_program_that_swallows_every_exception_ends_with_its_caller():
    source = (
        "import asyncio\nawait tools.echo(value='started')\nwhile True:\n    try:\n"
        "        await tools.slow(ms=60000)\n    except BaseException:\n        pass"
    )
    started = trio.Event()

    def listen(event):
        if event["type"] == "tool/code-dispatch-start" and "slow" == event["data"]["name"]:
            started.set()

    async with open_service(corpus.fixture_registry(), on_event=listen) as service:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.run_code, source)
            await started.wait()
            nursery.cancel_scope.cancel()
        assert 1 == (await service.run_code("return 1")).result
