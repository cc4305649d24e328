"""Finding the right tool among many: ranked search, and the full description of one.

Ranking is BM25 over stemmed words of names, descriptions and parameters, with names counting most. What
a query says first counts more than what follows a preposition, words that people use for the same act or
thing count as each other, and near spellings stand in for words no tool has. Results that match the same
words of the query make room for others. No model, no index on disk.

Knows: texts and scores. Does not know: registries, how an answer reaches a program.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

from codemode.vocabulary import (
    EMPTY_WORDS,
    PREPOSITIONS,
    compounds,
    is_part,
    is_run_together,
    is_short_for,
    plain_words,
    stem,
    synonyms,
    told_words,
    words_of,
)
from tool_bindings.aliases import aliases_of
from tool_bindings.stubs import clean_text, render_stubs, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from tool_bindings.definition import ToolDefinition

_MAX_QUERY_WORDS: Final = 32
"""Words of a query that are looked at. Arbitrary: a query is a sentence, not a page."""
_DESCRIPTION_CHARS: Final = 2_000
"""Characters of a description that are searched. Arbitrary; the first sentences say what a tool is for."""
_FIRST_LINE_CHARS: Final = 160

_NAME_WEIGHT: Final = 4.0
_PARAMETER_WEIGHT: Final = 0.5
# BM25's usual constants: how fast repetition saturates, how much long texts are discounted.
_SATURATION: Final = 1.2
_LENGTH_DISCOUNT: Final = 0.5
# The following were tuned on tests/data/discovery-queries.jsonl; each moves a few queries in a hundred.
_AFTER_PREPOSITION: Final = 0.6
_VENDOR_WEIGHT: Final = 1.6
_SYNONYM_WEIGHT: Final = 0.55
_PART_WEIGHT: Final = 0.35
_SHORT_WEIGHT: Final = 0.8
_COVERAGE: Final = 0.5
"""How much it counts that a tool matches all the words of a query, and not few of them well."""
_LIKENESS: Final = 0.7
_REPETITION: Final = 0.93
"""What each earlier result that matches the same words leaves of a score."""
_UNLIKELY_STEP: Final = 0.012
_SHORTEST_STEM: Final = 3
_SHORTEST_JOINED: Final = 4
_FEWEST_OF_VENDOR: Final = 5
"""Tools whose names must begin with a word for it to be taken as a vendor's name. Arbitrary."""

_LIKELIEST_FIRST: Final = ("list", "create", "search", "get", "read", "send", "find", "update", "delete")
"""Order of tools that match equally well, for queries that name no act."""


_Part = TypeVar("_Part", bound="Hashable")


class Catalogue:
    """The tools of one run, searchable. Built once per set."""

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self._definitions = sorted(definitions, key=lambda definition: definition.name)
        self._numbers = {definition.name: number for number, definition in enumerate(self._definitions)}
        documents = [_weigh(definition) for definition in self._definitions]
        self._lengths = [sum(words.values()) for words in documents]
        self._mean_length = sum(self._lengths) / max(len(documents), 1) or 1.0
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, words in enumerate(documents):
            for word, weight in words.items():
                self._postings[word].append((number, weight))
        self._factors = [
            1 - _UNLIKELY_STEP * _unlikelihood(definition.name) for definition in self._definitions
        ]
        named = [plain_words(definition.name) for definition in self._definitions]
        heads = Counter(stem(words[0]) for words in named if words)
        self._vendors = {word for word, count in heads.items() if count >= _FEWEST_OF_VENDOR}
        self._of_names = {word: stem(word) for words in named for word in words}
        self._neighbours = _by(named, itertools.pairwise)
        self._compounds = _by(named, compounds)

    def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return the best matches, best first: name, signature, first line of the description."""
        exact = self._numbers.get(query.strip())
        scores: dict[int, float] = defaultdict(float)
        covered: dict[int, float] = defaultdict(float)
        matched: dict[int, int] = defaultdict(int)
        total = 0.0
        for position, (word, importance) in enumerate(self._important(query)):
            best = self._matches(word, importance)
            total += importance * bool(best)
            for number, score in best.items():
                scores[number] += score * self._factors[number]
                covered[number] += importance
                matched[number] |= 1 << position
        for number in scores:
            scores[number] *= (covered[number] / total) ** _COVERAGE
        if exact is not None:
            scores[exact] += 2 * max(scores.values(), default=1.0)
        return [self._entry(number) for number in self._spread(scores, matched, limit)]

    def describe(self, name: str) -> str | None:
        """Return the stub text of one tool, or None when there is no such tool."""
        number = self._numbers.get(name)
        if number is None:
            names = aliases_of(self._definitions).get(name, ())
            number = self._numbers[names[0]] if len(names) == 1 else None
        return None if number is None else render_stubs([self._definitions[number]])

    def _spread(self, scores: Mapping[int, float], matched: Mapping[int, int], limit: int) -> list[int]:
        """Pick the best, each time discounting what matches the same words as those already picked."""
        groups: dict[int, list[int]] = defaultdict(list)
        for number in scores:
            groups[matched[number]].append(number)
        for group in groups.values():
            group.sort(key=lambda number: (-scores[number], number), reverse=True)
        taken: Counter[int] = Counter()
        picked: list[int] = []
        while len(picked) < limit and groups:
            # The best of each group is enough: a group is discounted as a whole.
            bits = max(
                groups, key=lambda bits: (scores[groups[bits][-1]] * _REPETITION ** taken[bits], -bits)
            )
            picked.append(groups[bits].pop())
            taken[bits] += 1
            if not groups[bits]:
                del groups[bits]
        return picked

    def _entry(self, number: int) -> dict[str, Any]:
        definition = self._definitions[number]
        return {
            "name": definition.name,
            "signature": signature(definition),
            "description": first_line(definition),
        }

    def _important(self, query: str) -> list[tuple[str, float]]:
        """Return the words of a query and how much each counts."""
        words: dict[str, float] = {}
        importance = 1.0
        plain = told_words(query)
        told = [word for word in plain if word not in PREPOSITIONS and word not in EMPTY_WORDS]
        for word in plain if told else ():
            if word in PREPOSITIONS:
                # Only after something was said: "in slack, post a message" says nothing before it.
                importance = _AFTER_PREPOSITION if words else 1.0
            elif word not in EMPTY_WORDS:
                words.setdefault(word, importance)
        for first, second in itertools.pairwise(told):
            if stem(first + second) in self._postings:
                words.setdefault(first + second, min(words[first], words[second]))
        return list((words or dict.fromkeys(plain, 1.0)).items())[:_MAX_QUERY_WORDS]

    def _matches(self, word: str, importance: float) -> dict[int, float]:
        """Return the tools that a word of a query speaks of, and how much that says."""
        best: dict[int, float] = {}
        for near, weight in self._expand(word).items():
            stands = _VENDOR_WEIGHT if near in self._vendors else importance
            for number, score in self._scored(self._postings[near]):
                best[number] = max(best.get(number, 0.0), score * weight * stands)
        if stem(word) not in self._postings:
            for number, score in self._scored(self._joined(word)):
                best[number] = max(best.get(number, 0.0), score * importance * _SHORT_WEIGHT)
        return best

    def _expand(self, word: str) -> dict[str, float]:
        """Return the words of the catalogue that `word` may stand for, and how well."""
        own = stem(word)
        expanded = dict.fromkeys(
            (near for near in synonyms().get(own, ()) if near in self._postings), _SYNONYM_WEIGHT
        )
        for known in self._postings if len(own) >= _SHORTEST_STEM else ():
            if known != own and is_part(own, known):
                expanded.setdefault(known, _PART_WEIGHT)
        if own in self._postings:
            expanded[own] = 1.0
            return expanded
        for known, its_stem in self._of_names.items():
            if is_short_for(word, known):
                expanded.setdefault(its_stem, _SHORT_WEIGHT)
        if not expanded and not self._joined(word):
            expanded.update(self._spelled_like(own))
        return expanded

    def _joined(self, word: str) -> list[tuple[int, float]]:
        """Return the tools in whose names neighbouring words are what `word` joins or abbreviates."""
        numbers = {*self._compounds.get(stem(word), ()), *self._compounds.get(word.removesuffix("s"), ())}
        if len(word) >= _SHORTEST_JOINED:
            for (first, second), those in self._neighbours.items():
                if is_run_together(word, first, second):
                    numbers.update(those)
        return [(number, _NAME_WEIGHT) for number in sorted(numbers)]

    def _spelled_like(self, word: str) -> dict[str, float]:
        near = difflib.get_close_matches(word, self._postings, 3, _LIKENESS)
        return {known: difflib.SequenceMatcher(None, word, known).ratio() for known in near}

    def _scored(self, postings: Sequence[tuple[int, float]]) -> Iterable[tuple[int, float]]:
        count, seen = len(self._definitions), len(postings)
        rarity = math.log(1 + (count - seen + 0.5) / (seen + 0.5))
        for number, weight in postings:
            discount = _SATURATION * (
                1 - _LENGTH_DISCOUNT + _LENGTH_DISCOUNT * self._lengths[number] / self._mean_length
            )
            yield number, rarity * weight * (_SATURATION + 1) / (weight + discount)


def first_line(definition: ToolDefinition) -> str:
    """Return what a tool is for, in at most 160 characters."""
    text = clean_text(definition.description.strip().partition("\n")[0])
    return text if len(text) <= _FIRST_LINE_CHARS else text[: _FIRST_LINE_CHARS - 1] + "…"


def _weigh(definition: ToolDefinition) -> dict[str, float]:
    weights: dict[str, float] = defaultdict(float)
    for word in words_of(definition.name):
        weights[word] += _NAME_WEIGHT
    for word in words_of(definition.description[:_DESCRIPTION_CHARS]):
        weights[word] += 1.0
    properties = definition.parameters.get("properties")
    for name in properties if isinstance(properties, dict) else ():
        for word in words_of(str(name)):
            weights[word] += _PARAMETER_WEIGHT
    return weights


def _by(
    named: Sequence[Sequence[str]], parts: Callable[[Sequence[str]], Iterable[_Part]]
) -> dict[_Part, list[int]]:
    """Return, by each part of names, the numbers of the names that have it."""
    found: dict[_Part, list[int]] = defaultdict(list)
    for number, words in enumerate(named):
        for part in dict.fromkeys(parts(words)):
            found[part].append(number)
    return found


def _unlikelihood(name: str) -> int:
    words = plain_words(name)
    return min(
        (order for order, verb in enumerate(_LIKELIEST_FIRST) if verb in words), default=len(_LIKELIEST_FIRST)
    )
