"""smolagents' local executor: an interpreter of syntax trees in this process, not a security boundary.

Plain functions as tools, no `await`; a new executor for each run, as its state would be kept otherwise.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

import shared
from measuring.protocol import serve_plain
from smolagents.local_python_executor import LocalPythonExecutor
from workloads import COMPUTE


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def rows() -> list[dict[str, Any]]:
    """Return many rows."""
    return shared.ROWS


def run(program: str) -> Any:
    """Run a program in an executor of its own."""
    executor = LocalPythonExecutor([])
    executor.send_tools({"add": add, "rows": rows})
    return executor(program).output


def main() -> None:
    """Measure what the coordinator asks for."""
    programs = shared.returning("{}", add="add(a={a}, b=2)", rows="rows()")
    del programs[shared.GATHERED]
    slow = frozenset(COMPUTE)
    serve_plain(shared.cases(run, programs, slow=slow), version=importlib.metadata.version("smolagents"))


if __name__ == "__main__":
    main()
