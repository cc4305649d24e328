"""Cutting a text by bytes (spec/tools.md section 16)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tool_bindings.tools.retention import head_bytes


def test_character_at_the_cut_is_left_out_whole():
    assert head_bytes("aé", 2) == "a"
    assert head_bytes("aé", 3) == "aé"
    assert head_bytes("😀", 3) == ""


@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aé€😀\ud800")), most=st.integers(0, 40))
def test_head_is_the_longest_beginning_that_fits(text, most):
    def size(part):
        return len(part.encode("utf-8", "surrogatepass"))

    head = head_bytes(text, most)
    assert text.startswith(head)
    assert size(head) <= most
    assert head == text or size(text[: len(head) + 1]) > most
