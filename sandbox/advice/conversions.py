"""Hints for texts that cannot be converted.

Knows: numbers, JSON, dates. Does not know: where the text came from.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.advice.failed import Failed


def bad_number(failed: Failed) -> str | None:
    """Give the hint of a text that is no number."""
    start = r"(?:invalid literal for int\(\) with base 10|could not convert string to float): "
    found = re.fullmatch(start + "'(.*)'", failed.text)
    if found is None:
        return None
    text = found[1].strip()
    if re.fullmatch(r"-?\d+\.\d+", text):
        return f"it has a fraction: int(float({text!r}))"
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text):
        return 'remove the separators first: text.replace(",", "")'
    if re.fullmatch(r"-?\d[\d.,]*\s*[%A-Za-z€$£]+|[€$£]\s*-?\d[\d.,]*", text):
        return 'take the number out first, for example with re.search(r"-?\\d+(\\.\\d+)?", text)'
    if not text:
        return "the text is empty: test for that before"
    return None


def not_a_number(text: str) -> str | None:
    """Give the hint of a value that is no number and was taken for one, from what Python says."""
    found = (
        re.search(r"argument must be .*, not '(\w+)'", text)
        or re.match(r"type (\w+) doesn't define __round__|bad operand type for abs\(\): '(\w+)'", text)
        or re.match(r"'(\w+)' object cannot be interpreted as an integer", text)
    )
    kind = next(filter(None, found.groups()), "") if found else ""
    return {
        "NoneType": "the value is None: test for that before",
        "list": "that is a list: take one item, or convert each, [int(x) for x in items]",
        "dict": "that is a dict: take the part you mean",
        "str": "that is text: int(text) or float(text) makes a number of it",
        "float": "that is a fraction: int(number) or round(number) makes it whole",
    }.get(kind)


def long_number(failed: Failed) -> str | None:
    """Give the hint of a number that is too long to be written."""
    if failed.text.startswith("Exceeds the limit"):
        return "leave the number a number: results may be integers of any size; or write hex(number)"
    return None


def not_json(failed: Failed) -> str | None:
    """Give the hint of a text that is no JSON."""
    if type(failed.error).__name__ != "JSONDecodeError":
        return None
    document = getattr(failed.error, "doc", "")
    if type(document) is not str:
        return None
    if not document.strip():
        return "the text is empty"
    if failed.text.startswith("Extra data"):
        return "the text holds several values: [json.loads(line) for line in text.splitlines()]"
    if document.lstrip()[:1] in "{[" and "'" in document:
        return "this is not JSON but Python's own notation; JSON has double quotes"
    if not re.match(r'[{\["\-\d]|true|false|null', document.lstrip()):
        return "the text is not JSON; print(text[:200]) shows what it is"
    return None


def bad_time(failed: Failed) -> str | None:
    """Give the hint of a date in another form."""
    if failed.text.startswith("unconverted data remains"):
        return (
            "the format covers the start of the text only; datetime.fromisoformat(text) reads all of ISO 8601"
        )
    if re.search(r"'\d{4}-\d\d-\d\d([T ][\d:.]+.*)?' does not match", failed.text):
        return "this is ISO 8601: datetime.fromisoformat(text) reads it"
    return None


def table_rows(failed: Failed) -> str | None:
    """Give the hint of rows that are no text, given to the reader of a table."""
    if failed.text.startswith("iterator should return strings, not dict"):
        return 'csv reads lines of text: give it the texts, such as `[line["text"] for line in lines]`'
    return None
