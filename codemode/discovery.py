"""Finding the right tool among many: ranked search, and the full description of one.

Ranking is BM25 over stemmed words of names, descriptions and parameters, with names counting most. What
a query says first counts more than what follows a preposition, words that people use for the same act or
thing count as each other, and near spellings stand in for words no tool has. Results that match the same
words of the query make room for others. No model, no index on disk.

Knows: texts and scores. Does not know: registries, how an answer reaches a program.
"""

from __future__ import annotations

import difflib
import functools
import math
import operator
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

import trio

from tool_bindings.stubs import clean_text, render_stubs, signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tool_bindings.definition import ToolDefinition

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_SUFFIXES: Final = ("ations", "ation", "ings", "ing", "ies", "ers", "er", "ed", "es", "s", "e")
_SHORTEST_STEM: Final = 3
_SHORTEST_PART: Final = 5
_MAX_QUERY_WORDS: Final = 32
"""Words of a query that are looked at. Arbitrary: a query is a sentence, not a page."""
_DESCRIPTION_CHARS: Final = 2_000
"""Characters of a description that are searched. Arbitrary; the first sentences say what a tool is for."""
_MANY: Final = 200
"""Tools of a set whose catalogue is built in a thread. Arbitrary."""
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
_LIKENESS: Final = 0.7
_REPETITION: Final = 0.93
"""What each earlier result that matches the same words leaves of a score."""
_UNLIKELY_STEP: Final = 0.012
_FEWEST_OF_VENDOR: Final = 5
"""Tools whose names must begin with a word for it to be taken as a vendor's name. Arbitrary."""

_RELATING: Final = "in on for from to with of below by at into using via about under over"
_EMPTY: Final = """
a an the my our your this that is are be do does did it its we me us you there please how much many right now
some any someone and or
"""
_PREPOSITIONS: Final = frozenset(_RELATING.split())
_EMPTY_WORDS: Final = frozenset(_EMPTY.split())
_SAME: Final = """
create add new make open post send write publish schedule start insert upload put invite save submit
create compose share
list all show which what who overview browse
get fetch retrieve read show detail look view download inspect
update change edit modify turn move rename assign close resolve acknowledge mute scale adjust mark tick patch
update enable disable rotate
delete remove erase drop cancel terminate destroy unsubscribe deactivate clear revoke reject reset
search find look query lookup filter match
run execute invoke start trigger
ticket issue bug
email mail
sms text
picture image photo
folder directory
song track
repo repository
document file
meeting event appointment
who user member people person
weather forecast temperature
job task
database db
"""
"""Words that people use for the same act or thing, one group a line. A word may be in several."""

_LIKELIEST_FIRST: Final = ("list", "create", "search", "get", "read", "send", "find", "update", "delete")
"""Order of tools that match equally well, for queries that name no act."""


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
        heads = Counter(
            _words(definition.name)[:1][0] for definition in self._definitions if _words(definition.name)
        )
        self._vendors = {word for word, count in heads.items() if count >= _FEWEST_OF_VENDOR}

    def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return the best matches, best first: name, signature, first line of the description."""
        exact = self._numbers.get(query.strip())
        scores: dict[int, float] = defaultdict(float)
        matched: dict[int, int] = defaultdict(int)
        for position, (word, importance) in enumerate(_important(query)):
            if word in self._vendors:
                importance = _VENDOR_WEIGHT
            best: dict[int, float] = {}
            for near, weight in self._expand(word).items():
                for number, score in self._scored(near):
                    best[number] = max(best.get(number, 0.0), score * weight)
            for number, score in best.items():
                scores[number] += score * importance * self._factors[number]
                matched[number] |= 1 << position
        if exact is not None:
            scores[exact] += 2 * max(scores.values(), default=1.0)
        return [self._entry(number) for number in self._spread(scores, matched, limit)]

    def describe(self, name: str) -> str | None:
        """Return the stub text of one tool, or None when there is no such tool."""
        number = self._numbers.get(name)
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

    def _expand(self, word: str) -> dict[str, float]:
        """Return the words of the catalogue that `word` may stand for, and how well."""
        expanded = dict.fromkeys(
            (near for near in _synonyms().get(word, ()) if near in self._postings), _SYNONYM_WEIGHT
        )
        if len(word) >= _SHORTEST_STEM:
            for known in self._postings:
                if known != word and _is_part(word, known):
                    expanded.setdefault(known, _PART_WEIGHT)
        if word in self._postings:
            expanded[word] = 1.0
        elif not expanded:
            expanded.update(self._spelled_like(word))
        return expanded

    def _spelled_like(self, word: str) -> dict[str, float]:
        near = difflib.get_close_matches(word, self._postings, 3, _LIKENESS)
        return {known: difflib.SequenceMatcher(None, word, known).ratio() for known in near}

    def _scored(self, word: str) -> Iterable[tuple[int, float]]:
        postings = self._postings[word]
        count, seen = len(self._definitions), len(postings)
        rarity = math.log(1 + (count - seen + 0.5) / (seen + 0.5))
        for number, weight in postings:
            discount = _SATURATION * (
                1 - _LENGTH_DISCOUNT + _LENGTH_DISCOUNT * self._lengths[number] / self._mean_length
            )
            yield number, rarity * weight * (_SATURATION + 1) / (weight + discount)


class Catalogues:
    """Keeps the catalogue of the last set of tools, since runs of one service mostly have the same set."""

    def __init__(self) -> None:
        self._definitions: Sequence[ToolDefinition] = ()
        self._catalogue: Catalogue | None = None

    async def catalogue_of(self, definitions: Sequence[ToolDefinition]) -> Catalogue:
        """Return the catalogue of a set of tools."""
        kept = self._definitions
        is_same = len(kept) == len(definitions) and all(map(operator.is_, kept, definitions))
        if self._catalogue is not None and is_same:
            return self._catalogue
        # A large set takes a tenth of a second, which nobody else should wait for.
        build = functools.partial(Catalogue, definitions)
        catalogue = await trio.to_thread.run_sync(build) if len(definitions) > _MANY else build()
        self._definitions, self._catalogue = tuple(definitions), catalogue
        return catalogue


def first_line(definition: ToolDefinition) -> str:
    """Return what a tool is for, in at most 160 characters."""
    text = clean_text(definition.description.strip().partition("\n")[0])
    return text if len(text) <= _FIRST_LINE_CHARS else text[: _FIRST_LINE_CHARS - 1] + "…"


def _is_part(word: str, known: str) -> bool:
    """Whether one of two words begins or ends with the other: log and worklog, unsubscribe and subscriber."""
    short, long = sorted((word, known), key=len)
    if short == known and len(short) < _SHORTEST_PART:
        return False
    return long.startswith(short) or long.endswith(short)


def _weigh(definition: ToolDefinition) -> dict[str, float]:
    weights: dict[str, float] = defaultdict(float)
    for word in _words(definition.name):
        weights[word] += _NAME_WEIGHT
    for word in _words(definition.description[:_DESCRIPTION_CHARS]):
        weights[word] += 1.0
    properties = definition.parameters.get("properties")
    for name in properties if isinstance(properties, dict) else ():
        for word in _words(str(name)):
            weights[word] += _PARAMETER_WEIGHT
    return weights


def _important(query: str) -> list[tuple[str, float]]:
    """Return the words of a query and how much each counts."""
    words: dict[str, float] = {}
    importance = 1.0
    plain = [word.lower() for word in _WORD.findall(query) if len(word) > 1 or not word.isascii()]
    told = [word for word in plain if word not in _PREPOSITIONS and word not in _EMPTY_WORDS]
    for word in plain if told else ():
        if word in _PREPOSITIONS:
            # Only after something was said: "in slack, post a message" says nothing before it.
            importance = _AFTER_PREPOSITION if words else 1.0
        elif word not in _EMPTY_WORDS:
            words.setdefault(_stem(word), importance)
    return list((words or {_stem(word): 1.0 for word in plain}).items())[:_MAX_QUERY_WORDS]


def _words(text: str) -> list[str]:
    return [_stem(word.lower()) for word in _WORD.findall(text)]


@functools.lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)] + ("y" if suffix == "ies" else "")
    return word


@functools.cache
def _synonyms() -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line in _SAME.strip().splitlines():
        group = [_stem(word) for word in line.split()]
        for word in group:
            found[word].update((other, None) for other in group if other != word)
    return {word: list(others) for word, others in found.items()}


def _unlikelihood(name: str) -> int:
    words: Sequence[str] = [word.lower() for word in _WORD.findall(name)]
    return min(
        (order for order, verb in enumerate(_LIKELIEST_FIRST) if verb in words), default=len(_LIKELIEST_FIRST)
    )
