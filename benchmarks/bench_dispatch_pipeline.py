"""What one dispatch costs when nobody listens, by stage, and what making a value canonical costs.

    python benchmarks/bench_dispatch_pipeline.py [--rounds 10]

How much does the contract add to a nested call, and is one compiled pass (check and freeze) no slower than
sending the value through `json`?
Unit: seconds per dispatch and per stage of it; seconds per 10 000 objects of three fields.
Method: a process of its own without any service; the stages of one sample are timed within the same calls.
A pass above 1.2 times what `json` takes there and back would change a decision: which work is done per call.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.service import new_registry
from measuring.trio_driver import serve_trio

from sandbox.values import encode, freeze_fast
from tool_bindings import AbortSignal
from tool_bindings.validation import compile_schema

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

CALLS = workloads.scaled(500)
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


async def stage_seconds() -> dict[str, float]:
    """Return what each stage of one dispatch takes."""
    registry = new_registry()
    outer = registry.begin("add", {"a": 0, "b": 0}).token
    abort = AbortSignal()
    arguments = {"a": 1, "b": 2}
    clock = time.perf_counter
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
        event: dict[str, Any] = {
            "rootCallId": "call-1",
            "parentCallId": "call-1",
            "subCallId": call_id,
            "name": call.name,
            "arguments": dict(call.arguments),
        }
        encode({"type": "tool/code-dispatch-start", "data": event})
        times.append(clock())
        await call.prepare()
        times.append(clock())
        await call.execute()
        times.append(clock())
        result = await call.finish()
        times.append(clock())
        data = {**event, "isError": result.is_error, "content": result.content}
        encode({"type": "tool/code-dispatch", "data": data})
        times.append(clock())
        for stage, start, end in zip(STAGES, times[:-1], times[1:], strict=True):
            spent[stage] += end - start
    return {stage: each / CALLS for stage, each in spent.items()}


def work_seconds(work: Callable[[], object]) -> float:
    """Return what a piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield the whole dispatch, its stages, and three ways of going through a large value."""
    rows = workloads.make_rows()
    compiled = compile_schema(ROW_SCHEMA)

    def stage(name: str) -> Case:
        async def sample() -> float:
            return (await stage_seconds())[name]

        return Case(sample)

    async def whole() -> float:
        return sum((await stage_seconds()).values())

    def value(work: Callable[[], object]) -> Case:
        return Case(lambda: work_seconds(work))

    yield {
        "whole dispatch": Case(whole),
        **{name: stage(name) for name in STAGES},
        "json.dumps and json.loads": value(lambda: json.loads(json.dumps(rows))),
        "check and freeze, by schema": value(lambda: compiled.accept(rows)),
        "freeze, any JSON": value(lambda: freeze_fast(rows)),
    }


BENCHMARK = Benchmark(
    "dispatch_pipeline",
    "What does one dispatch cost when nobody listens, by stage?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim(
            "check and freeze a large value / json there and back",
            "dispatch_pipeline/check and freeze, by schema",
            "dispatch_pipeline/json.dumps and json.loads",
            1.2,
        ),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
