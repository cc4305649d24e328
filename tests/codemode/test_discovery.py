"""Finding the right tool among 3 000."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from many_tools import many_tools

from codemode.catalogues import Catalogues
from codemode.discovery import Catalogue, first_line
from tool_bindings import Output, ToolDefinition

DATA = Path(__file__).parent.parent / "data"


def tool(name, description="", **properties):
    return ToolDefinition(name, description, {"type": "object", "properties": properties}, Output({}), print)


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue(many_tools())


def names(catalogue, query, limit=5):
    return [entry["name"] for entry in catalogue.search(query, limit)]


@pytest.mark.parametrize(
    ("file", "count"),
    [
        ("discovery-queries.jsonl", 100),
        ("discovery-queries-held-out.jsonl", 86),
        ("discovery-queries-unseen.jsonl", 76),
        ("discovery-queries-third.jsonl", 74),
    ],
)
def test_the_right_tool_is_among_the_first_five_for_95_of_100_queries(catalogue, file, count):
    """Each set was written before the ranking was changed with regard to it (decision 0284)."""
    queries = [json.loads(line) for line in (DATA / file).read_text(encoding="utf-8").splitlines()]
    assert count == len(queries)
    missed = [
        query["query"] for query in queries if not set(query["right"]) & set(names(catalogue, query["query"]))
    ]
    assert len(missed) / count <= 0.05, missed


def test_abbreviations_find_what_they_are_short_for(catalogue):
    assert "github_create_pull_request" in names(catalogue, "github PR create")
    assert "slack-create-message" in names(catalogue, "slack msg send")
    assert "kubernetes-list-pod" in names(catalogue, "k8s pods")
    assert "google_calendar_event_list" in names(catalogue, "gcal list events")
    assert "azureGetKeyVault" in names(catalogue, "azure keyvault")
    assert "jiraCreateWorklog" in names(catalogue, "jira add work log")


def test_a_large_catalogue_is_built_and_searched_in_a_moment():
    tools = many_tools()
    started = time.process_time()
    found = Catalogue(tools).search("send a message", 5)
    assert 5 == len(found)
    assert time.process_time() - started < 1


def test_the_order_of_registration_does_not_matter(catalogue):
    backwards = Catalogue(reversed(many_tools()))
    for query in ("create", "list the open pull requests", "zzz", "message"):
        assert catalogue.search(query, 20) == backwards.search(query, 20)


def test_an_exact_name_comes_first(catalogue):
    assert ["slack-update-user"] == names(catalogue, "slack-update-user", 1)


def test_a_misspelt_word_finds_its_like(catalogue):
    assert "stripe_create_refund" in names(catalogue, "stripe refnud")


def test_results_that_match_the_same_words_leave_room_for_others(catalogue):
    found = names(catalogue, "zoom meeting recording")
    assert any("meeting" in name for name in found)
    assert any("recording" in name for name in found)


def test_words_in_descriptions_and_parameters_count():
    tools = [
        tool("one", "Convert money between currencies."),
        tool("two", "Something.", timezone={"type": "string"}),
        tool("three", "Nothing."),
    ]
    assert ["one"] == names(Catalogue(tools), "currency")
    assert ["two"] == names(Catalogue(tools), "time zone timezone")
    assert [] == names(Catalogue(tools), "volcano")


@pytest.mark.parametrize(
    "query", ["", " ", "the", "?!", "in on", "日本", "\ud800", "x" * 100_000, "a " * 50_000]
)
def test_any_query_is_answered(catalogue, query):
    assert len(catalogue.search(query, 3)) <= 3


def test_names_of_other_scripts_are_found():
    assert ["搜索"] == names(Catalogue([tool("搜索"), tool("検索")]), "搜索", 1)


def test_an_entry_has_what_the_first_call_needs(catalogue):
    (entry,) = catalogue.search("github_create_issue", 1)
    assert {
        "name": "github_create_issue",
        "signature": "github_create_issue(*, name: str, fields: dict[str, Any] = ...) -> dict[str, Any]"
        "  # keys: id, url",
        "description": "Add a new issue to Github.",
    } == entry
    assert "async def github_create_issue(" in catalogue.describe("github_create_issue")
    assert None is catalogue.describe("github")


def test_a_long_description_is_cut_to_its_first_line():
    assert "Does x." == first_line(tool("t", "  Does x.\nAnd y."))
    assert 160 == len(first_line(tool("t", "x" * 1000)))
    assert "\\x1b[0m" == first_line(tool("t", "\x1b[0m"))


async def test_a_catalogue_is_kept_for_the_same_set():
    catalogues, tools = Catalogues(), many_tools()
    first = await catalogues.catalogue_of(tools)
    assert first is await catalogues.catalogue_of(list(tools))
    assert first is not await catalogues.catalogue_of(tools[1:])


async def test_an_empty_set_has_a_catalogue():
    assert [] == (await Catalogues().catalogue_of([])).search("x", 5)
