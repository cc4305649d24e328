"""What exporters add to an empty dispatch: none, one that was removed again, and each of the two.

    python benchmarks/bench_exporters.py [--rounds 10]

Does a call cost the same while no exporter is installed, and what does one add?
Unit: seconds per dispatch of a tool that does nothing; ratio to a registry that never had an exporter.
Method: interleaved rounds in one process. Spans go to the SDK's in-memory exporter; Relay writes its event
file, on a thread of its own that competes for the processor. Needs what the `dev` and `relay` extras install.
A ratio above 1.1 with exporters off would change a decision: where calls are watched.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from typing import TYPE_CHECKING

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case
from measuring.trio_driver import serve_trio

from codemode.exporters import otel_exporter, relay_exporter
from tool_bindings import Output, ToolDefinition, ToolRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    Install = Callable[[ToolRegistry], contextlib.AbstractContextManager[object]]

CALLS = workloads.scaled(500)


def empty_registry() -> ToolRegistry:
    """Return a registry with one tool, which does nothing."""
    registry = ToolRegistry()

    async def nothing(_arguments: object, _context: object) -> None:
        return None

    registry.register(ToolDefinition("nothing", "Nothing.", {"type": "object"}, Output({}), nothing))
    return registry


async def dispatch_seconds(registry: ToolRegistry, install: Install) -> float:
    """Return what one dispatch takes with something installed."""
    with install(registry):
        began = time.perf_counter()
        for _ in range(CALLS):
            await registry.dispatch("nothing", {})
        return (time.perf_counter() - began) / CALLS


@contextlib.contextmanager
def relay_events() -> Iterator[None]:
    """Have Relay write its events to a file."""
    import nemo_relay  # noqa: PLC0415  # optional: only who measures it needs it

    with tempfile.TemporaryDirectory() as folder:
        config = nemo_relay.AtofExporterConfig()
        config.output_directory = folder
        events = nemo_relay.AtofExporter(config)
        events.register("bench")
        try:
            yield
        finally:
            events.shutdown()
            events.deregister("bench")


def in_memory_spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    """Return a provider whose spans stay in memory."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # as above
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415

    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider, memory


@contextlib.asynccontextmanager
async def open_cases() -> AsyncIterator[dict[str, Case]]:
    """Yield one case per variant."""
    provider, memory = in_memory_spans()

    def never(_registry: ToolRegistry) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def spans(*, attributes: bool) -> Install:
        def install(registry: ToolRegistry) -> contextlib.AbstractContextManager[object]:
            memory.clear()
            return otel_exporter(registry, tracer_provider=provider, attributes=attributes)

        return install

    def case(registry: ToolRegistry, install: Install) -> Case:
        return Case(lambda: dispatch_seconds(registry, install))

    with relay_events():
        used = empty_registry()
        with otel_exporter(used, tracer_provider=provider), relay_exporter(used):
            await used.dispatch("nothing", {})
        yield {
            "never had one": case(empty_registry(), never),
            "off": case(used, never),
            "OpenTelemetry, in memory": case(empty_registry(), spans(attributes=False)),
            "OpenTelemetry, with attributes": case(empty_registry(), spans(attributes=True)),
            "NeMo Relay, event file": case(empty_registry(), relay_exporter),
        }


BASE = "exporters/never had one"
BENCHMARK = Benchmark(
    "exporters",
    "What do exporters add to an empty dispatch?",
    __file__,
    lambda: serve_trio(open_cases()),
    claims=(
        Claim("dispatch, exporters off / never had one", "exporters/off", BASE, 1.1),
        Claim("dispatch, OpenTelemetry in memory / no exporter", "exporters/OpenTelemetry, in memory", BASE),
        Claim("dispatch, NeMo Relay to a file / no exporter", "exporters/NeMo Relay, event file", BASE),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
