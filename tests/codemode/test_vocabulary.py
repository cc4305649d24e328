"""What words of a query may stand for."""

from __future__ import annotations

import pytest

from codemode.vocabulary import (
    compounds,
    is_part,
    is_run_together,
    is_short_for,
    stem,
    synonyms,
    told_words,
    words_of,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("create", "creation"),
        ("deliveries", "delivery"),
        ("running", "runs"),
        ("setting", "set"),
        ("listing", "lists"),
        ("movies", "movie"),
        ("branches", "branch"),
        ("users", "user"),
        ("adding", "add"),
        ("billed", "bills"),
        ("verification", "verify"),
    ],
)
def test_forms_of_a_word_have_one_stem(one, other):
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("us", "use"), ("page", "paging3"), ("add", "ad")])
def test_other_words_have_other_stems(one, other):
    assert stem(one) != stem(other)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("githubCreatePullRequest", ["github", "create", "pull", "request"]),
        ("open PRs", ["open", "prs"]),
        ("k8s pods in S3", ["k8s", "pods", "in", "s3"]),
        ("HTTPServer2 oauth2", ["http", "server2", "oauth2"]),
        ("a-b_c", []),
        ("日 本語", ["日", "本語"]),
    ],
)
def test_a_text_is_split_where_its_words_begin(text, words):
    assert words == told_words(text)


def test_the_words_of_a_name_are_stems():
    assert ["list", "repository", "branch"] == words_of("listRepositories_branches")


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("msg", "message"),
        ("k8s", "kubernetes"),
        ("i18n", "internationalization"),
        ("pg", "postgres"),
        ("img", "image"),
    ],
)
def test_a_word_without_its_vowels_stands_for_the_whole(word, known):
    assert is_short_for(word, known)


@pytest.mark.parametrize(
    ("word", "known"),
    [("msg", "imsg"), ("cat", "category"), ("k9s", "kubernetes"), ("mgs", "message"), ("ms", "msg")],
)
def test_not_every_short_word_is_short_for_another(word, known):
    assert not is_short_for(word, known)


def test_neighbouring_words_are_joined_and_abbreviated():
    assert {"pullrequest", "pr", "requestlist", "rl", "prl"} == set(compounds(["pull", "request", "list"]))
    assert is_run_together("gcal", "google", "calendar")
    assert not is_run_together("gcal", "google", "drive")
    assert not is_run_together("go", "google", "calendar")


def test_parts_and_synonyms():
    assert is_part("log", "worklog")
    assert is_part("unsubscrib", "subscrib")
    assert not is_part("logs", "log")
    assert "delet" in synonyms()["remov"]
    assert "remov" not in synonyms()["remov"]
