"""pydantic-monty, synchronous: as monty_async, with plain functions as tools, which cannot be gathered."""

from __future__ import annotations

from typing import Any

import pydantic_monty
import shared
from measuring.protocol import serve_plain

LIMITS: Any = {"max_suspensions": 1_000_000}


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def rows() -> list[dict[str, Any]]:
    """Return many rows."""
    return shared.ROWS


def main() -> None:
    """Measure what the coordinator asks for."""
    programs = shared.returning("{}", add="add(a={a}, b=2)", rows="rows()")
    del programs[shared.GATHERED]
    with pydantic_monty.Monty() as pool:

        def run(program: str) -> Any:
            with pool.checkout(limits=LIMITS) as session:
                return session.feed_run(program, external_lookup={"add": add, "rows": rows})

        serve_plain(shared.cases(run, programs), version=pydantic_monty.__version__)


if __name__ == "__main__":
    main()
