"""Names of MCP tools; spec/mcp 4.2 fixes the public ones."""

from __future__ import annotations

import hashlib
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tool_bindings.mcp.naming import clean_text, public_name


def test_a_safe_short_name_is_only_prefixed():
    assert "mcp__git__git_status" == public_name("git", "git_status")
    assert "mcp__git__a-b" == public_name("git", "a-b")


def test_another_name_is_cleaned_and_told_apart_by_a_digest_of_server_and_raw_name():
    digest = hashlib.sha256(b"s\0a.b").hexdigest()[:12]
    assert f"mcp__s__a_b_{digest}" == public_name("s", "a.b")
    long = public_name("s", "x" * 100)
    assert 64 == len(long)
    assert ("mcp__s__" + "x" * 43) == long[:51]


@settings(deadline=None)  # Other work on the machine is no failure.
@given(st.text(), st.text())
def test_public_names_are_safe_and_differ_as_their_tools_do(one, other):
    first, second = public_name("s", one), public_name("s", other)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", first)
    assert (one == other) == (first == second)


def test_names_that_meet_after_cleaning_stay_apart():
    assert 3 == len({public_name("s", raw) for raw in ("a.b", "a_b", "a b")})


def test_text_loses_what_nobody_sees_and_keeps_lines():
    assert "a\nb\tc" == clean_text("a\n\u202eb\t\x07c\u200b\ufeff\U000e0041", 100)
    assert "abcd…" == clean_text("abcdefgh", 5)
