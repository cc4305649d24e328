"""The page about results: its Python block runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def test_the_code_block_of_the_page_runs():
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    exec(compile(block, f"{PAGE.name}, code block", "exec"), {"__name__": "results_page"})
