"""Finding the right tool among many: ranked search, and the full description of one.

Ranking is BM25 over stemmed words of names, descriptions and parameters, with names counting most,
and shared letter triples of names for what words alone miss. No model, no index on disk.

Knows: texts and scores. Does not know: registries, how an answer reaches a program.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tool_bindings.stubs import render_stubs, signature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tool_bindings.definition import ToolDefinition

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_SUFFIXES: Final = ("ations", "ation", "ings", "ing", "ies", "ers", "er", "ed", "es", "s", "e")
_SHORTEST_STEM: Final = 3
_NAME_WEIGHT: Final = 4.0
_PARAMETER_WEIGHT: Final = 0.5
_TRIPLE_WEIGHT: Final = 2.0
# BM25's usual constants: how fast repetition saturates, how much long texts are discounted.
_SATURATION: Final = 1.2
_LENGTH_DISCOUNT: Final = 0.5


class Catalogue:
    """The tools of one run, searchable. Built once per set."""

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self._definitions = {definition.name: definition for definition in definitions}
        self._documents = {name: _weigh(definition) for name, definition in self._definitions.items()}
        self._triples = {name: _letter_triples(name) for name in self._definitions}
        frequencies = Counter(word for words in self._documents.values() for word in words)
        count = len(self._documents)
        self._rarity = {
            word: math.log(1 + (count - seen + 0.5) / (seen + 0.5)) for word, seen in frequencies.items()
        }
        self._mean_length = sum(sum(words.values()) for words in self._documents.values()) / max(count, 1)

    def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return the best matches, best first: name, signature, first line of the description."""
        wanted = _words(query)
        triples = _letter_triples(query)
        scored = [
            (score, name)
            for name in self._definitions
            if (score := self._score(name, wanted) + self._likeness(name, triples)) > 0
        ]
        scored.sort(key=lambda item: (-item[0], item[1]))
        return [self._entry(name) for _, name in scored[:limit]]

    def describe(self, name: str) -> str | None:
        """Return the stub text of one tool, or None when there is no such tool."""
        definition = self._definitions.get(name)
        return None if definition is None else render_stubs([definition])

    def _entry(self, name: str) -> dict[str, Any]:
        definition = self._definitions[name]
        return {
            "name": name,
            "signature": signature(definition),
            "description": definition.description.strip().partition("\n")[0],
        }

    def _score(self, name: str, wanted: list[str]) -> float:
        words = self._documents[name]
        length = sum(words.values())
        discount = _SATURATION * (1 - _LENGTH_DISCOUNT + _LENGTH_DISCOUNT * length / (self._mean_length or 1))
        return sum(
            self._rarity[word] * weight * (_SATURATION + 1) / (weight + discount)
            for word in wanted
            if (weight := words.get(word, 0.0))
        )

    def _likeness(self, name: str, triples: set[str]) -> float:
        own = self._triples[name]
        shared = len(own & triples)
        return 0.0 if shared < 2 else _TRIPLE_WEIGHT * shared / len(own | triples)


def _weigh(definition: ToolDefinition) -> dict[str, float]:
    weights: Counter[str] = Counter()
    for word in _words(definition.name):
        weights[word] += _NAME_WEIGHT  # type: ignore[assignment]  # a Counter of weights
    weights.update(_words(definition.description))
    properties = definition.parameters.get("properties")
    for name in properties if isinstance(properties, dict) else ():
        for word in _words(str(name)):
            weights[word] += _PARAMETER_WEIGHT  # type: ignore[assignment]  # as above
    return dict(weights)


def _words(text: str) -> list[str]:
    return [_stem(word.lower()) for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)] + ("y" if suffix == "ies" else "")
    return word


def _letter_triples(text: str) -> set[str]:
    plain = "".join(character for character in text.lower() if character.isalnum())
    return {plain[start : start + 3] for start in range(len(plain) - 2)}
