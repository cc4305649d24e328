"""The tables of docs/performance.md come from a run of the suite; the rest of the page stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import compare_peers
import performance_page
import pytest
import suite
from measuring import report
from measuring.claims import judge, rows_of
from measuring.rounds import Measured, Row

from codemode.measurement import Samples

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def record(rows):
    measured = Measured(
        rows={name: Row("s", Samples((value,)), {1: value}) for name, value in rows.items()},
        failures={"smolagents local": "cannot be installed: no network"},
        facts={"monty async": {"version": "9.9"}},
    )
    claims = [claim for benchmark in suite.BENCHMARKS for claim in benchmark.claims]
    return report.as_json(measured, [judge(claim, measured) for claim in claims], 3)


@pytest.fixture
def everything():
    """Every row there is, each twice as long as the one before."""
    names = rows_of([claim for benchmark in suite.BENCHMARKS for claim in benchmark.claims])
    names |= {name for panel in suite.PANELS for name, _ in panel.bars}
    names |= {row for peer in compare_peers.PEERS for row in [f"{peer.name}/join", f"{peer.name}/word count"]}
    names |= set(compare_peers.OURS.values())
    return record({name: float(place + 1) for place, name in enumerate(sorted(names))})


def test_every_place_of_the_page_has_a_table_and_every_table_a_place():
    places = re.findall(r"<!-- figures: (\w+) -->", PAGE.read_text())
    assert sorted(performance_page.TABLES) == sorted(places)


def test_filling_twice_gives_the_same_and_keeps_everything_around_the_tables(everything):
    page = PAGE.read_text()
    filled = performance_page.fill(page, everything)
    assert filled == performance_page.fill(filled, everything)
    blank = performance_page.PLACE.sub("", page)
    assert blank == performance_page.PLACE.sub("", filled)
    assert filled.count("<!-- end -->") == len(performance_page.TABLES)


def test_ratios_are_of_the_medians_and_what_was_not_measured_is_a_dash():
    figures = performance_page.Figures(
        record({"nested_calls/sequential": 6.0, "nested_calls/gathered": 1.5, "floors/round trip": 0.5})
    )
    assert "| sequential | – | 12.00x | 1.00x |" in performance_page.calls(figures)
    assert "| gathered | – | 3.00x | 0.25x |" in performance_page.calls(figures)
    assert "| batched | – | – | – |" in performance_page.calls(figures)


def test_other_systems_show_their_version_or_why_they_are_missing():
    rows = performance_page.peers(performance_page.Figures(record({})))
    assert "| monty async 9.9 |" in rows
    assert "cannot be installed: no network" in rows


def test_a_page_with_a_place_nobody_writes_is_an_error():
    with pytest.raises(KeyError):
        performance_page.fill("<!-- figures: weather -->\n<!-- end -->", record({}))


def test_the_page_names_every_benchmark_file():
    named = set(re.findall(r"bench_\w+\.py", PAGE.read_text()))
    there = {path.name for path in (PAGE.parents[1] / "benchmarks").glob("bench_*.py")}
    assert {"bench_mcp_stub_size.py"} == there - named  # a size and not a speed; see docs/mcp.md
    assert set() == named - there
