"""Pre-flight with real workers: nothing is called, `check` only checks, and no program is wrongly refused."""

from __future__ import annotations

import bindings_grammar
import corpus
import pytest
import trio

from codemode import open_service
from codemode.errors import ServiceClosedError, SettingsError

pytestmark = pytest.mark.needs_linux


@pytest.fixture
def registry():
    return corpus.fixture_registry()


async def test_a_certain_error_stops_the_program_before_its_first_call(registry):
    source = "await tools.echo(value='written')\nawait tools.add(a=1, c=2)\nawait tools.serch(query='x')"
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert ("policy", "ToolCallError", 2, []) == (
        outcome.failure.kind,
        outcome.failure.error_type,
        outcome.failure.line,
        outcome.calls,
    )
    text = outcome.content[0]["text"]
    assert 'the required argument "b" is missing\n  line 2, in <module>: await tools.add(a=1, c=2)\n' in text
    assert "Hint: the tool is: add(*, a: int, b: int) -> int\n" in text
    assert "Also:\nline 3: unknown tool 'serch'. Did you mean tools.search" in text
    assert text.endswith("Nothing was run.")


async def test_the_same_slip_in_doubt_runs_up_to_it(registry):
    source = "await tools.echo(value=1)\nif True:\n    pass\nfor name in ['serch']:\n    await tools[name]()"
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert ("exception", 5, ["echo"]) == (
        outcome.failure.kind,
        outcome.failure.line,
        [call.tool for call in outcome.calls],
    )


async def test_an_around_listener_may_answer_what_the_tool_would_refuse(registry):
    async def anything(call, proceed):
        result = await proceed()
        return result if not result.is_error else await registry.dispatch("add", {"a": 1, "b": 1})

    remove = registry.around(anything)
    async with open_service(registry) as service:
        outcome = await service.run_code("return await tools.add(a='x', b=2)")
        remove()
        refused = await service.run_code("return await tools.add(a='x', b=2)")
    assert 2 == outcome.result
    assert "policy" == refused.failure.kind


async def test_check_judges_and_runs_nothing(registry):
    async with open_service(registry) as service:
        fine = await service.check("print('x')\nawait tools.echo(value=1)\nreturn 1")
        broken = await service.check("return (1")
        certain = await service.check("await tools.add(a=1, b=2)", tools=["echo"])
        doubtful = await service.check("for i in []:\n    missing")
    assert None is fine
    assert ("SyntaxError", 1) == (broken.error_type, broken.line)
    assert "unknown tool 'add'" in certain.message
    assert None is doubtful


async def test_check_judges_imports_which_a_run_leaves_until_they_are_executed(registry):
    source = "print(1)\nimport json\nimport os\nfrom math import nope"
    async with open_service(registry) as service:
        certain = await service.check(source)
        ran = await service.run_code(source)
        caught = await service.check("try:\n    import os\nexcept ImportError:\n    pass")
    assert ("ImportError", 3) == (certain.error_type, certain.line)
    first, second = certain.message.splitlines()
    assert ("exception", ["1"], first) == (ran.failure.kind, ran.logs, ran.failure.message)
    assert second.startswith("line 4: cannot import name 'nope' from 'math'")
    assert None is caught


@pytest.mark.parametrize(
    ("line", "function", "text", "source"),
    [
        (2, "f", "return x.__class__", "def f(x):\n    return x.__class__"),
        (1, "<module>", "return (1", "return (1"),
        (2, "<module>", "await tools.nope()", "x = 1\nawait tools.nope()"),
        (3, "<module>", "y", "```python\nx = 1\ny\n```"),
    ],
)
async def test_what_is_refused_shows_the_line_it_is_refused_for(registry, line, function, text, source):
    async with open_service(registry) as service:
        failure = (await service.run_code(source)).failure
    assert ("policy", line, ((line, function, text),)) == (failure.kind, failure.line, failure.traceback)


async def test_check_takes_what_a_run_takes(registry):
    async with open_service(registry) as service:
        with pytest.raises(SettingsError, match="unknown tool 'nope'"):
            await service.check("return 1", tools=["nope"])
        with pytest.raises(SettingsError, match="must be a str"):
            await service.check(b"return 1")
        large = await service.check("#" * 2_000_000)
    assert "max_source_bytes" in large.message
    with pytest.raises(ServiceClosedError):
        await service.check("return 1")


@pytest.mark.parametrize("file", ["legit.jsonl", "models.jsonl", "preflight-legit.jsonl"])
async def test_no_program_that_works_is_refused(registry, file):
    """Decision 0281: doubt means run."""
    refused = {}
    async with open_service(registry) as service, trio.open_nursery() as nursery:
        at_once = trio.CapacityLimiter(4)

        async def check(item):
            async with at_once:
                failure = await service.check(item["program"])
            if failure is not None:
                refused[item["id"]] = failure.message

        items = corpus.load(file)
        for item in items:
            nursery.start_soon(check, item)
    working = {item["id"] for item in items if item.get("expect", {}).get("status", "ok") == "ok"}
    assert {} == {name: text for name, text in refused.items() if name in working}
    assert working


async def test_what_runs_when_nothing_looks_ahead_is_not_refused(registry):
    """Random programs, each run behind a statement after which nothing is certain."""
    refused = {}
    async with open_service(registry) as service, trio.open_nursery() as nursery:
        at_once = trio.CapacityLimiter(4)

        async def compare(source):
            async with at_once:
                failure = await service.check(source)
                plain = await service.run_code("if 0: raise\n" + source)
            if failure is not None and plain.ok:
                refused[source] = failure.message

        for seed in range(120):
            nursery.start_soon(compare, bindings_grammar.program(seed))
    assert {} == refused


@pytest.mark.parametrize(
    "source",
    [
        "r = await asyncio.gather(tools.add(a=1, b='x'), return_exceptions=True)",
        "r = await codemode.batch([tools.add(a=1)])",
        "call = tools.add(a=1, b='x')\ntry:\n    await call\nexcept ToolCallError:\n    pass",
        "await asyncio.wait([asyncio.create_task(tools.add(a=1, b='x'))])",
        "await tools.add({'a': 1, 'b': 2}, **{})",
    ],
)
async def test_a_call_whose_failure_is_kept_as_a_value_is_not_refused(registry, source):
    async with open_service(registry) as service:
        outcome = await service.run_code(f"import asyncio\n{source}\nreturn 1")
    assert 1 == outcome.result


async def test_a_call_whose_failure_ends_the_program_is_found_inside_gather(registry):
    calls = "tools.add(a=1), tools.add(a='x', b=2)"
    source = f"import asyncio\nawait tools.echo(value=1)\nawait asyncio.gather({calls})"
    async with open_service(registry) as service:
        outcome = await service.run_code(source)
    assert ("policy", 3, []) == (outcome.failure.kind, outcome.failure.line, outcome.calls)


async def test_a_fenced_program_runs_and_the_model_is_told(registry):
    async with open_service(registry) as service:
        fine = await service.run_code("```python\nreturn 42\n```")
        wrong = await service.run_code("```python\nx = 1\nreturn y\n```")
        literal = await service.run_code("x = '''\n```python\nreturn 1\n```\n'''\nreturn x")
    assert (42, "Hint: the ``` fences around the program were left out: send the program alone") == (
        fine.result,
        fine.content[-1]["text"],
    )
    assert 3 == wrong.failure.line
    assert "\n```python\nreturn 1\n```\n" == literal.result
