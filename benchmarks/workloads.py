"""What is measured: the same work for our service, for the floors and for other systems.

Standard library only: the interpreters of other systems import it too.

Programs are written in the subset that all of them understand. A compute program leaves its answer in
`answer`; each driver appends what makes its system return it.
"""

from __future__ import annotations

import os
from typing import Any

SMALL = "CODEMODE_BENCHMARKS_SMALL" in os.environ
"""Whether to do a fiftieth of the work, to see that everything runs. The figures then mean nothing."""


def scaled(amount: int) -> int:
    """Return an amount of work as it is, or small."""
    return max(2, amount // 50) if SMALL else amount


CALLS = scaled(1000)
"""Calls of one program."""
RUNS = scaled(10)
"""Trivial runs per sample."""
PAUSE_SECONDS = 0.03
"""Before each run, for everybody: whoever prepares the next worker may finish doing so."""
VALUE_ROWS = scaled(10_000)
"""Objects in the large value; about 1 MB of JSON."""


def make_rows(count: int = VALUE_ROWS) -> list[dict[str, Any]]:
    """Return objects of three fields, about 100 bytes of JSON each."""
    return [
        {
            "id": number,
            "name": f"{number:06d} a name of some length, as the names of things are",
            "score": number / 7,
        }
        for number in range(count)
    ]


NESTED = """
total = 0
for i in range({outer}):
    for j in range(100):
        total += (i * j) % 7 - (i ^ j) % 5
answer = total
"""
WORDS = """
counts = {{}}
words = "the quick brown fox jumps over the lazy dog and runs away from it".split(" ")
for i in range({outer}):
    for word in words:
        key = word + str(i % 50)
        counts[key] = counts.get(key, 0) + 1
best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
answer = [len(best), best[0][0], best[0][1]]
"""
JOIN = """
users = [{{"id": i, "name": "user" + str(i)}} for i in range({outer})]
orders = [{{"user": (i * 7) % {outer}, "amount": i % 100}} for i in range({outer} * 4)]
names = {{}}
for user in users:
    names[user["id"]] = user["name"]
totals = {{}}
for order in orders:
    name = names[order["user"]]
    totals[name] = totals.get(name, 0) + order["amount"]
best = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
answer = [len(best), best[0][0], sum(totals.values())]
"""

COMPUTE = {"nested loops": (NESTED, 2600), "word count": (WORDS, 3000), "join": (JOIN, 9000)}
"""Programs and the sizes at which plain CPython needs 20 to 30 ms; see `compute_program`."""


def compute_program(name: str, times: float = 1) -> str:
    """Return a compute program, at so many times its usual size."""
    source, size = COMPUTE[name]
    return source.format(outer=scaled(round(size * times)))
