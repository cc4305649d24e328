"""The page about annotated results: every Python block runs, in order, as one program."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "annotated-results.md"


def test_every_code_block_of_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert 5 == len(blocks)
    names = {"__name__": "annotated_results_page"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
