"""What a value breaks of a full JSON Schema, in the words that `explanation` has for the vocabulary.

`jsonschema` finds the faults; its messages repeat whole values and speak of schemas and validity. Here each
keyword that it can report has a sentence that says what the value must be.

Runs where `jsonschema` runs, which may be a process of its own, so a fault is plain JSON.

Knows: every validation keyword of draft 2020-12. Does not know: labels of values, how a fault travels.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from tool_bindings.explanation import NOUNS
from tool_bindings.schema import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jsonschema.exceptions import SchemaError, ValidationError

    Found: TypeAlias = ValidationError | SchemaError
    """What `jsonschema` finds wrong with a value, or with a schema, which is a value to it."""
    Words: TypeAlias = Callable[[Found], str]

__all__ = ["Fault", "faults_of"]

_SHOWN_CHARS: Final = 200
"""Characters shown of a part of a schema; an `enum` may have thousands of values. Arbitrary."""


class Fault(TypedDict):
    """One way in which a value breaks a full JSON Schema, as plain JSON."""

    keys: list[str | int]
    """Where: keys from the root."""
    text: str
    """What must be so, to go on from the quoted place."""
    form: str
    """`place`: the value there; `missing`: it is not there; `undeclared`: it must not be there; `name`: the
    last key itself."""
    nearest: Fault | None
    """Of alternatives that all failed, a fault of the one that fits best."""


def faults_of(errors: Iterable[Found], value: Any) -> list[Fault]:
    """Return the faults behind what `jsonschema` found in a value, in the order of their places."""
    found = sorted(errors, key=lambda error: list(map(str, error.absolute_path)))
    # jsonschema reports some keywords once for every name that breaks them, and so do we: once is enough.
    distinct: dict[str, Fault] = {}
    for error in found:
        for fault in _faults(error, value):
            distinct.setdefault(repr(fault), fault)
    return list(distinct.values())


def _faults(error: Found, value: Any) -> Iterator[Fault]:
    keys = list(error.absolute_path)
    instance: Any = error.instance
    expected: Any = error.validator_value
    match error.validator:
        case "required":
            for name in expected:
                if name not in instance:
                    yield _fault([*keys, name], "", form="missing")
        case "dependentRequired":
            for name, others in expected.items():
                for other in others:
                    if name in instance and other not in instance:
                        text = f", which must be there beside {json_text(name)}"
                        yield _fault([*keys, other], text, form="missing")
        case "additionalProperties":
            for name in _additional(instance, error.schema):
                text = f"is not a declared property (additionalProperties: false){_patterns(error)}"
                yield _fault([*keys, name], text, form="undeclared")
        case "unevaluatedProperties":
            # Which ones these are follows from all schemas that apply, and is told by the message only.
            for name in (name for name in instance if repr(name) in error.message):
                if expected is False:
                    text = "is not a declared property (unevaluatedProperties: false)"
                    yield _fault([*keys, name], text, form="undeclared")
                else:
                    text = f"must match {_shown(expected)} (unevaluatedProperties)"
                    yield _fault([*keys, name], text)
        case None:
            yield _refused_part(error, keys, _at(value, keys))
        case _:
            is_name = isinstance(instance, str) and isinstance(_at(value, keys), dict)
            fault = _fault(keys, _words(error))
            if is_name:
                fault = _fault([*keys, instance], _words(error), form="name")
            if error.validator in ("anyOf", "oneOf"):
                fault["nearest"] = _nearest(error, value)
            yield fault


def _refused_part(error: Found, keys: list[str | int], place: Any) -> Fault:
    """Return the fault of a schema that is `false`; which part of a value it is for is not reported."""
    if place is error.instance:
        return _fault(keys, "is not allowed")
    parts = place.items() if isinstance(place, dict) else enumerate(place)
    found = [key for key, part in parts if part is error.instance]
    if not found and isinstance(place, dict):
        return _fault([*keys, str(error.instance)], "is not allowed", form="name")
    if len(found) != 1:
        return _fault(keys, "has a part that is not allowed")
    return _fault([*keys, found[0]], "is not allowed")


def _fault(keys: list[str | int], text: str, *, form: str = "place") -> Fault:
    return {"keys": keys, "text": text, "form": form, "nearest": None}


def _words(error: Found) -> str:
    words = WORDS.get(str(error.validator))
    if words is None:
        return f"does not fit the keyword {json_text(error.validator)} of its schema"
    return words(error)


def _at(value: Any, keys: list[str | int]) -> Any:
    for key in keys:
        value = value[key]
    return value


def _additional(instance: Mapping[str, Any], schema: Any) -> list[str]:
    patterns = schema.get("patternProperties", {})
    return [
        name
        for name in instance
        if name not in schema.get("properties", {}) and not any(re.search(each, name) for each in patterns)
    ]


def _patterns(error: Found) -> str:
    schema: Any = error.schema
    patterns = [json_text(pattern) for pattern in schema.get("patternProperties", {})]
    return f" and does not match {_cut(' or '.join(patterns))}" if patterns else ""


def _nearest(error: Found, value: Any) -> Fault | None:
    """Return the first fault of the alternative that has the fewest, another value being the worst."""
    arms: dict[Any, list[Found]] = {}
    for inner in error.context or ():
        arms.setdefault(inner.relative_schema_path[0], []).append(inner)
    # What the words say already is not said again.
    told = [arm for arm in arms.values() if not _is_about(arm, error, ("type",))]
    if not 0 < len(told) <= _FEW_ARMS:
        return None
    best = min(told, key=lambda arm: (_is_about(arm, error, ("enum", "const")), len(arm)))
    fault = next(_faults(best[0], value))
    fault["nearest"] = None
    return fault


_FEW_ARMS: Final = 8
"""Alternatives among which the best is looked for. Arbitrary: among many none is nearest."""


def _is_about(arm: list[Found], error: Found, keywords: tuple[str, ...]) -> bool:
    """Whether an alternative fails with one of these keywords for the value as a whole."""
    return any(inner.validator in keywords and inner.absolute_path == error.absolute_path for inner in arm)


def _of_alternatives(error: Found) -> str:
    context = error.context or ()
    if context and all(inner.validator == "type" and not inner.relative_path for inner in context):
        return _of_types([kind for inner in context for kind in _listed(inner.validator_value)])
    if error.validator == "anyOf":
        return "must match at least one anyOf branch (matched 0)"
    return f"must match exactly one oneOf branch (matched {'0' if context else 'several'})"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _of_types(kinds: Iterable[str]) -> str:
    return f"must be {' or '.join(dict.fromkeys(NOUNS[kind] for kind in kinds))}"


def _bound(before: str, noun: str = "", nouns: str = "") -> Words:
    """Return the words of a keyword that has one number."""

    def words(error: Found) -> str:
        bound = error.validator_value
        counted = f" {noun if bound == 1 else nouns or noun + 's'}" if noun else ""
        return f"must {before} {json_text(bound)}{counted}"

    return words


def _of_contains(error: Found) -> str:
    # The number is a keyword beside, and may be what is reported.
    schema: Any = error.schema
    least = schema.get("minContains", 1)
    if error.validator == "maxContains":
        count = f"at most {_counted(error.validator_value, 'item')}"
    else:
        count = f"at least {_counted(least, 'item')}"
    return f"must have {count} of {_shown(schema['contains'])} (contains)"


def _of_items(error: Found) -> str:
    schema: Any = error.schema
    return f"must have at most {_counted(len(schema.get('prefixItems', [])), 'item')}"


def _counted(count: Any, noun: str) -> str:
    return f"{json_text(count)} {noun}{'' if count == 1 else 's'}"


def _shown(value: Any) -> str:
    return _cut(json_text(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


WORDS: Final[Mapping[str, Words]] = {
    "type": lambda error: _of_types(_listed(error.validator_value)),
    "enum": lambda error: f"must be one of {_shown(error.validator_value)}",
    "const": lambda error: f"must be {_shown(error.validator_value)}",
    "minimum": _bound("be at least"),
    "maximum": _bound("be at most"),
    "exclusiveMinimum": _bound("be more than"),
    "exclusiveMaximum": _bound("be less than"),
    "multipleOf": _bound("be a multiple of"),
    "minLength": _bound("have at least", "character"),
    "maxLength": _bound("have at most", "character"),
    "pattern": lambda error: f"must match the regular expression {_shown(error.validator_value)}",
    "minItems": _bound("have at least", "item"),
    "maxItems": _bound("have at most", "item"),
    "uniqueItems": lambda _: "must not have the same item twice",
    "items": _of_items,
    "unevaluatedItems": lambda _: "must not have items that its schema does not describe (unevaluatedItems)",
    "contains": _of_contains,
    "minContains": _of_contains,
    "maxContains": _of_contains,
    "minProperties": _bound("have at least", "property", "properties"),
    "maxProperties": _bound("have at most", "property", "properties"),
    "not": lambda error: f"must not match {_shown(error.validator_value)} (not)",
    "anyOf": _of_alternatives,
    "oneOf": _of_alternatives,
}
"""What a value must be, by the keyword it breaks; keywords about properties by name are in `_faults`."""
