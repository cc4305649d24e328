"""The extension guide is run as code."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-tool.md"


def test_every_block_of_the_guide_runs_in_order(capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) >= 9
    # Dataclasses look their module up by name.
    module = types.ModuleType("guide")
    sys.modules["guide"] = module
    try:
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"adding-a-tool.md, block {number}", "exec"), module.__dict__)
    finally:
        del sys.modules["guide"]
    printed = capsys.readouterr().out.strip()
    assert f"# {printed}" in "\n".join(blocks), "the message shown in the guide is the real one"
