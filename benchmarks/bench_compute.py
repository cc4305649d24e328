"""How much slower is a program that only computes than plain CPython?

    python benchmarks/bench_compute.py [--rounds 10]

Unit: ratio of times. One is the whole run: asking for a worker, compiling under the language policy, running,
the answer. The other is the same text as the body of a function in plain CPython, already compiled. The
programs take plain CPython a tenth of a second and more.
Method: interleaved rounds; what the policy alone costs, construct by construct, is in bench_language_wall.py.
More than 1.3 times, or 1.6 for the one made of attributes and classes, would reopen decision 0171.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import open_logged_service, run_seconds
from measuring.trio_driver import serve_trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMES = 8
"""How much larger than for comparing systems, so that plain CPython takes at least a tenth of a second."""

REPEATS = workloads.scaled(3)
"""Runs per sample: one of them may meet a moment in which the machine is half as fast."""

CLASSES = """
class Account:
    rate = 2
    def __init__(self, owner, balance=0):
        self.owner = owner
        self._balance = balance
        self.log = []
    def deposit(self, amount):
        if amount < 0:
            raise ValueError("negative")
        self._balance += amount
        self.log.append(amount)
        return self._balance
    @property
    def balance(self):
        return self._balance
    def interest(self):
        return self._balance * self.rate
class Savings(Account):
    def __init__(self, owner, balance, bonus):
        super().__init__(owner, balance)
        self.bonus = bonus
    def interest(self):
        return super().interest() + self.bonus
total = 0
for i in range({accounts}):
    account = Savings("a", 10, 1)
    for amount in range(4):
        account.deposit(amount)
    total += account.interest() + account.balance + len(account.log)
answer = total
"""
"""What the policy costs most: attributes with and without underscore, inheritance, properties."""

PROGRAMS = {
    **{name: workloads.compute_program(name, TIMES) for name in workloads.COMPUTE},
    "classes": CLASSES.format(accounts=workloads.scaled(70_000)),
}
BOUNDS = {**dict.fromkeys(workloads.COMPUTE, 1.3), "classes": 1.6}


def small(name: str) -> str:
    """Return the row of a program at the size other systems are compared at."""
    return f"compute/{name}, small"


def plain_seconds(source: str) -> float:
    """Return what the program takes as a function of plain CPython, without compiling it."""
    lines = "\n".join(f"    {line}" for line in source.splitlines())
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(f"def program():\n{lines}\n    return answer", "<plain>", "exec"), names)
    program = names["program"]
    began = time.perf_counter()
    program()
    return time.perf_counter() - began


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield both forms of every program, and the small ones that other systems are compared with."""
    async with open_logged_service() as service:

        def whole_run(source: str) -> Case:
            async def sample() -> list[float]:
                return [await run_seconds(service, f"{source}\nreturn answer") for _ in range(REPEATS)]

            return Case(sample)

        def plain(source: str) -> Case:
            return Case(lambda: [plain_seconds(source) for _ in range(REPEATS)])

        cases: dict[str, Case] = {}
        for name, source in PROGRAMS.items():
            cases[name] = whole_run(source)
            cases[f"{name}, plain"] = plain(source)
        for name in workloads.COMPUTE:
            cases[f"{name}, small"] = whole_run(workloads.compute_program(name))
        yield cases


BENCHMARK = Benchmark(
    "compute",
    "How much slower is a program that only computes than plain CPython?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=tuple(
        Claim(f"{name}, whole run / plain CPython", f"compute/{name}", f"compute/{name}, plain", BOUNDS[name])
        for name in PROGRAMS
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
