"""What exporters add to an empty dispatch: none, one that was removed again, and each of the two.

Question: does a call cost the same while no exporter is installed, and what does one add?
Unit: microseconds per dispatch of a tool that does nothing; ratio to a registry that never had an exporter.
Method: the best of several rounds, the variants in turn, in one process, because the machine's noise only
ever adds. Spans go to the SDK's in-memory exporter; Relay writes its event file, on a thread of its own
that competes for the processor.
A ratio above 1.1 with exporters off would change a decision: where calls are watched.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from typing import TYPE_CHECKING

import nemo_relay
import trio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from codemode.exporters import otel_exporter, relay_exporter
from tool_bindings import Output, ToolDefinition, ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    Install = Callable[[ToolRegistry], contextlib.AbstractContextManager[object]]

ROUNDS = 7
CALLS = 500


def new_registry() -> ToolRegistry:
    """Return a registry with one tool, which does nothing."""
    registry = ToolRegistry()

    async def nothing(_arguments: object, _context: object) -> None:
        return None

    registry.register(ToolDefinition("nothing", "Nothing.", {"type": "object"}, Output({}), nothing))
    return registry


async def measure(registry: ToolRegistry, install: Install) -> float:
    """Return the time of one round, in microseconds per call."""
    with install(registry):
        started = time.perf_counter()
        for _ in range(CALLS):
            await registry.dispatch("nothing", {})
        return (time.perf_counter() - started) / CALLS * 1e6


async def compare(provider: TracerProvider, memory: InMemorySpanExporter) -> dict[str, float]:
    """Return the best time of every variant."""

    def never(_registry: ToolRegistry) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def in_memory(registry: ToolRegistry) -> contextlib.AbstractContextManager[object]:
        memory.clear()
        return otel_exporter(registry, tracer_provider=provider)

    def with_attributes(registry: ToolRegistry) -> contextlib.AbstractContextManager[object]:
        memory.clear()
        return otel_exporter(registry, tracer_provider=provider, attributes=True)

    used = new_registry()
    with otel_exporter(used, tracer_provider=provider), relay_exporter(used):
        await used.dispatch("nothing", {})
    variants: dict[str, tuple[ToolRegistry, Install]] = {
        "never had an exporter": (new_registry(), never),
        "exporters off": (used, never),
        "OpenTelemetry, in memory": (new_registry(), in_memory),
        "OpenTelemetry, with attributes": (new_registry(), with_attributes),
        "NeMo Relay, event file": (new_registry(), relay_exporter),
    }
    best = dict.fromkeys(variants, float("inf"))
    for _ in range(ROUNDS):
        for label, (registry, install) in variants.items():
            best[label] = min(best[label], await measure(registry, install))
    return best


def main() -> None:
    """Print the table."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    with tempfile.TemporaryDirectory() as directory:
        config = nemo_relay.AtofExporterConfig()
        config.output_directory = directory
        events = nemo_relay.AtofExporter(config)
        events.register("bench")
        best = trio.run(compare, provider, memory)
        events.shutdown()
        events.deregister("bench")
    base = best["never had an exporter"]
    print("one empty dispatch:")
    for label, cost in best.items():
        print(f"  {label:<32}{cost:7.1f} us  ({cost / base:5.2f}x, {cost - base:+7.1f} us)")


if __name__ == "__main__":
    main()
