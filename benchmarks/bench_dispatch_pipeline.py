"""What one dispatch costs when nobody listens, by stage, and what making a value canonical costs.

Question: how much does the contract add to a nested call, and is one compiled pass (check and freeze)
no slower than sending the value through `json`?
Unit: microseconds per dispatch; microseconds per row of 10 000 objects with three fields.
Method: the best of several rounds in one process, because the machine's noise only ever adds.
A total above 60 us, or a ratio above 1.2, would change a decision: which work is done per call.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import trio

from sandbox.values import encode, freeze_fast
from tool_bindings import AbortSignal, ToolRegistry
from tool_bindings.validation import compile_schema

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 9
CALLS = 2_000
ROWS = 10_000
STAGES = ("begin", "start event", "prepare", "execute", "finish", "settle event")

ROW_SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "score": {"type": "number"}},
        "required": ["id", "name", "score"],
        "additionalProperties": False,
    },
}


async def measure_dispatch() -> tuple[float, dict[str, float]]:
    """Return the best total and the best time of each stage, in microseconds."""
    registry = ToolRegistry()

    @registry.tool(concurrency_safe=True)
    async def add(a: int, b: int) -> int:
        return a + b

    outer = registry.begin("add", {"a": 0, "b": 0}).token
    abort = AbortSignal()
    arguments = {"a": 1, "b": 2}
    clock = time.perf_counter
    best = dict.fromkeys(STAGES, float("inf"))
    best_total = float("inf")
    for _ in range(ROUNDS):
        spent = dict.fromkeys(STAGES, 0.0)
        for number in range(CALLS):
            call_id = f"call-1:code:{number}"
            times = [clock()]
            call = registry.begin(
                "add",
                arguments,
                call_id=call_id,
                root_call_id="call-1",
                parent_call_id="call-1",
                parent=outer,
                abort=abort,
                provenance="code",
            )
            times.append(clock())
            event = {
                "rootCallId": "call-1",
                "parentCallId": "call-1",
                "subCallId": call_id,
                "name": call.name,
            }
            encode({"type": "tool/code-dispatch-start", "data": {**event, "arguments": dict(call.arguments)}})
            times.append(clock())
            await call.prepare()
            times.append(clock())
            await call.execute()
            times.append(clock())
            result = await call.finish()
            times.append(clock())
            data = {
                **event,
                "arguments": dict(call.arguments),
                "isError": result.is_error,
                "content": result.content,
            }
            encode({"type": "tool/code-dispatch", "data": data})  # type: ignore[dict-item]  # content is JSON
            times.append(clock())
            for stage, start, end in zip(STAGES, times[:-1], times[1:], strict=True):
                spent[stage] += end - start
        for stage in STAGES:
            best[stage] = min(best[stage], spent[stage])
        best_total = min(best_total, sum(spent.values()))
    return best_total / CALLS * 1e6, {stage: each / CALLS * 1e6 for stage, each in best.items()}


def best_time(work: Callable[[], object]) -> float:
    """Return the best time of a piece of work, in microseconds per row."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best / ROWS * 1e6


def main() -> None:
    """Print both tables."""
    total, stages = trio.run(measure_dispatch)
    print(f"one dispatch, nobody listening: {total:6.1f} us")
    for stage, cost in stages.items():
        print(f"  {stage:<14}{cost:6.1f} us")
    rows = [{"id": number, "name": f"row {number}", "score": number / 7} for number in range(ROWS)]
    compiled = compile_schema(ROW_SCHEMA)
    reference = best_time(lambda: json.loads(json.dumps(rows)))
    print(f"{ROWS} rows of three fields, per row:")
    print(f"  json.dumps + json.loads          {reference:6.2f} us")
    for label, work in (
        ("check and freeze, by schema", lambda: compiled.accept(rows)),
        ("freeze, any JSON", lambda: freeze_fast(rows)),
    ):
        cost = best_time(work)
        print(f"  {label:<33}{cost:6.2f} us  ({cost / reference:.2f}x)")


if __name__ == "__main__":
    main()
