"""`codemode bench`: figures for one's own tools; nothing here asserts how fast anything is."""

from __future__ import annotations

import json

import pytest

from codemode import benchmark, open_service
from codemode.benchmark import BenchmarkError, Subject, measure_subject
from codemode.cli import main
from tool_bindings import ToolRegistry

TOOLS = """
from tool_bindings import ToolRegistry

registry = ToolRegistry()

@registry.tool(name="odd/name", concurrency_safe=True)
async def odd(text: str) -> str:
    "Return a text."
    return text

@registry.tool
def fails(x: int) -> int:
    "Fail."
    raise ValueError("no luck")
"""
ROWS = {
    benchmark.ROUND_TRIP,
    benchmark.ROUND_TRIP_ONE_CORE,
    benchmark.FORK,
    benchmark.TRIVIAL,
    benchmark.DIRECT,
    benchmark.SEQUENTIAL,
    benchmark.GATHERED,
    benchmark.BATCHED,
}


@pytest.fixture
def tools(tmp_path):
    file = tmp_path / "some_tools.py"
    file.write_text(TOOLS)
    return f"{file}:registry"


def bench(capsys, *arguments):
    status = main(["bench", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.needs_linux
def test_without_a_tool_one_of_our_own_is_measured_and_shown_with_its_ratios(capsys, tmp_path):
    status, out, err = bench(capsys, "--rounds", "1", "--calls", "3", "--root", str(tmp_path))
    assert (0, "") == (status, err)
    assert "bench_add: 3 calls per program, 1 rounds; medians and quartiles" == out.splitlines()[0]
    assert [] == [name for name in ROWS if name not in out]
    assert "sequential call / direct call" in out


@pytest.mark.needs_linux
def test_json_has_every_row_and_every_ratio_of_ones_own_tool(capsys, tools):
    given = {"text": 'a\n"quoted" \\ {brace} 😀'}
    status, out, err = bench(
        capsys, "--tools", tools, "--tool", "odd/name", "--arguments", json.dumps(given),
        "--rounds", "2", "--calls", "2", "--json",
    )  # fmt: skip
    record = json.loads(out)
    assert (0, "") == (status, err)
    assert ("odd/name", given, 2, 2) == tuple(record[k] for k in ("tool", "arguments", "calls", "rounds"))
    assert set(record["rows"]) == ROWS
    assert len(benchmark.RATIOS) == len(record["ratios"])
    pairs = {each["row"]: each for each in record["ratios"]}[benchmark.TRIVIAL]
    rows = record["rows"]
    assert pairs["ratio"] == rows[benchmark.TRIVIAL]["median"] / rows[benchmark.FORK]["median"]


@pytest.mark.needs_linux
def test_a_tool_that_fails_ends_the_command_with_what_it_said(capsys, tools):
    status, out, err = bench(capsys, "--tools", tools, "--tool", "fails", "--arguments", '{"x": 1}')
    assert (1, "") == (status, out)
    assert "codemode bench: tool 'fails' failed: Error: no luck\n" == err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--arguments", "{}"], "--arguments are those of a tool: name it with --tool"),
        (["--tool", "read", "--arguments", "[1]"], "the arguments must be a JSON object"),
        (["--tool", "raed"], "--tool 'raed': there is no such tool; did you mean 'read'?"),
        (["--calls", "1001"], "argument --calls: 1001 is more than 1000"),
        (["--rounds", "0"], "argument --rounds: '0' is not a whole number above 0"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_measured(capsys, arguments, text):
    status, out, err = bench(capsys, *arguments)
    assert (2, "") == (status, out)
    assert text in err


def test_a_registry_that_has_our_tools_name_is_asked_to_name_a_tool(capsys, tmp_path):
    file = tmp_path / "taken.py"
    file.write_text(TOOLS.replace("odd/name", "bench_add"))
    status, _, err = bench(capsys, "--tools", f"{file}:registry")
    assert 2 == status
    assert "there is a tool 'bench_add' already; name the one to call with --tool" in err


@pytest.fixture
def flaky():
    """A registry whose tool fails from its `limit`th call on."""
    registry = ToolRegistry()
    calls = []

    @registry.tool(concurrency_safe=True)
    async def flaky(limit: int) -> int:
        calls.append(limit)
        if len(calls) > limit:
            raise RuntimeError("worn out")
        return limit

    return registry, calls


@pytest.mark.needs_linux
@pytest.mark.parametrize("limit", [4, 6, 8])
async def test_a_call_that_fails_is_an_error_in_every_way_of_calling(flaky, limit):
    registry, calls = flaky
    async with open_service(registry) as service:
        # Two calls directly, then two in each of the programs: sequential, gathered, batched.
        subject = Subject("flaky", {"limit": limit - 1}, 2)
        with pytest.raises(BenchmarkError, match="worn out"):
            await measure_subject(service, subject, 1)
    assert limit == len(calls)


@pytest.mark.needs_linux
async def test_every_round_makes_the_calls_it_says_and_the_first_does_not_count(flaky):
    registry, calls = flaky
    said = []
    async with open_service(registry) as service:
        subject = Subject("flaky", {"limit": 1000}, 3)
        rows = await measure_subject(service, subject, 2, progress=said.append)
    assert 3 * 4 * 3 == len(calls)
    assert ["warming up", "round 1 of 2", "round 2 of 2"] == said
    assert {2} == {len(samples.values) for samples in rows.values()}
