"""Programs inside Markdown code blocks."""

from __future__ import annotations

import pytest

from sandbox.fences import unfenced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\nreturn 1\n```", "\nreturn 1\n"),
        ("```\nreturn 1\n```\n", "\nreturn 1\n\n"),
        ("~~~py\nreturn 1\n~~~", "\nreturn 1\n"),
        ("Here it is:\n```python\nx = 1\nreturn x\n```\nDone.", "\n\nx = 1\nreturn x\n\n"),
        ("```python\nreturn 1", "\nreturn 1"),
        ("return 1\n```", "return 1\n"),
    ],
)
def test_the_block_stays_on_its_own_lines(text, expected):
    assert expected == unfenced(text)


@pytest.mark.parametrize("text", ["return 1", "```\na\n```\n```\nb\n```", "```\n```", "", "x = '```'"])
def test_no_block_or_more_than_one_is_no_program(text):
    assert unfenced(text) is None
