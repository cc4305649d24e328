"""What the drivers of other systems share: the tools, the programs, and how they are timed.

Standard library only. Every result is checked: nobody is fast by doing nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any

import workloads
from measuring.protocol import Case

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Run = Callable[[str], Any | Awaitable[Any]]

TRIVIAL = "trivial run"
SEQUENTIAL = "sequential call"
GATHERED = "gathered call"
LARGE = "1 MB value"

ROWS = workloads.make_rows()

SLOW = 5
"""What takes seconds is measured in every fifth round only, beginning with the first."""


async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def rows() -> list[dict[str, Any]]:
    """Return many rows."""
    return ROWS


def returning(form: str, add: str = "await add(a={a}, b=2)", rows: str = "await rows()") -> dict[str, str]:
    """Return the programs in one system's dialect.

    Args:
        form: How a program gives its result, with {} for the expression.
        add: How `add` is called, with {a} for its first argument.
        rows: How `rows` is called.
    """
    calls, call = workloads.CALLS, add.format(a="i")
    together = call.removeprefix("await ")
    last = form.format("last")
    gathered = f"import asyncio\nlast = await asyncio.gather(*[{together} for i in range({calls})])"
    return {
        TRIVIAL: form.format("1"),
        SEQUENTIAL: f"last = None\nfor i in range({calls}):\n    last = {call}\n{last}",
        GATHERED: f"{gathered}\n{form.format('len(last)')}",
        LARGE: form.format(f"len({rows})"),
        **{name: f"{workloads.compute_program(name)}\n{form.format('answer')}" for name in workloads.COMPUTE},
    }


def expected() -> dict[str, Any]:
    """Return what each program must give."""
    answers: dict[str, Any] = {
        TRIVIAL: 1,
        SEQUENTIAL: workloads.CALLS + 1,
        GATHERED: workloads.CALLS,
        LARGE: workloads.VALUE_ROWS,
    }
    for name in workloads.COMPUTE:
        names: dict[str, Any] = {}
        exec(workloads.compute_program(name), names)
        answers[name] = names["answer"]
    return answers


def cases(
    run: Run,
    programs: Mapping[str, str],
    *,
    unpack: Callable[[Any], Any] = lambda value: value,
    slow: frozenset[str] = frozenset(),
) -> dict[str, Case]:
    """Return the cases of one system.

    Args:
        run: Runs one program in fresh state and returns its result; it may be asynchronous.
        programs: Those it can run.
        unpack: Takes the result out of what `run` returned.
        slow: Cases that take seconds.
    """
    answers = expected()
    repeats = {TRIVIAL: workloads.RUNS}
    share = {SEQUENTIAL: workloads.CALLS, GATHERED: workloads.CALLS}
    asynchronous = inspect.iscoroutinefunction(run)

    def check(name: str, result: Any) -> None:
        found = unpack(result)
        if found != answers[name]:
            raise ValueError(f"{name}: the program gave {str(found)[:100]!r}, not {answers[name]!r}")

    def case(name: str, program: str) -> Case:
        async def sample() -> list[float]:
            times = []
            for _ in range(repeats.get(name, 1)):
                await asyncio.sleep(workloads.PAUSE_SECONDS)
                began = time.perf_counter()
                result = await run(program)
                times.append((time.perf_counter() - began) / share.get(name, 1))
                check(name, result)
            return times

        def plain_sample() -> list[float]:
            times = []
            for _ in range(repeats.get(name, 1)):
                time.sleep(workloads.PAUSE_SECONDS)
                began = time.perf_counter()
                result = run(program)
                times.append((time.perf_counter() - began) / share.get(name, 1))
                check(name, result)
            return times

        return Case(sample if asynchronous else plain_sample, every=SLOW if name in slow else 1)

    return {name: case(name, program) for name, program in programs.items()}
