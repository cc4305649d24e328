"""What does the policy cost over plain CPython?

    python benchmarks/bench_language_wall.py [--rounds 30]

How much slower is a program under the language wall than the same text as the body of an async function?
Unit: ratio of times; one row per kind of code. Method: both forms run in one process, compiled already, in
interleaved rounds. What whole runs cost is in bench_compute.py.
A ratio above its bound would reopen decision 0171 (checked receivers).
"""

from __future__ import annotations

import ast
import time
from typing import TYPE_CHECKING, Any

from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case, serve_plain

from sandbox.guards import build_globals
from sandbox.policy import compile_program

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS: dict[str, tuple[float, str]] = {
    "arithmetic loops": (
        1.3,
        """
total = 0
for i in range(60000):
    total += i * i % 7 - (i >> 1)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
return total + fib(18)
""",
    ),
    "dict and list reads, comprehensions": (
        1.3,
        """
rows = [{"id": i, "score": i % 10, "tags": ["a", "b"]} for i in range(3000)]
total = 0
for _ in range(6):
    for row in rows:
        total += row["id"] + row["score"] + len(row["tags"])
    total += sum([row["score"] for row in rows if row["id"] % 2])
    index = {row["id"]: row["tags"][0] for row in rows}
return total + len(index)
""",
    ),
    "string building": (
        1.3,
        """
parts = []
text = ""
for i in range(12000):
    text += f"{i}:{i * 2} "
    parts = text.split(" ", 2) if i % 4000 == 0 else parts
words = [str(i).upper().strip().replace("1", "one") for i in range(12000)]
return len(text) + len(", ".join(words)) + len("{} {}".format(len(parts), "x"))
""",
    ),
    "list appends and dict updates": (
        2.0,
        """
def collect(target, seen, count):
    for i in range(count):
        target.append(i)
        seen.update({i: i})
        seen.setdefault(i % 50, []) if i < 0 else None
def build(count):
    out = []
    known = {}
    for i in range(count):
        out.append(i)
        known.update({i % 100: i})
    while out:
        out.pop()
    return known
collect([], {}, 12000)
return len(build(12000))
""",
    ),
    "attributes and classes": (
        1.6,
        """
class Node:
    def __init__(self, value, parent=None):
        self.value = value
        self._parent = parent
        self.children = []
        self._visits = 0
    def add(self, child):
        self.children.append(child)
        child._parent = self
        return child
    def visit(self):
        self._visits += 1
        return self.value + self._visits
    @property
    def depth(self):
        return 0 if self._parent is None else self._parent.depth + 1
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
    def interest(self):
        return self._balance * self.rate
class Savings(Account):
    def __init__(self, owner, balance, bonus):
        super().__init__(owner, balance)
        self.bonus = bonus
    def interest(self):
        return super().interest() + self.bonus
total = 0
for i in range(1500):
    root = Node(i)
    leaf = root.add(Node(1)).add(Node(2))
    for _ in range(3):
        total += root.visit() + leaf.visit()
    total += leaf.depth
    account = Savings("a", 10, 1)
    for amount in range(4):
        account.deposit(amount)
    total += account.interest()
return total
""",
    ),
}


def plain(source: str) -> Callable[[], Any]:
    """Return a function that runs `source` as an async function's body, with no policy."""
    module = ast.parse("async def program(): pass")
    function = module.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = ast.parse(source).body
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(module, "<plain>", "exec"), names)
    return lambda: drive(names["program"]())


def restricted(source: str) -> Callable[[], Any]:
    """Return a function that runs `source` under the language wall."""
    compiled = compile_program(source)
    names = build_globals(stdout_write=lambda stream, text: None)
    exec(compiled.code, names)
    return lambda: drive(names[compiled.entry_name]()).value


def drive(coroutine: Any) -> Any:
    """Run a coroutine that awaits nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the program awaited something")


def seconds(run: Callable[[], Any]) -> float:
    """Time one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def serve() -> None:
    """Measure what the coordinator asks for."""
    cases: dict[str, Case] = {}

    def case(run: Callable[[], Any]) -> Case:
        return Case(lambda: seconds(run))

    for name, (_, source) in PROGRAMS.items():
        wall, bare = restricted(source), plain(source)
        if wall() != bare():
            raise AssertionError(f"the two forms of {name!r} disagree")
        cases[name], cases[f"{name}, plain"] = case(wall), case(bare)
    serve_plain(cases)


BENCHMARK = Benchmark(
    "language_wall",
    "What does the policy cost over plain CPython?",
    __file__,
    serve,
    claims=tuple(
        Claim(
            f"{name}, policy / plain CPython", f"language_wall/{name}", f"language_wall/{name}, plain", bound
        )
        for name, (bound, _) in PROGRAMS.items()
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
